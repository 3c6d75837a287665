"""Two complete domains that exchange events, with JSON log lines and a collector of spans: what they tell of it all."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from herald import Client, Received

from demo.harness.network import ADMIN, Network
from demo.harness.servers import ROOT, Domain, wait_for
from tests.gateway.server import PLAIN, Prepared
from tests.telemetry.collector import Collector, Span
from tests.telemetry.scraping import Scrape, scrape

pytestmark = [pytest.mark.long, pytest.mark.processes]

PAYLOAD = "a-payload-that-nobody-logs"
TRACED = 3  # events with a trace of their own
PROCESSES = {"gateway", "worker", "worker-pool", "forwarder", "deliverer"}
METRIC = re.compile(r"\b(?:herald|process)_[a-z0-9_]+\b")
GRAFANA = ROOT / "docs" / "grafana"


@dataclass(frozen=True)
class Exchanged:
    """What was done before the tests look: at A an RP with a replica at B; published at A, read at B."""

    network: Network
    collector: Collector
    rp: str
    traces: list[str]
    wrapped: str
    received: list[dict[str, object]]


def traceparent(trace: str) -> str:
    return f"00-{trace}-{secrets.token_hex(8)}-01"


@pytest.fixture(scope="module")
def _sent_soon() -> Iterator[None]:
    """The domains send their spans each 200 ms; the exporter's default is 5 s."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
        yield


@pytest.fixture(scope="module")
def exchanged(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared, _sent_soon: None) -> Iterator[Exchanged]:
    settings: dict[str, Any] = {"log_format": "json", "records": 0, "push": 1}
    with (
        Collector() as collector,
        Network(
            tmp_path_factory.mktemp("two"), "ab", seed=prepared.migrated, otlp_url=collector.url, **settings
        ) as network,
    ):
        network.peer("a", "b")
        rp = network.replicated_rp("a", "b", lease_s=3600)
        traces = [secrets.token_hex(16) for _ in range(TRACED)]
        wrapped = secrets.token_hex(16)
        received = asyncio.run(_exchange(network, rp, traces, wrapped))
        network["b"].admin.post("/api/v1/rps", json={"lease_s": 1}).raise_for_status()
        for member in network.members.values():
            _misuse(member, rp)
        yield Exchanged(network, collector, rp, traces, wrapped, received)


async def _exchange(network: Network, rp: str, traces: list[str], wrapped: str) -> list[dict[str, object]]:
    """Publish at A, read at B over a WebSocket. The events there, by arrival."""
    token = network["b"].token(admin=True, subject=ADMIN)
    async with Client(network["b"].url, token=token) as client, client.subscribe(rp, from_="now") as events:
        await asyncio.to_thread(_publish, network["a"], rp, traces, wrapped)
        found = [await asyncio.wait_for(anext(events), 60) for _ in range(TRACED + 1)]
        return [item.event for item in found if isinstance(item, Received)]


def _publish(at: Domain, rp: str, traces: list[str], wrapped: str) -> None:
    path = f"/api/v1/rps/{rp}/events"
    with at.http(admin=True, subject=ADMIN) as http:
        for trace in traces:
            parent = traceparent(trace)
            event = {"specversion": "1.0", "id": trace, "source": "/tests", "type": "traced", "data": PAYLOAD}
            event |= {"traceparent": parent, "tracestate": "vendor=1"}
            headers = {"content-type": "application/cloudevents+json", "traceparent": parent}
            assert http.post(path, content=json.dumps(event), headers=headers).status_code == 201
        headers = {"traceparent": traceparent(wrapped), "tracestate": "vendor=2", "x-request-id": "of-the-wrapped"}
        assert http.post(path, json={"data": PAYLOAD}, headers=headers).status_code == 201


def _misuse(member: Domain, rp: str) -> None:
    """What could bring a credential or a payload into a log line: refusals, credentials in queries, things that break."""
    token = member.token()
    httpx.get(f"{member.url}/api/v1/rps/{rp}/events", params={"access_token": token}, **PLAIN)
    httpx.get(f"{member.url}/api/v1/rps/unknown/events", params={"access_token": token}, **PLAIN)
    httpx.get(f"{member.url}/api/v1/rps", headers={"authorization": f"Bearer {token}x"}, **PLAIN)
    httpx.get(f"{member.url}/nowhere", params={"access_token": token}, cookies={"a": "cookie-nobody-logs"}, **PLAIN)
    httpx.post(f"{member.url}/api/v1/rps/{rp}/events", content=PAYLOAD, headers={"ce-id": "1"}, **PLAIN)
    httpx.post(f"{member.url}/api/v1/rps", content=b"{" + PAYLOAD.encode(), headers=_bearer(token), **PLAIN)
    member.manage("login_link")


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}", "content-type": "application/json"}


