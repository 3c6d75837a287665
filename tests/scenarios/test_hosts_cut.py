"""One domain on six hosts, of which one is cut off, from the stores or as the primary, also one way only; at `replicated:all`, through a real network."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest

from demo.harness.servers import wait_for
from tests.hosts.domains import SpreadDomain, spread_domain
from tests.hosts.traffic import Traffic
from workers.schedule import PERIODS_S

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.processes, pytest.mark.timeout(600)]

NOTICED_WITHIN_S = 5.0
TAKEN_OVER_WITHIN_S = 5.0
BUSY_S = 15.0
"""By which a busy machine may be late: it runs thirty processes of this test."""
BACK_WITHIN_S = 60.0
CUT_S = 8.0
SHORT_S = 5.0
"""Periods of the tasks that are looked at."""


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpreadDomain]:
    with spread_domain(tmp_path_factory.mktemp("hosts"), seed=19) as made:
        yield made


@pytest.fixture(autouse=True)
def _at_the_desk(domain: SpreadDomain) -> Iterator[None]:
    with domain.network["desk"].inside():
        yield
    domain.network.heal()
    wait_for(domain.redis.is_whole, BACK_WITHIN_S, about="the stores are whole again")


def readiness(domain: SpreadDomain, name: str) -> tuple[int, dict[str, str]]:
    answer = httpx.get(f"{domain.gateways[name].url}/readyz", timeout=10, trust_env=False)
    return answer.status_code, answer.json()["checks"]


def runs(domain: SpreadDomain) -> dict[str, tuple[str, int]]:
    """Host and number of the newest run of each periodic task with a short period."""
    with domain.postgres.connect() as connection:
        rows = connection.execute("SELECT name, holder, fence FROM eventing_periodictask").fetchall()
    return {name: (holder.split()[0], fence) for name, holder, fence in rows if PERIODS_S[name] <= SHORT_S and holder}


def taken_over_s(domain: SpreadDomain, gone: str, before: dict[str, tuple[str, int]]) -> float:
    """Wait until other hosts have run what `gone` ran last; return how long that took."""
    began = time.monotonic()
    held = {name: fence for name, (holder, fence) in before.items() if holder == gone}
    assert held

    def is_taken() -> bool:
        now = runs(domain)
        return all(now[name][0] != gone and now[name][1] > fence for name, fence in held.items())

    wait_for(is_taken, TAKEN_OVER_WITHIN_S + BUSY_S, about=f"others run {sorted(held)}")
    return time.monotonic() - began


@pytest.mark.parametrize(
    "ways", ["out", pytest.param("both", marks=pytest.mark.soak), pytest.param("in", marks=pytest.mark.soak)]
)
def test_a_host_that_is_cut_from_the_stores_loses_and_doubles_nothing_and_others_do_its_work(
    domain: SpreadDomain, ways: str
) -> None:
    with Traffic(domain) as traffic:
        wait_for(lambda: "g1" in {holder for holder, _ in runs(domain).values()}, about="g1 runs periodic tasks")
        before = runs(domain)
        began = time.monotonic()
        domain.cut_off("g1", domain.STORES, ways)
        took_s = taken_over_s(domain, "g1", before)
        wait_for(
            lambda: readiness(domain, "g1")[0] == 503,
            NOTICED_WITHIN_S + BUSY_S,
            about="/readyz of the cut host says so",
        )
        noticed_s = time.monotonic() - began
        assert readiness(domain, "g1")[1]["redis"] != "ok"
        for name in ("g2", "g3"):
            assert readiness(domain, name)[0] == 200
            traffic.publishers[name].goes_on()
        time.sleep(max(0.0, CUT_S - (time.monotonic() - began)))  # the fault lasts so long
        assert readiness(domain, "g1")[1]["database"] != "ok"
        domain.network.heal()
        healed = time.monotonic()
        wait_for(lambda: readiness(domain, "g1")[0] == 200, BACK_WITHIN_S, about="the host is ready again")
        print(
            f"{ways}: taken over in {took_s:.1f} s, 503 seen after {noticed_s:.1f} s, ready {time.monotonic() - healed:.1f} s after healing"
        )
        traffic.publishers["g1"].goes_on()
        traffic.check()


@pytest.mark.parametrize(
    "ways", ["out", pytest.param("in", marks=pytest.mark.soak), pytest.param("both", marks=pytest.mark.soak)]
)
def test_a_primary_that_is_cut_from_its_replicas_is_replaced_without_a_loss_and_without_two_events_at_one_offset(
    domain: SpreadDomain, ways: str
) -> None:
    """Gateways reach the old primary as before; replicas and Sentinels do not, or are not reached."""
    with Traffic(domain) as traffic:
        old = domain.redis.primary()
        others = [name for name in domain.STORES if name != old.host.name]
        began = time.monotonic()
        domain.cut_off(old.host.name, others, ways)
        wait_for(lambda: domain.redis.primary() is not old, BACK_WITHIN_S, about="a replica is promoted")
        promoted_s = time.monotonic() - began
        for publisher in traffic.publishers.values():
            publisher.goes_on()
        written_s = time.monotonic() - began
        domain.network.heal()
        wait_for(domain.redis.is_whole, BACK_WITHIN_S, about="the old primary is a replica")
        print(f"{ways}: promoted after {promoted_s:.1f} s, all gateways publish after {written_s:.1f} s")
        for publisher in traffic.publishers.values():
            publisher.goes_on()
        traffic.check()


def test_clients_at_the_end_of_a_slow_and_lossy_path_lose_nothing(domain: SpreadDomain) -> None:
    for name in domain.GATEWAYS:
        domain.network.delay("desk", name, 0.1, jitter_s=0.02)
        domain.network.lose("desk", name, 0.02)
    try:
        with Traffic(domain) as traffic:
            for publisher in traffic.publishers.values():
                publisher.goes_on(8)
            traffic.check()
        assert domain.network.carried("desk", "g1")[1] > 0, "packets were lost"
    finally:
        domain.network.heal()
