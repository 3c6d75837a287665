"""One domain of four lies, each test in another way: it is detected, counted, and no reader at an honest domain is harmed.

The liar is a peer of `a` and `b`; `c` is not its peer, and learns of it by what the others prove. The liar is always the
quicker one: the honest way between two domains is cut until its lie has arrived.
"""

from __future__ import annotations

import functools
import math
import statistics
import time
from collections.abc import Callable, Iterator

import pytest

from demo.harness.network import Network
from demo.harness.servers import wait_for
from eventing.core.events.feeds import Feed
from eventing.core.seals import seals
from eventing.overlay.link_refusals import DEAF_S, DEAF_S_MAX
from eventing.peering.selectors.recent_keys import CACHE_S
from eventing.peering.wire import messages as wire
from tests.scenarios import lying_peer
from tests.scenarios.lying_peer import LyingPeer

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]
LIAR = "liar.test"
HUNG_S = 10.0  # until a request that is not answered has failed (replication/forwarding/outbound.py: CALL_S)
AT_ONCE_S = 8.0  # in which most events are at a peer that answers, on a busy machine too; behind one that hangs they take HUNG_S
CLAIM_HELD_S = 30.0  # in which events are at a peer though another lies: on a busy machine; it was 40 s
RESTARTED_S = 60.0  # and after the forwarder was killed, which takes up to 25 s to be back


@pytest.fixture(scope="module")
def liar_of(three_domains: Network) -> Iterator[Callable[[], LyingPeer]]:
    """The liar, a peer of a and b from when it is first asked for until the module's tests are over."""

    @functools.cache
    def peered() -> LyingPeer:
        made = LyingPeer(three_domains)
        for name in "ab":
            made.peer(name)
        return made

    yield peered
    if not peered.cache_info().currsize:
        return
    for name in "abc":
        three_domains[name].ask("DELETE", f"/api/v1/quarantines/{LIAR}", expect=(200, 204, 404))
        three_domains.forget(name, LIAR)
    peered().close()


@pytest.fixture
def liar(network: Network, liar_of: Callable[[], LyingPeer]) -> LyingPeer:
    """The liar, when the domains run."""
    return liar_of()


@pytest.fixture
def rp(network: Network, liar: LyingPeer) -> str:
    """An RP of `a` that everybody carries, the liar too."""
    made = network.replicated_rp("a", "b", "c")
    liar.join(made, "a")
    liar.wait_taken(made, "a", "b")
    wait_for(lambda: LIAR in network.participants(made, "c"), about="c knows of the liar")
    return made


@pytest.mark.parametrize(
    ("lie", "kind"),
    [
        (lying_peer.tampered, "tampered"),
        (lying_peer.dropped, "tampered"),
        (lying_peer.reordered, "tampered"),
        (None, "forged"),
    ],
    ids=["tampering", "dropping-from-the-middle", "reordering", "forging-the-feed-of-another"],
)
def test_a_carrier_cannot_lie_about_the_events_of_another(
    network: Network, liar: LyingPeer, rp: str, lie: Callable[[wire.SealedRun], wire.SealedRun] | None, kind: str
) -> None:
    reader = network.reader(rp, "b")
    network.partition("a", "b")
    network.partition("c", "b")
    events = network.publish(rp, "a", 10)
    before = network.counted("b", kind, carrier=LIAR)
    runs = liar.wait_runs(rp, 10, "a")
    liar.send("b", rp, [lie(run) if lie else lying_peer.forged(run, liar.key) for run in runs])
    wait_for(lambda: network.counted("b", kind, carrier=LIAR) > before, about=f"b counts {kind}")
    assert not set(events) & set(reader.ids)
    network.heal()
    reader.has(events)
    network.converged(rp)
    assert not network.quarantined("b"), "the origin is not to blame for what a carrier does"


def test_a_run_that_is_sent_again_and_again_is_stored_once(network: Network, liar: LyingPeer, rp: str) -> None:
    reader = network.reader(rp, "b")
    events = network.publish(rp, "a", 10)
    runs = liar.wait_runs(rp, 10, "a")
    reader.has(events)
    for _ in range(5):
        liar.send("b", rp, runs)
    reader.has(network.publish(rp, "a", 1))
    network.converged(rp)
    assert len(reader.ids) == 11