def ready_scrape(exchanged: Exchanged, at: str, *names: str) -> Scrape:
    """A scrape in which these series are there already: tasks measure the domain each 5 s."""

    def told() -> Scrape | None:
        scraped = scrape(exchanged.network[at].url)
        return scraped if set(names) <= scraped.names else None

    return wait_for(told, 60, every_s=0.2, about=f"{names} are told") or Scrape("")


def scrape_with(exchanged: Exchanged, at: str, about: str, holds: Callable[[Scrape], bool]) -> Scrape:
    """The first scrape of which this holds: each process states its figures every few seconds."""

    def told() -> Scrape | None:
        scraped = scrape(exchanged.network[at].url)
        return scraped if holds(scraped) else None

    return wait_for(told, 60, every_s=0.2, about=about) or Scrape("")


# Traces


def test_an_events_trace_reaches_from_the_publish_at_one_domain_to_the_delivery_at_the_other(
    exchanged: Exchanged,
) -> None:
    collector, traces = exchanged.collector, {*exchanged.traces, exchanged.wrapped}
    wait_for(lambda: _told(collector, "deliver", "b.test") >= traces, about="the deliveries' spans")
    wait_for(lambda: _told(collector, "append", "a.test") >= traces, about="the appends' spans")
    for trace in exchanged.traces:
        wait_for(
            lambda trace=trace: collector.of(trace, "POST /api/v1/rps/{id}/events", "a.test"),  # type: ignore[misc]
            about="the span of the publish",
        )
        publish = collector.of(trace, "POST /api/v1/rps/{id}/events", "a.test")
        assert len(publish) == 1
        assert publish[0].parent, "goes on from the publisher's own span"
        assert publish[0].attributes["http.response.status_code"] == 201
        assert publish[0].attributes["herald.rp"] == exchanged.rp
    delivered = [span for span in collector.spans if span.name == "deliver" and span.domain == "b.test"]
    assert sum(span.attributes["messaging.batch.message_count"] for span in delivered) == TRACED + 1
    assert {span.attributes["messaging.destination.name"] for span in delivered} == {exchanged.rp}
    assert {span.attributes["herald.readers"] for span in delivered} == {1}


def _told(collector: Collector, name: str, domain: str) -> set[str]:
    """The traces that spans of this name belong to or are linked to: of a batch one is the parent, the others links."""
    spans = [span for span in collector.spans if (span.name, span.domain) == (name, domain)]
    return {span.trace for span in spans} | {trace for span in spans for trace, _ in span.links}


def test_an_exchange_between_domains_is_one_trace(exchanged: Exchanged) -> None:
    collector = exchanged.collector

    def of_both() -> list[tuple[Span, Span]]:
        spans = collector.spans
        asked = {span.id: span for span in spans if span.name == "exchange" and span.domain == "a.test"}
        served = [span for span in spans if span.name == "POST /federation/v1/exchange" and span.domain == "b.test"]
        return [(asked[span.parent], span) for span in served if span.parent in asked]

    both = wait_for(of_both, about="the span of an exchange at B goes on from the one at A")
    assert all(one.trace == other.trace for one, other in both)
    assert all(one.process == "forwarder" and other.process == "gateway" for one, other in both)


def test_tasks_and_djangos_requests_have_spans_too(exchanged: Exchanged) -> None:
    wanted = {"task reap_leases", "task sweep_peers", "POST rp.create"}

    def names() -> set[str]:
        return {span.name for span in exchanged.collector.spans}

    wait_for(lambda: names() >= wanted, about="their spans")
    assert not [name for name in names() if name.endswith(("livez", "readyz", "metrics"))]


def test_spans_hold_no_credential_and_no_payload(exchanged: Exchanged) -> None:
    for secret in (PAYLOAD, exchanged.network["a"].token(), exchanged.network["b"].token()):
        assert secret.encode() not in exchanged.collector.raw


def test_events_carry_their_trace_unchanged_and_wrapped_ones_that_of_their_request(exchanged: Exchanged) -> None:
    by_trace = {str(event["traceparent"]).split("-")[1]: event for event in exchanged.received}
    assert set(by_trace) == {*exchanged.traces, exchanged.wrapped}
    assert {by_trace[trace]["tracestate"] for trace in exchanged.traces} == {"vendor=1"}
    assert by_trace[exchanged.wrapped]["tracestate"] == "vendor=2"
    assert by_trace[exchanged.wrapped]["type"] == "io.herald.message"


# Metrics


