"""/metrics: sums over all processes whichever answers, what of ended ones stays, formats, who may, and no names in it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from demo.harness.servers import wait_for
from tests.gateway.client import Client
from tests.gateway.server import PLAIN, LiveGateway, Prepared
from tests.telemetry.scraping import Scrape, scrape, since

pytestmark = pytest.mark.processes

TOKEN = "metrics-0123456789-abcdefghij-klmnopqrst"  # of this test only
LABELS = {"reason", "check", "peer", "outcome", "state", "task", "process", "le", "version", "python", "domain"}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """Two gateway processes of one domain, each with a port of its own, so that a test can choose whom it asks."""
    with LiveGateway(tmp_path_factory.mktemp("pair") / "var", prepared, gateways=2) as running:
        yield running


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """A gateway of a domain that others reach."""
    folder = tmp_path_factory.mktemp("exposed") / "var"
    made = LiveGateway(folder, prepared, public_url="https://herald.example.org", metrics_token=TOKEN)
    made.data_dir.chmod(0o700)  # else it does not start: it is exposed
    with made as running:
        yield running


async def test_any_gateway_answers_for_all(pair: LiveGateway) -> None:
    rp = pair.create_rp()
    before = scrape(pair.url(0))
    async with Client(pair, gateway=0) as here, Client(pair, gateway=1) as there:
        await here.ok("subscribe", rp=rp)
        await there.ok("subscribe", rp=rp)
        pair.publish(rp, 30)
        with pair.http(gateway=1) as http:
            event = {"specversion": "1.0", "id": "twice", "source": "/tests", "type": "test"}
            for _ in range(2):
                assert http.post(f"/api/v1/rps/{rp}/events", json=event, headers=STRUCTURED).status_code == 201
            assert http.get("/api/v1/rps/unknown/events").status_code == 404
        assert len(await here.events(31)) == len(await there.events(31)) == 31

        def told(scraped: Scrape) -> bool:
            grown = since(before, scraped)
            return (
                grown("herald_events_published_total") == 31
                and grown("herald_events_repeated_total") == 1
                and grown("herald_publishes_total") == 3
                and grown("herald_events_delivered_total") == 62
                and grown("herald_refusals_total", reason="not-found") == 1
                and grown("herald_sessions_opened_total") == 2
                and scraped.value("herald_sessions") == 2
                and scraped.value("herald_readings") == 2
                and scraped.value("herald_channels") == 2
                and grown("herald_append_duration_seconds_count") == 3
                and grown("herald_delivery_lag_seconds_count") >= 1
                and grown("herald_event_loop_lag_seconds_count") >= 2
            )

        for gateway in (0, 1):
            wait_for(lambda at=gateway: told(scrape(pair.url(at))), about="the sums of both")  # type: ignore[misc]
        lag = scrape(pair.url())
        assert 0 <= lag.value("herald_delivery_lag_seconds_sum") < 5 * lag.value("herald_delivery_lag_seconds_count")


async def test_of_a_gateway_that_was_killed_what_it_counted_stays_and_what_it_held_goes(pair: LiveGateway) -> None:
    rp = pair.create_rp()
    async with Client(pair, gateway=1) as client:
        await client.ok("subscribe", rp=rp)
        with pair.http(gateway=1) as http:
            assert http.post(f"/api/v1/rps/{rp}/events", json={}).status_code == 201
        wait_for(lambda: scrape(pair.url(0)).value("herald_sessions") == 1, about="the session is told")
        before = scrape(pair.url(1))
        pid = pair.gateway_process(1).pid
        pair.kill_gateway(1)
        after = scrape(pair.url(0))
        assert after.value("herald_sessions") == after.value("herald_readings") == 0
        assert since(before, after)("herald_events_published_total") == 0
        assert after.value("process_resident_memory_bytes") < before.value("process_resident_memory_bytes")
        assert not list((pair.data_dir / "metrics").glob(f"gauge_*_{pid}-*"))
    pair.start_gateway(1)
    wait_for(lambda: len(list((pair.data_dir / "metrics").glob("gauge_livesum_*"))) == 2, about="both measure again")
    assert since(before, scrape(pair.url(1)))("herald_events_published_total") == 0, "nothing is counted twice"


def test_a_gap_is_counted(pair: LiveGateway) -> None:
    rp = pair.create_rp(history={"max_events": 3})
    first = pair.admin.post(f"/api/v1/rps/{rp}/events", json={}).json()["cursor"]
    pair.publish(rp, 10)
    before = scrape(pair.url())
    answer = pair.admin.get(f"/api/v1/rps/{rp}/events", params={"after": first})
    assert answer.json()["gap"]
    assert since(before, scrape(pair.url()))("herald_gaps_total") == 1


def test_the_format_is_what_the_scraper_asks_for(pair: LiveGateway) -> None:
    plain = httpx.get(f"{pair.url()}/metrics", **PLAIN)
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    asked = httpx.get(
        f"{pair.url()}/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"}, **PLAIN
    )
    assert asked.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert asked.text.endswith("# EOF\n")
    families = {family.name: family for family in openmetrics(asked.text)}
    assert families["herald_events_published"].type == "counter"
    assert families["herald_append_duration_seconds"].type == "histogram"
    assert httpx.head(f"{pair.url()}/metrics", **PLAIN).status_code == 200
    refused = httpx.post(f"{pair.url()}/metrics", **PLAIN)
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


def test_it_names_no_rendezvous_point_and_nobody_and_stays_small(pair: LiveGateway) -> None:
    rp = pair.create_rp(name="named")
    with pair.http("somebody") as http:
        for number in range(20):
            http.get(f"/api/v1/rps/unknown-{number}/events")
    text = httpx.get(f"{pair.url()}/metrics", **PLAIN).text
    for secret in (rp, "named", "somebody", "root", "unknown-", pair.token("somebody")):
        assert secret not in text
    scraped = Scrape(text)
    assert {label for sample in scraped.samples for label in sample.labels} <= LABELS
    assert len(scraped.samples) < 300
    for family in scraped.families:
        assert family.documentation, f"{family.name} says what it is"
        assert not (family.type == "gauge" and family.name.endswith("_total"))


def test_where_others_reach_the_domain_a_token_is_needed(exposed: LiveGateway) -> None:
    url = f"{exposed.url()}/metrics"
    for headers, status in (
        ({}, 401),
        ({"authorization": f"Bearer {TOKEN}"}, 200),
        ({"authorization": f"Bearer {TOKEN}x"}, 401),
        ({"authorization": "Basic Og=="}, 401),
        ({"authorization": f"Bearer {exposed.token('anybody')}"}, 403),
        ({"authorization": f"Bearer {exposed.token('watcher', admin=True)}"}, 200),
        ({"authorization": f"Bearer {exposed.token('viewer', admin=True, scopes=VIEWER)}"}, 200),
        ({"authorization": f"Bearer {exposed.token('narrow', admin=True, scopes=NARROW)}"}, 403),
    ):
        answer = httpx.get(url, headers=headers, **PLAIN)
        assert answer.status_code == status, (headers, answer.text)
    assert "herald_" not in httpx.get(url, **PLAIN).text


def test_a_proxy_is_not_this_machine(pair: LiveGateway) -> None:
    for header in ("x-forwarded-for", "forwarded", "x-real-ip", "via"):
        assert httpx.get(f"{pair.url()}/metrics", headers={header: "127.0.0.1"}, **PLAIN).status_code == 401


def test_a_page_whose_name_leads_here_is_not_this_machines_operator(pair: LiveGateway) -> None:
    for host, status in (("evil.example", 401), ("localhost:1", 200), ("[::1]:1", 200), ("127.0.0.1", 200), ("[", 400)):
        assert httpx.get(f"{pair.url()}/metrics", headers={"host": host}, **PLAIN).status_code == status, host


def test_calls_to_redis_that_fail_are_counted(exposed: LiveGateway) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    before = scrape(exposed.url(), **headers)
    exposed.kill_redis()
    ready = httpx.get(f"{exposed.url()}/readyz", **PLAIN)
    assert ready.json()["checks"]["redis"] == "does not answer"
    after = scrape(exposed.url(), **headers)
    assert since(before, after)("herald_redis_call_failures_total") >= 1
    assert after.value("herald_ready", check="redis") == 0
    exposed.start_redis()
    wait_for(lambda: httpx.get(f"{exposed.url()}/readyz", **PLAIN).json()["checks"]["redis"] == "ok")
    assert scrape(exposed.url(), **headers).value("herald_ready", check="redis") == 1


STRUCTURED = {"content-type": "application/cloudevents+json"}
VIEWER = [{"rps": ["*"], "ops": ["describe", "subscribe", "history"]}]
NARROW = [{"rps": ["/localhost/x/"], "ops": ["describe", "subscribe", "history"]}]