def test_a_request_that_is_replayed_is_refused(network: Network, liar: LyingPeer, rp: str) -> None:
    body = wire.encode(wire.ExchangeRequest(wire.VERSION, [wire.RpPart(rp, liar.have(rp))]))
    request = liar.signed("b", "exchange", body)
    before = network.counted("b", "replayed")
    assert liar.post("b", "exchange", body, request)[0] == 200
    status, _ = liar.post("b", "exchange", body, request)
    assert 400 <= status < 500
    assert network.counted("b", "replayed") > before
    # The same request, to a domain that it was not made for.
    fresh = liar.signed("b", "exchange", body)
    fresh.url = fresh.url.replace(network["b"].url, network["a"].url)
    assert 400 <= liar.post("a", "exchange", body, fresh)[0] < 500


def test_a_message_beyond_the_bounds_is_refused_before_it_is_read(network: Network, liar: LyingPeer, rp: str) -> None:
    before = network.counted("b", "oversize", carrier=LIAR)
    status, _ = liar.post("b", "exchange", b"\0" * (wire.BODY_BYTES_MAX + 1))
    assert status == 413
    wait_for(lambda: network.counted("b", "oversize", carrier=LIAR) > before)


def test_a_peer_that_floods_is_told_to_wait_and_others_are_not_slowed(
    network: Network, liar: LyingPeer, rp: str
) -> None:
    reader = network.reader(rp, "b")
    network["b"].ask("PATCH", f"/api/v1/peers/{LIAR}", {"requests_per_s": 5})
    body = wire.encode(wire.ExchangeRequest(wire.VERSION, [wire.RpPart(rp, liar.have(rp))]))
    before = network.counted("b", "flooding", carrier=LIAR)
    deadline = time.monotonic() + 60
    refused = 0
    while not refused and time.monotonic() < deadline:
        status, _ = liar.post("b", "exchange", body)
        refused += status in (429, 503)
    assert refused
    wait_for(lambda: network.counted("b", "flooding", carrier=LIAR) > before)
    reader.has(network.publish(rp, "a", 10), within_s=45)
    network["b"].ask("PATCH", f"/api/v1/peers/{LIAR}", {"requests_per_s": 100})


def test_a_peer_that_claims_events_which_were_never_published_is_found_out(
    network: Network, liar: LyingPeer, rp: str
) -> None:
    network.publish(rp, "b", 5)
    feed, last = next(
        (key, sequence)
        for key, sequence in network.converged(rp).items()
        if key == Feed("b.test", str(network["b"].ask("GET", f"/api/v1/rps/{rp}")["epoch"])).key
    )
    before = network.counted("b", "false-vector", carrier=LIAR)
    liar.claims[rp] = {feed: last + 1000}
    liar.send("b", rp)
    wait_for(lambda: network.counted("b", "false-vector", carrier=LIAR) > before)
    liar.claims.clear()
    network.reader(rp, "c").has(network.publish(rp, "b", 5))


@pytest.mark.parametrize("ahead", [1, 2**50])
def test_a_false_vector_of_a_domain_s_feed_stops_none_of_its_events(
    network: Network, liar: LyingPeer, rp: str, ahead: int
) -> None:
    """Neither claimed in a request, nor in every answer, also after the forwarder of that domain was killed."""
    reader = network.reader(rp, "b")
    reader.has(network.publish(rp, "a", 5))
    epoch = str(network["a"].ask("GET", f"/api/v1/rps/{rp}")["epoch"])
    feed = Feed("a.test", epoch).key
    liar.claims[rp] = {feed: 5 + ahead}
    liar.send("a", rp)
    reader.has(network.publish(rp, "a", 5), within_s=CLAIM_HELD_S)
    shown = {one["domain"]: one for one in network["a"].ask("GET", f"/api/v1/rps/{rp}")["replicas"]}[LIAR]
    assert shown["vector"].get(feed, 0) <= 10, "nobody is shown to hold more than was published"
    network.kill("a", "forwarder")
    liar.send("a", rp)
    reader.has(network.publish(rp, "a", 5), within_s=RESTARTED_S)
    liar.claims.clear()
    network.converged(rp)


def test_what_a_carrier_withholds_is_asked_for_and_comes_from_another(
    network: Network, liar: LyingPeer, rp: str
) -> None:
    """The liar hands on hashes instead of events, as if `a` kept them no more, which `a` never said."""
    reader = network.reader(rp, "b")
    network.partition("a", "b")
    network.partition("c", "b")
    events = network.publish(rp, "a", 10)
    runs = liar.wait_runs(rp, 10, "a")
    answer = liar.send("b", rp, [lying_peer.withheld(run) for run in runs])
    assert seals.seal_read(runs[-1].seal).feed.key in answer.parts[0].graft
    assert not set(events) & set(reader.ids), "what stands behind a hole waits until the hole is filled"
    network.heal()
    reader.has(events)
    assert not reader.gaps