def test_every_process_is_measured_and_tasks_are(exchanged: Exchanged) -> None:

    def all_told(scraped: Scrape) -> bool:
        return (
            {one["process"] for one in scraped.labels("process_cpu_seconds_total")} >= PROCESSES
            and scraped.value("herald_leases_reaped_total") >= 1
            and scraped.value("herald_tasks_total", task="reap_leases", outcome="ok") >= 1
            and scraped.value("herald_task_duration_seconds_count", task="sweep_peers") >= 1
        )

    scraped = scrape_with(exchanged, "b", "each process and its tasks", all_told)
    assert {one["process"] for one in scraped.labels("process_cpu_seconds_total")} == PROCESSES
    assert scraped.value("process_cpu_seconds_total") > 1
    (build,) = scraped.labels("herald_build_info")
    assert build["domain"] == "b.test"
    assert scraped.value("herald_build_info") == 1
    assert scraped.value("herald_tasks_total", outcome="failed") == 0


def test_forwarding_is_told_by_peer_at_both_ends(exchanged: Exchanged) -> None:

    def sent(scraped: Scrape) -> bool:
        return (
            {"herald_forward_backlog_events", "herald_forward_in_flight_seconds"} <= scraped.names
            and scraped.value("herald_forwarded_events_total", peer="b.test") >= TRACED + 1
            and scraped.value("herald_forward_requests_total", peer="b.test", outcome="ok") >= 1
            and scraped.value("herald_forward_request_duration_seconds_count") >= 1
            and scraped.value("herald_seals_total") >= 1
            and scraped.value("herald_forward_backlog_events", peer="b.test") == 0
            and scraped.value("herald_peers", state="active") == 1
        )

    def received(scraped: Scrape) -> bool:
        return (
            scraped.value("herald_received_events_total", peer="a.test") == TRACED + 1
            and scraped.value("herald_received_runs_total", peer="a.test") >= 1
            and scraped.value("herald_peer_requests_total", peer="a.test", outcome="ok") >= 1
            and scraped.value("herald_events_delivered_total") >= TRACED + 1
        )

    scrape_with(exchanged, "a", "what A forwarded", sent)
    scrape_with(exchanged, "b", "what B received", received)


def test_quotas_are_told_as_sql_has_them(exchanged: Exchanged) -> None:
    ready_scrape(exchanged, "b", "herald_domain_measured_timestamp_seconds")

    def measured() -> Scrape | None:
        scraped = scrape(exchanged.network["b"].url)
        return scraped if scraped.value("herald_rendezvous_points") >= 1 else None

    scraped = wait_for(measured, 60, every_s=0.2, about="a measurement since the replica was made") or Scrape("")
    assert scraped.value("herald_rendezvous_points_limit") == 100_000
    assert 0 < scraped.value("herald_history_reserved_bytes") < scraped.value("herald_history_reserved_limit_bytes")
    assert "herald_outbox_entries" in scraped.names
    assert scraped.value("herald_ready", check="database") == 1


@pytest.mark.parametrize("file", ["herald.json", "alerts.yml"])
def test_every_metric_of_the_dashboard_and_the_alerts_is_in_a_scrape(exchanged: Exchanged, file: str) -> None:
    names = set(METRIC.findall(_queries(GRAFANA / file)))
    assert len(names) >= 15, "the file asks for something"

    def missing() -> set[str]:
        return names - scrape(exchanged.network["a"].url).names - scrape(exchanged.network["b"].url).names

    with contextlib.suppress(AssertionError):
        wait_for(lambda: not missing(), every_s=0.2)
    assert not missing()


def _queries(path: Path) -> str:
    """What is asked of Prometheus, without the words around it."""
    text = path.read_text()
    if path.suffix == ".json":
        panels = json.loads(text)["panels"]
        return "\n".join(target["expr"] for panel in panels for target in panel.get("targets", ()))
    return "\n".join(line for line in text.splitlines() if line.strip().startswith("expr:"))


# Log lines


def test_every_line_is_an_object_that_says_where_it_comes_from(exchanged: Exchanged) -> None:
    for member in exchanged.network.members.values():
        for path in sorted((member.data_dir / "logs").glob("*.log")):
            if path.name == "redis.log":  # its own format
                continue
            for line in path.read_text().splitlines():
                said = json.loads(line)
                assert {"time", "level", "process", "logger", "message"} <= set(said)
                assert said["process"] == path.stem
        for line in member.output.splitlines():
            assert json.loads(line)["process"], line


def test_no_line_holds_a_credential_or_a_payload(exchanged: Exchanged) -> None:
    logged = ""
    for member in exchanged.network.members.values():
        logged += member.output + "".join(path.read_text() for path in (member.data_dir / "logs").glob("*.log*"))
        for secret in (member.token(), member.token(admin=True, subject=ADMIN)):
            assert secret not in logged
            assert secret.rpartition(".")[2] not in logged, "not its signature either"
    assert "a.test" in logged, "there is something to look at"
    for secret in (PAYLOAD, "cookie-nobody-logs", "access_token=ey", "/login/once/", "PRIVATE KEY"):
        assert secret not in logged
