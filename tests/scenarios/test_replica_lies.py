"""One member takes part in rendezvous points and misbehaves there: no event is lost, its score falls, and administrators are told why.

The liar is a peer of `a`, which sponsored it and is the home, and an acquaintance of `b` and `c`, as it would be with any domain far away.
Run with `-s` to see what was caught, by whom, after how long.
"""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from demo.harness.network import Network
from demo.harness.servers import wait_for
from eventing.overlay.scores import Deed
from eventing.peering.rules.acquaintances import AcquaintanceEnd
from eventing.peering.wire import messages as wire
from eventing.replication.rules import repeats
from tests.scenarios.lying_member import LyingMember
from tests.scenarios.test_acquaintances import acquaintances
from tests.scenarios.test_overlay_lies import wait_linked
from tests.scenarios.watching import AdminWatch

pytestmark = [pytest.mark.processes, pytest.mark.long, pytest.mark.timeout(400)]

LINKED_WITHIN_S = 90.0
"""Until the liar is an acquaintance: records, documents and admissions are read every few seconds."""
RPS = 4
"""Faults are counted every 20 s at most (replication/services/conduct.py: PACE_S); with several RPs there is one as often."""
DEMOTED_WITHIN_S = 180.0
"""In simulation half of the liars are demoted after 44 s, 99 % after 70 s."""
DROPPED_WITHIN_S = 240.0
LAZY_WITHIN_S = 90.0
"""For a demotion to reach the links (replication/scoring/effects.py: DEMOTE_S), on a busy machine too."""
REFUSED_WITHIN_S = 15.0
"""For all processes of a domain to learn of an acquaintance's end (peering/selectors/partners.py: CACHE_S), on a busy machine too."""
FLAPPED_EVERY_S = 0.5
ASKED_FOR_S, ASKED_EVERY_S = 20.0, 0.1
EVENT = "x" * 10_000
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def founded(three_domains: Network) -> Iterator[Callable[[], None]]:
    """Have a found the overlay and b and c join it, once; they leave it after the module."""

    @functools.cache
    def once() -> None:
        three_domains["a"].ask("POST", "/api/v1/overlay/found")
        for name in "bc":
            three_domains[name].ask("POST", "/api/v1/overlay/join", {"sponsor": "a.test"})

    yield once
    if once.cache_info().currsize:
        for name in three_domains.names:
            three_domains[name].ask("POST", "/api/v1/overlay/leave")


@pytest.fixture
def liar(network: Network, founded: Callable[[], None]) -> Iterator[LyingMember]:
    """A member with an overlay link with b."""
    founded()
    wait_linked(network)
    made = LyingMember(network, f"replica{next(_numbers)}").sponsored_by("a").link("b")
    yield made
    made.close()
    network.forget("a", made.domain)
    honest = {f"{name}.test" for name in network.names}
    accused = {row["carrier"] for name in network.names for row in network.misbehaviour(name)}
    assert not accused & honest


@pytest.fixture
def watch(liar: LyingMember, network: Network) -> AdminWatch:
    return AdminWatch(network)


def shared(network: Network, liar: LyingMember, *, home: str = "a") -> str:
    """An RP at which all take part, and at which b takes what the liar says."""
    rp = network.replicated_rp(home, *(name for name in network.names if name != home))
    liar.join(rp, home)
    for name in "bc":
        wait_for(
            lambda name=name: liar.name in acquaintances(network, name),  # type: ignore[misc]
            LINKED_WITHIN_S,
            every_s=0.2,
            about=f"{liar.domain} is an acquaintance of {name}",
        )
    liar.wait_taken(rp, "b")
    return rp


def runs_of(liar: LyingMember, sender: str, rp: str) -> list[wire.SealedRun]:
    """The runs that a domain has sent to the liar, repeated ones too."""
    parts = [part for request in list(liar.heard_of[f"{sender}.test"]) for part in request.parts if part.rp == rp]
    return [run for part in parts for run in part.runs]


@pytest.mark.soak
def test_a_replica_that_states_vectors_and_hands_on_nothing_is_demoted_and_no_event_is_lost(
    network: Network, liar: LyingMember, watch: AdminWatch
) -> None:
    rps = [shared(network, liar) for _ in range(RPS)]
    readers = {rp: network.reader(rp, "b") for rp in rps}
    for rp in rps:
        readers[rp].has(network.publish(rp, "a", 3))
    network.partition("a", "b")
    network.partition("c", "b")
    watch.again()
    until = watch.began + DEMOTED_WITHIN_S
    while not watch.told("b", "overlay.score.effect", peer=liar.domain, effect="demoted"):
        assert time.monotonic() < until, "b does not demote a link by which nothing arrives"
        for rp in rps:
            network.publish(rp, "a")
            liar.wait_runs(rp, len([one for one in network.published[rp] if one.startswith("a-")]), "a")
            liar.send("b", rp)
    told = watch.caught("b", "overlay.score.effect", peer=liar.domain, effect="demoted")
    assert told["reason"] in (Deed.SILENT.value, Deed.BROKEN_PROMISE.value)
    network.heal()
    for rp in rps:
        network.converged(rp)
        readers[rp].has(network.published[rp])
        assert not readers[rp].gaps
    # What b publishes from now on is announced to the liar, and sent to others.
    rp = rps[0]

    def announced() -> bool:
        seen = len(runs_of(liar, "b", rp))
        published = network.publish(rp, "b")
        readers[rp].has(published)
        wait_for(lambda: any(_states(liar, rp, len(_of(network.published[rp], "b")))), about="b states its vector")
        return len(runs_of(liar, "b", rp)) == seen

    wait_for(announced, LAZY_WITHIN_S, every_s=0.5, about="b sends the liar announcements only")
    network.converged(rp)