def test_a_peer_that_hands_on_nothing_stops_nobody(network: Network, liar: LyingPeer, rp: str) -> None:
    """The liar says that it holds everything that `a` published, and hands on nothing."""
    reader = network.reader(rp, "b")
    network.publish(rp, "a", 1)
    network.converged(rp)
    liar.claims[rp] = {feed: last + 20 for feed, last in network.vector(rp, "a").items()}
    liar.send("b", rp)
    reader.has(network.publish(rp, "a", 20))
    network.converged(rp)
    liar.claims.clear()


@pytest.mark.long
def test_a_peer_that_never_answers_and_one_that_swallows_everything_slow_nobody_and_are_seen(
    network: Network, liar: LyingPeer, rp: str
) -> None:
    """`c` takes connections and never answers; the liar answers, and keeps nothing of what it is sent."""
    reader = network.reader(rp, "b")
    network.publish(rp, "a", 1)
    network.converged(rp)  # each has said what it holds: of who never did, nobody knows what it lacks
    network.partition("a", "c", blackhole=True)
    network.partition("b", "c", blackhole=True)
    liar.deaf = True
    asked, began = len(liar.requests), time.monotonic()
    took_s: list[float] = []
    silent: dict[str, object] = {}

    def arrive(count: int) -> None:
        published = time.monotonic()
        reader.has(network.publish(rp, "a", count))
        took_s.append(time.monotonic() - published)

    while silent.get("failure") != "unreachable":
        assert time.monotonic() < began + HUNG_S + 110, f"a does not see that c hangs: {silent}"
        arrive(2)
        silent = network["a"].ask("GET", "/api/v1/peers/c.test/delivery")
    assert silent["next_try_at"], "it is tried again"
    arrive(4)
    assert statistics.median_high(took_s) < AT_ONCE_S, took_s
    wait_for(
        lambda: network["a"].ask("GET", "/api/v1/peers/c.test/delivery")["backlog"] >= 4, 60, about="the backlog of c"
    )
    wait_for(
        lambda: network["a"].ask("GET", "/api/v1/peers/liar.test/delivery")["backlog"] >= 4,
        60,
        about="the liar's backlog",
    )
    deaf = network["a"].ask("GET", "/api/v1/peers/liar.test/delivery")
    assert (deaf["failures"], deaf["stopped_at"]) == (0, None), "it answers: that is no failure"

    def problem_of(name: str) -> object:
        return (network["a"].ask("GET", f"/api/v1/peers/{name}.test")["problem"] or {}).get("kind")

    wait_for(lambda: problem_of("liar") == "not-taking", 60, about="the liar is named")
    wait_for(lambda: problem_of("c") == "unreachable", 60, about="c is named")
    sent = [part for request in liar.requests[asked:] for part in request.parts if part.rp == rp and part.runs]
    # By a and by b: at once, after 0.5 s, 1 s, 2 s, ... and then each minute.
    passed_s = time.monotonic() - began
    sent_max = 2 * (1 + math.log2(1 + passed_s / DEAF_S) + passed_s / DEAF_S_MAX)
    assert len(sent) <= sent_max, "what it does not take is put off, longer each time"
    liar.deaf = False
    network.heal()
    network.converged(rp)
    reader.has(network.published[rp])


@pytest.mark.long
def test_an_origin_that_tells_two_stories_is_quarantined_everywhere_until_an_administrator_decides(
    network: Network, liar: LyingPeer, rp: str
) -> None:
    readers = {name: network.reader(rp, name) for name in "abc"}
    network.partition("a", "b")
    network.partition("c", "b")
    one, other = liar.run_made(rp, 1, ["yes"] * 3), liar.run_made(rp, 1, ["no"] * 3)
    assert seals.equivocate(one.seal, other.seal)
    liar.send("a", rp, [one])
    liar.send("b", rp, [other])
    network.heal()
    for name in "abc":
        wait_for(lambda name=name: LIAR in network.quarantined(name), 60, about=f"{name} quarantines")  # type: ignore[misc]
    quarantined_at = time.monotonic()
    assert any(network.counted(name, "equivocation") for name in "abc")
    events = network.publish(rp, "a", 5) + network.publish(rp, "b", 5)
    for reader in readers.values():
        reader.has(events)
    time.sleep(max(0.0, quarantined_at + CACHE_S - time.monotonic()))  # a gateway reads quarantines so often
    liar.send("a", rp, [liar.run_made(rp, 4, ["more"], previous=one.seal)])
    assert "liar-4" not in readers["a"].ids
    network["a"].ask("DELETE", f"/api/v1/quarantines/{LIAR}")
    assert LIAR not in network.quarantined("a")
    assert LIAR in network.quarantined("b"), "each domain decides for itself"
