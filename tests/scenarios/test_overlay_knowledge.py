"""Domains of an overlay know each other: rows travel, a domain that falls silent is suspected until it rebuts that, and an idle overlay
costs little.

Eight domains; one only calls out, as behind NAT. Run with `-s` to see the figures.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from demo.harness.servers import wait_for
from tests.gateway.server import Prepared
from tests.membership.light_domain import LightDomain

pytestmark = [pytest.mark.processes, pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(580)]

SHORT_NAMES = "abcdefgh"
FOUNDER, NAT, SILENT = "a.test", "h.test", "c.test"
PATIENCE_S = 90.0
KNOWN_WITHIN_S = 120.0
SUSPECTED_WITHIN_S = 200.0
IDLE_S = 60.0
IDLE_CPU = 0.01
"""Share of a core for the thread of an idle overlay. Decision 68 has what was measured; this is what no machine is too busy for."""

Domains = dict[str, LightDomain]


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Domains]:
    """Eight domains that joined with the founder, their overlay running."""
    folder = tmp_path_factory.mktemp("eight")
    made: Domains = {}
    for short in SHORT_NAMES:
        settings = {"overlay_callable": 0} if f"{short}.test" == NAT else {}
        made[f"{short}.test"] = LightDomain(folder, short, prepared, **settings)
    try:
        for domain in made.values():
            domain.start_redis()
            domain.spawn_gateway()
        for domain in made.values():
            domain.wait_gateway()
        founder = made[FOUNDER]
        founder.ask("POST", "/api/v1/overlay/found")
        for name, domain in made.items():
            if name != FOUNDER:
                wait_for(lambda domain=domain: peered(domain, founder), PATIENCE_S, every_s=1.0)  # type: ignore[misc]
                domain.ask("POST", "/api/v1/overlay/join", {"sponsor": FOUNDER})
        for domain in made.values():
            domain.overlay()
        yield made
    finally:
        for domain in made.values():
            domain.stop()


def peered(one: LightDomain, other: LightDomain) -> bool:
    try:
        one.approve(other)
        other.approve(one)
    except AssertionError:
        return False
    return True


def picture(domain: LightDomain) -> dict[str, Any]:
    """What a domain knows of the whole; empty while it knows nothing."""
    return domain.ask("GET", "/api/v1/overlay")["picture"] or {}


def told(domain: LightDomain, kind: str) -> list[dict[str, Any]]:
    page = domain.ask("GET", "/api/v1/rps/domain.admin/events?limit=500&after=earliest")
    return [event["data"] for event in page["events"] if event["type"] == f"io.herald.overlay.{kind}"]


def everywhere(eight: Domains, holds: Callable[[dict[str, Any]], bool]) -> Callable[[], bool]:
    return lambda: all((found := picture(one)) and holds(found) for one in eight.values())


def test_the_rows_of_all_reach_all_and_the_aggregate_is_the_count(eight: Domains) -> None:
    count = len(eight)
    began = time.monotonic()
    wait_for(
        everywhere(eight, lambda found: found["whole"]["reporting"]["value"] == count),
        KNOWN_WITHIN_S,
        every_s=1.0,
        about="the load of every domain is known to every other",
    )
    print(f"\nthe load of all is known to all after {time.monotonic() - began:.1f} s")
    wait_for(lambda: known_to(eight["b.test"], count), KNOWN_WITHIN_S, every_s=1.0, about="and of each single one")
    whole = picture(eight["b.test"])["whole"]
    assert (whole["known"], whole["live"], whole["reporting"]["coverage"]) == (count, count, 1.0)
    loads = {one["name"]: one["load"] for one in eight["b.test"].ask("GET", "/api/v1/overlay/domains")["items"]}
    assert loads[NAT] is not None, "also of the one that only calls out"
    stated = sum(load["links"] for load in loads.values())
    assert abs(stated - whole["sums"]["links"]["value"]) <= count, "the sum is that of the rows, some seconds apart"


def known_to(domain: LightDomain, count: int) -> bool:
    items = domain.ask("GET", "/api/v1/overlay/domains")["items"]
    return sum(one["load"] is not None for one in items) == count


def test_links_have_round_trip_times(eight: Domains) -> None:
    def measured() -> bool:
        links = [one for one in eight["b.test"].ask("GET", "/api/v1/overlay/links")["items"] if one["up"]]
        return bool(links) and all(one["rtt_ms"] or one["peer"] == NAT for one in links)

    wait_for(measured, KNOWN_WITHIN_S, every_s=1.0)


def test_an_idle_overlay_costs_little(eight: Domains) -> None:
    processes = {name: one.overlay_process.pid for name, one in eight.items() if one.overlay_process is not None}
    before = {name: cpu_s(pid) for name, pid in processes.items()}
    time.sleep(IDLE_S)
    shares = {name: (cpu_s(pid) - before[name]) / IDLE_S for name, pid in processes.items()}
    print("\nshares of a core: " + ", ".join(f"{name} {share:.2%}" for name, share in shares.items()))
    assert sum(shares.values()) / len(shares) <= IDLE_CPU


def cpu_s(pid: int) -> float:
    """Processor time of a process's first thread, which runs the overlay."""
    (first,) = [one for one in psutil.Process(pid).threads() if one.id == pid]
    return float(first.user_time + first.system_time)


def test_a_silent_domain_is_suspected_until_it_rebuts_that(eight: Domains) -> None:
    """Its overlay is halted, not its gateway: nothing answers for it."""
    others = {name: one for name, one in eight.items() if name not in (SILENT, NAT)}
    process = eight[SILENT].overlay_process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    halted = time.monotonic()
    try:
        wait_for(
            lambda: all(SILENT in suspected(one) for one in others.values()),
            SUSPECTED_WITHIN_S,
            every_s=2.0,
            about="all suspect it",
        )
        print(f"\n{SILENT} is suspected by all {time.monotonic() - halted:.0f} s after it fell silent")
        assert picture(eight["b.test"])["whole"]["live"] == len(eight) - 1
        (event,) = told(eight["b.test"], "suspected")
        assert event["domain"] == SILENT
        assert set(event["accusers"]) <= set(others)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    woken = time.monotonic()
    wait_for(
        lambda: not any(suspected(one) for one in others.values()),
        SUSPECTED_WITHIN_S,
        every_s=2.0,
        about="nobody suspects it any more",
    )
    print(f"and by nobody {time.monotonic() - woken:.0f} s after it woke")
    assert told(eight["b.test"], "suspicion.ended")[-1]["domain"] == SILENT
    assert eight["b.test"].ask("GET", "/api/v1/overlay")["domains"] == len(eight), "it never left the directory"


def suspected(domain: LightDomain) -> list[str]:
    return [one["domain"] for one in picture(domain).get("suspected", [])]