def _of(published: list[str], name: str) -> list[str]:
    return [one for one in published if one.startswith(f"{name}-")]


def _states(liar: LyingMember, rp: str, last: int) -> Iterator[bool]:
    """Whether requests of b state so many events of one feed."""
    for request in list(liar.heard_of["b.test"]):
        for part in request.parts:
            if part.rp == rp and part.own:
                yield part.have.get(part.own, 0) >= last


@pytest.mark.soak
def test_a_replica_that_prunes_and_grafts_without_end_is_demoted_and_then_dropped(
    network: Network, liar: LyingMember, watch: AdminWatch
) -> None:
    rp = shared(network, liar)
    reader = network.reader(rp, "c")
    liar.prunes = True
    ended = threading.Event()

    def flap() -> None:
        while not ended.wait(FLAPPED_EVERY_S):
            part = wire.RpPart(rp, liar.have(rp), graft=sorted(liar.have(rp)))
            liar.post("b", "exchange", wire.encode(wire.ExchangeRequest(wire.VERSION, [part], [liar.document])))

    flapping = threading.Thread(target=flap, daemon=True)
    publisher = network.publisher(rp, "b", every_s=FLAPPED_EVERY_S)
    watch.again()
    flapping.start()
    try:
        reason = Deed.FLAPPING.value
        for effect in ("demoted", "not-chosen", "condemned"):
            watch.caught("b", "overlay.score.effect", DROPPED_WITHIN_S, peer=liar.domain, effect=effect, reason=reason)
        watch.caught("b", "overlay.link.dropped", peer=liar.domain, reason="quarantine")
        watch.caught("b", "acquaintance.ended", acquaintance=liar.domain, reason=AcquaintanceEnd.MISBEHAVIOUR.value)
    finally:
        ended.set()
        flapping.join()
        publisher.stop()
    assert liar.name not in acquaintances(network, "b")

    def refused() -> bool:
        status, body = liar.post("b", "exchange", wire.encode(wire.ExchangeRequest(wire.VERSION, [wire.RpPart(rp)])))
        return status == 503 if status != 200 else bool(wire.answer(body).parts[0].error)  # it is no acquaintance

    wait_for(refused, REFUSED_WITHIN_S, every_s=0.5, about="b exchanges nothing with the liar")
    reader.has(network.published[rp])
    network.converged(rp)


def test_a_replica_that_loses_the_same_events_again_and_again_is_sent_no_more_than_its_budget(
    network: Network, liar: LyingMember, watch: AdminWatch
) -> None:
    rp = shared(network, liar)
    reader = network.reader(rp, "c")
    history = len(EVENT) * 100
    network.publish(rp, "b", 100, data=EVENT)
    liar.wait_runs(rp, 100, "b")
    before = _bytes(liar, rp)
    began, publisher = time.monotonic(), network.publisher(rp, "a", every_s=0.2)
    watch.again()
    rate = repeats.RATES[repeats.Repeat.LOST, True]

    def allowed() -> float:
        return 2 * history + rate.burst + rate.per_s * (time.monotonic() - began) + 2 * wire.REQUEST_BYTES_MAX

    asked = 0
    while time.monotonic() < began + ASKED_FOR_S or asked * history <= 2 * allowed():  # it asks for far more
        feeds = sorted(liar.have(rp))
        liar.send("b", rp, have={}, graft=feeds)
        asked += 1
        time.sleep(ASKED_EVERY_S)
    sent, took_s = _bytes(liar, rp) - before, time.monotonic() - began
    publisher.stop()
    print(f"b: sent {sent / 1e6:.1f} MB again of {asked * history / 1e6:.1f} MB asked for in {took_s:.0f} s")
    assert history < sent < allowed(), "it is sent again what it lost, within bounds"
    watch.caught("b", "misbehaviour.noted", kind="false-loss", carrier=liar.domain)
    watch.caught("b", "overlay.score.effect", peer=liar.domain, effect="demoted", reason=Deed.SLOW.value)
    reader.has(network.published[rp])
    network.converged(rp)


def _bytes(liar: LyingMember, rp: str) -> int:
    return sum(len(event) for run in runs_of(liar, "b", rp) for event in run.events)
