"""Twelve domains that one sponsor brought in: links stand, and mend when any three fail, the founder among them.

One of them only calls out, as behind NAT. Run with `-s` to see the figures.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping

import pytest

from demo.harness.servers import wait_for
from tests.gateway.server import Prepared
from tests.membership.light_domain import LightDomain

pytestmark = [pytest.mark.processes, pytest.mark.long, pytest.mark.timeout(560)]

SHORT_NAMES = "abcdefghijkl"
FOUNDER, NAT = "a.test", "h.test"
LOST = 3
LINKS_MIN = 3
STARTED_WITHIN_S = 180.0
LINKED_WITHIN_S = 30.0
MENDED_WITHIN_S = 60.0
PATIENCE_S = 60.0
"""For what a machine that is busy with starting twelve domains refuses at first."""

Domains = dict[str, LightDomain]


@pytest.fixture(scope="module")
def twelve(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Domains]:
    """Twelve domains; all are peers of the founder, and of nobody else."""
    folder = tmp_path_factory.mktemp("twelve")
    made = {}
    for short in SHORT_NAMES:
        settings = {"overlay_callable": 0} if f"{short}.test" == NAT else {}
        made[f"{short}.test"] = LightDomain(folder, short, prepared, **settings)
    try:
        for domain in made.values():
            domain.start_redis()
            domain.spawn_gateway()
        for domain in made.values():
            domain.wait_gateway()
        for name, domain in made.items():
            if name != FOUNDER:
                wait_for(lambda domain=domain: peered(domain, made[FOUNDER]), PATIENCE_S, every_s=1.0)  # type: ignore[misc]
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


def component(links: Mapping[str, set[str]], start: str) -> set[str]:
    """The domains that are reached from one over links that both ends have."""
    reached: set[str] = set()
    todo = [start]
    while todo:
        one = todo.pop()
        if one not in reached:
            reached.add(one)
            todo += [other for other in links[one] if one in links.get(other, ())]
    return reached


def linked(twelve: Domains) -> bool:
    """Whether every directory is complete, and every domain has links."""
    found = [domain.ask("GET", "/api/v1/overlay") for domain in twelve.values()]
    return all(one["domains"] == len(twelve) and one["links"] >= LINKS_MIN for one in found)


def test_twelve_domains_link_by_themselves_and_mend(twelve: Domains) -> None:
    twelve[FOUNDER].ask("POST", "/api/v1/overlay/found")
    for name in twelve:
        if name != FOUNDER:
            twelve[name].ask("POST", "/api/v1/overlay/join", {"sponsor": FOUNDER})
    for domain in twelve.values():
        domain.overlay()
    for domain in twelve.values():
        wait_for(lambda domain=domain: domain.ask("GET", "/api/v1/overlay")["running"], STARTED_WITHIN_S, every_s=0.5)  # type: ignore[misc]
    began = time.monotonic()
    wait_for(lambda: linked(twelve), LINKED_WITHIN_S, every_s=0.5)
    print(f"\nlinks stand {time.monotonic() - began:.1f} s after all run")

    def whole() -> bool:
        return component({name: domain.linked_to() for name, domain in twelve.items()}, FOUNDER) == set(twelve)

    wait_for(whole, LINKED_WITHIN_S, every_s=1.0, about="one component")
    assert twelve[NAT].linked_to(), "a domain that only calls out takes part"

    others = [name for name in twelve if name not in (FOUNDER, NAT)]
    lost = {FOUNDER, *random.Random(12).sample(others, LOST - 1)}
    for name in lost:
        twelve[name].kill_everything()
    left = {name: domain for name, domain in twelve.items() if name not in lost}
    killed = time.monotonic()

    def mended() -> bool:
        now = {name: domain.linked_to() for name, domain in left.items()}
        return not any(one & lost for one in now.values()) and component(now, NAT) == set(left)

    wait_for(mended, MENDED_WITHIN_S, every_s=1.0)
    print(f"{', '.join(sorted(lost))} killed: found out by all, and mended, after {time.monotonic() - killed:.1f} s")
    assert {domain.ask("GET", "/api/v1/overlay")["domains"] for domain in left.values()} == {len(twelve)}
