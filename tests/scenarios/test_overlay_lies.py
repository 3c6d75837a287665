"""One member of the overlay lies, each test in another way: it is caught, administrators are told, and no honest link suffers.

The liar is a peer of `a`, which sponsored it. `b` and `c` know it by its record only, as it would be with any domain far away. Run with `-s`
to see what was caught, by whom, after how long.
"""

from __future__ import annotations

import functools
import gzip
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest
from msgspec.structs import replace

from demo.harness.network import Network
from demo.harness.servers import wait_for
from eventing.overlay.directory import RECORDS_MAX
from eventing.overlay.directory_messages import News, Records, Want
from eventing.overlay.directory_records import DAY_S, QUOTA_PER_DAY, DomainRecord
from eventing.overlay.ended_links import ENDED_FREE
from eventing.overlay.gossip_messages import GossipMessage, GossipPart
from eventing.overlay.links import SUSPICIOUS, Disconnect, Neighbor, NeighborReply, Reason
from eventing.overlay.liveness import Alive, Beat
from eventing.overlay.passive_view import Shuffle
from eventing.overlay.suspicion import QUORUM, REBUT_S
from eventing.overlay.suspicion_rows import Accusations, Rebuttals, accusation_payload
from eventing.peering.wire.endpoints import OVERLAY_BYTES_MAX
from eventing.peering.wire.refusals import OVERLAY_REQUESTS
from tests.scenarios.lying_member import LyingMember, Newcomer
from tests.scenarios.test_overlay import links
from tests.scenarios.watching import AdminWatch

pytestmark = [pytest.mark.processes, pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(300)]

SHAPE = [("a", "b"), ("a", "c")]
HONEST = ("a.test", "b.test", "c.test")
LINKED_WITHIN_S = 60.0
CAUGHT_WITHIN_S = 60.0
PROVED_WITHIN_S = 60.0
"""For proof to reach all: news are announced within a second, on a busy machine too."""
LATEST_VERSION = 2**64 - 1
BOMB_BYTES = 64 * 1024**2
AT_ONCE = 4
LATE_S = 6.0
"""Later than overlay requests wait (membership/process/transport.py: CALL_S)."""
LOST_WITHIN_S = 45.0
CROWD = 1000
CROWD_WITHIN_S = 120.0
PUBLISHED_WITHIN_S = 30.0
COALITION = QUORUM + 1
ACCUSED_S = 2 * REBUT_S
"""An accusation that is not rebutted has an effect after REBUT_S."""
ACCUSED_EVERY_S = 8.0
"""Rows of one owner that are closer are not passed on."""
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def founded(three_domains: Network) -> Iterator[Callable[[], None]]:
    """Have a found the overlay and b and c join it, once; they leave it after the module."""
    network = three_domains

    @functools.cache
    def once() -> None:
        network["a"].ask("POST", "/api/v1/overlay/found")
        for name in "bc":
            network[name].ask("POST", "/api/v1/overlay/join", {"sponsor": "a.test"})

    yield once
    if once.cache_info().currsize:
        for name in network.names:
            network[name].ask("POST", "/api/v1/overlay/leave")


@pytest.fixture
def overlay(network: Network, founded: Callable[[], None]) -> Iterator[Network]:
    """The overlay with all links among the honest, before and after; and nobody honest was accused."""
    founded()
    wait_linked(network)
    yield network
    wait_linked(network)
    accused = {row["carrier"] for name in network.names for row in network.misbehaviour(name)}
    assert not accused.intersection(HONEST)


@pytest.fixture
def liar(overlay: Network) -> Iterator[LyingMember]:
    """A member that b and c know by its record, and that has a link with b."""
    made = LyingMember(overlay, f"liar{next(_numbers)}").sponsored_by("a").link("b")
    for name in "bc":  # gateways know it by the stored directory, which is written some seconds later
        wait_for(
            lambda name=name: made.domain in found(overlay, name, made.domain),  # type: ignore[misc]
            LINKED_WITHIN_S,
            every_s=0.2,
            about=f"{name} has stored the record of {made.domain}",
        )
    yield made
    made.close()
    overlay.forget("a", made.domain)


@pytest.fixture
def watch(liar: LyingMember, overlay: Network) -> AdminWatch:
    return AdminWatch(overlay)


def wait_linked(network: Network) -> None:
    """Wait until the honest domains have links with each other."""
    for name, others in (("a", "bc"), ("b", "ac"), ("c", "ab")):
        wait_for(
            lambda name=name, others=others: {f"{one}.test" for one in others} <= set(links(network, name)),  # type: ignore[misc]
            LINKED_WITHIN_S,
            every_s=0.2,
            about=f"{name} has links with {others}",
        )


def found(network: Network, at: str, search: str) -> list[str]:
    """Names of the domains of the directory that contain this."""
    page = network[at].ask("GET", f"/api/v1/overlay/domains?search={search}&limit=100")
    return [str(item["name"]) for item in page["items"] if item["held"]]


def version(network: Network, at: str, of: str) -> int:
    """The version of a domain's record that another holds."""
    return int(network[at].ask("GET", f"/api/v1/overlay/domains/{of}")["version"])


def test_what_a_shuffle_poisoner_names_is_not_read_and_its_link_ends_like_any_other(
    overlay: Network, liar: LyingMember, watch: AdminWatch
) -> None:
    named = tuple(f"poison-{number}.test" for number in range(8))
    for _ in range(10):
        liar.tell("b", Shuffle(liar.domain, named, 0), NeighborReply(False, named[:4]))
    liar.tell("b", Disconnect(Reason.EVICTED, named[4:]))
    watch.caught("b", "overlay.link.dropped", peer=liar.domain, reason="evicted")
    assert found(overlay, "b", "poison-") == []
    assert not [made for made in watch.told("b", "overlay.link.made") if made["peer"] in named]


def test_a_burst_of_false_domains_is_no_larger_than_their_sponsors_quota_and_a_number_used_twice_convicts_it(
    overlay: Network, liar: LyingMember, watch: AdminWatch
) -> None:
    burst = [liar.sponsor(Newcomer(f"sybil-{number}", overlay), number) for number in range(2, 5 * QUOTA_PER_DAY)]
    liar.tell("b", Records(tuple(one.record_made() for one in burst)))
    watch.caught("b", "misbehaviour.noted", kind="false-record", carrier=liar.domain)
    wait_for(lambda: len(found(overlay, "b", "sybil-")) == QUOTA_PER_DAY - 2, CAUGHT_WITHIN_S, every_s=0.1)
    twice = liar.sponsor(Newcomer("twice", overlay), 2)
    watch.again()
    liar.tell("b", Records((twice.record_made(),)))
    for name in overlay.names:
        watch.caught(name, "overlay.equivocation", PROVED_WITHIN_S, domain=liar.domain)
    watch.caught("b", "overlay.link.dropped", peer=liar.domain, reason="quarantine")
    assert len(found(overlay, "b", "sybil-")) <= QUOTA_PER_DAY


def test_a_member_that_shows_two_records_of_one_version_is_convicted_by_all(
    overlay: Network, liar: LyingMember, watch: AdminWatch
) -> None:
    wait_for(lambda: found(overlay, "c", liar.domain), PROVED_WITHIN_S, every_s=0.1, about="c has its record")
    newer = liar.record.version + 1
    for name, zone in (("b", "east"), ("c", "west")):
        liar.record = liar.record_made(newer, zone=zone)
        liar.tell(name, Alive())
    for name in overlay.names:
        watch.caught(name, "overlay.equivocation", PROVED_WITHIN_S, domain=liar.domain)
    watch.caught("b", "overlay.link.dropped", peer=liar.domain, reason="quarantine")
    assert overlay["c"].ask("GET", f"/api/v1/overlay/domains/{liar.domain}")["convicted_at"]


def test_records_of_versions_that_nobody_can_follow_are_refused_and_change_no_version(
    overlay: Network, liar: LyingMember, watch: AdminWatch
) -> None:
    own = version(overlay, "b", "b.test")
    liar.tell("b", Records((liar.record_made(LATEST_VERSION),)))
    watch.caught("b", "misbehaviour.noted", kind="false-record", carrier=liar.domain)
    assert version(overlay, "b", liar.domain) == liar.record.version
    forged = replace(_record_of(liar, "b", "c.test"), version=int(time.time()) + 250, url="https://liar.example")
    liar.tell("b", Records((forged,)), News((("b.test", LATEST_VERSION, 1), ("c.test", LATEST_VERSION, 1))))
    wait_for(lambda: overlay.counted("b", "false-record", carrier=liar.domain) >= 2, CAUGHT_WITHIN_S, every_s=0.1)
    assert version(overlay, "b", "b.test") == own
    assert version(overlay, "b", "c.test") < forged.version


def test_nan_is_refused_in_requests_and_in_answers(overlay: Network, liar: LyingMember, watch: AdminWatch) -> None:
    status, body = liar.try_telling("b", Records((liar.record_made(issued_s=float("nan")),)))
    assert status == 400, body
    assert b"not finite" in body
    watch.caught("b", "misbehaviour.noted", kind="malformed", carrier=liar.domain)
    before = overlay.counted("b", "malformed", carrier=liar.domain)
    poisoned = Records((liar.record_made(expires_s=float("nan")),))
    liar.reply = lambda sender, message: [Alive(), poisoned] if type(message) is Beat else liar.replied(sender, message)
    wait_for(lambda: overlay.counted("b", "malformed", carrier=liar.domain) > before, CAUGHT_WITHIN_S * 2, every_s=0.1)


def test_a_compression_bomb_and_a_message_beyond_its_bound_cost_no_memory(
    overlay: Network, liar: LyingMember, watch: AdminWatch
) -> None:
    gateway = psutil.Process(overlay["b"].pids["gateway"])
    bomb, before = gzip.compress(bytes(BOMB_BYTES)), gateway.memory_info().rss
    for _ in range(3):
        request = liar.signed("b", "overlay", bomb)
        answer = httpx.post(
            request.url, content=bomb, headers={**request.headers, "content-encoding": "gzip"}, trust_env=False
        )
        assert answer.status_code in (400, 415), answer.text
    assert liar.post("b", "overlay", bytes(OVERLAY_BYTES_MAX + 1))[0] == 413
    watch.caught("b", "misbehaviour.noted", kind="oversize", carrier=liar.domain)
    assert gateway.memory_info().rss - before < BOMB_BYTES / 4


def test_a_flood_of_requests_is_refused_and_counted_when_no_pause_is_kept(
    overlay: Network, liar: LyingMember, watch: AdminWatch
) -> None:
    refused = 0
    with ThreadPoolExecutor(AT_ONCE) as threads:  # one after another, a busy machine would keep the rate
        for _ in range(20):
            sent = [
                threads.submit(liar.try_telling, "b", Alive(), known=True) for _ in range(int(OVERLAY_REQUESTS.burst))
            ]
            refused += sum(one.result()[0] == 429 for one in sent)
            if refused >= AT_ONCE:
                break
    assert refused >= AT_ONCE
    watch.caught("b", "misbehaviour.noted", kind="flooding", carrier=liar.domain)


def test_a_link_that_is_made_and_ended_again_and_again_is_refused_before_it_floods_administrators(
    overlay: Network, liar: LyingMember, watch: AdminWatch
) -> None:
    for _ in range(2 * ENDED_FREE):
        liar.tell("b", Neighbor(), Disconnect(Reason.EVICTED))
    watch.caught("b", "misbehaviour.noted", kind="flapping", carrier=liar.domain)
    assert len(watch.told("b", "overlay.link.made", peer=liar.domain)) <= ENDED_FREE


def _record_of(liar: LyingMember, at: str, name: str) -> DomainRecord:
    """The record of an honest domain, of which the liar asks another."""
    liar.tell(at, Want((name,)))
    records = wait_for(
        lambda: [one for _, said in liar.heard if type(said) is Records for one in said.records if one.domain == name],
        CAUGHT_WITHIN_S,
        about=f"{at} sends the record of {name}",
    )
    return records[-1]


def test_a_member_that_answers_too_late_loses_its_link(overlay: Network, liar: LyingMember, watch: AdminWatch) -> None:
    liar.late_s = LATE_S
    watch.again()
    dropped = watch.caught("b", "overlay.link.dropped", LOST_WITHIN_S, peer=liar.domain)
    assert dropped["reason"] in ("transport", "silent")


def test_a_coalition_that_accuses_an_honest_domain_again_and_again_is_rebutted_and_has_nobody_suspected(
    overlay: Network, watch: AdminWatch
) -> None:
    """More of c's monitors than are needed accuse it; b alone is told, and gossip brings it to c."""
    coalition = [LyingMember(overlay, f"accuser{number}").sponsored_by("a") for number in range(COALITION)]
    names = {one.domain for one in coalition}
    try:
        for one in coalition:
            one.tell("b", Alive())
        for name in "abc":
            wait_for(
                lambda name=name: names <= set(found(overlay, name, "accuser")),  # type: ignore[misc]
                LINKED_WITHIN_S,
                every_s=0.2,
                about=f"{name} has the records of the coalition",
            )
        watch.again()
        rp, until = overlay.replicated_rp("a", "b", "c"), time.monotonic() + ACCUSED_S
        while time.monotonic() < until:
            accused = accusation_payload((("c.test", _rebutted(coalition[0], "b", "c.test")),))
            for one in coalition:
                row = one.row_made(Accusations.name, accused)
                one.tell("b", GossipMessage((GossipPart(Accusations.name, rows=(row,)),)))
            overlay.publish(rp, "b", within_s=PUBLISHED_WITHIN_S)
            time.sleep(ACCUSED_EVERY_S)  # c has rebutted meanwhile, or is accused for longer
        rebutted = watch.told("c", "overlay.suspicion.rebutted")
        assert len(rebutted) >= 2, "what it has rebutted was accused anew"
        assert all(len(one["accusers"]) >= QUORUM and names.issuperset(one["accusers"]) for one in rebutted)
        print(f"c: rebutted {len(rebutted)} times in {ACCUSED_S:g} s")
        for name in overlay.names:
            assert watch.told(name, "overlay.suspected") == []
            assert overlay[name].ask("GET", "/api/v1/overlay")["picture"]["suspected"] == []
        overlay.converged(rp)
    finally:
        for one in coalition:
            one.close()
            overlay.forget("a", one.domain)


def _rebutted(liar: LyingMember, at: str, name: str) -> int:
    """The version of a domain's last rebuttal that another holds; 0 for none."""
    liar.tell(at, GossipMessage((GossipPart(Rebuttals.name, wants=((name, 0),)),)))
    parts = [part for _, said in liar.heard if type(said) is GossipMessage for part in said.parts]
    rows = [row for part in parts if part.object == Rebuttals.name for row in part.rows if row.owner == name]
    return max((row.version for row in rows), default=0)


def test_a_thousand_newcomers_at_one_contact_are_admitted_and_slow_nobody(overlay: Network, watch: AdminWatch) -> None:
    """Their founder is another one than a, and b joins its federation as well."""
    founder = LyingMember(overlay, "founder")
    try:
        founder.chain, founder.record = [], founder.record_made()
        founder.peer("b")
        overlay["b"].ask("POST", "/api/v1/overlay/join", {"sponsor": founder.domain})
        crowd = [_newcomer(overlay, founder, number) for number in range(CROWD)]
        rp, began = overlay.create_rp("b"), time.monotonic()
        statuses = Counter(one.try_telling("b", Alive())[0] for one in crowd[:: CROWD // 100])
        overlay.publish(rp, "b", within_s=PUBLISHED_WITHIN_S)
        assert set(statuses) <= {200, 429}, "who is too many is asked to come later"
        records = [one.record for one in crowd]
        for first in range(0, CROWD, RECORDS_MAX):
            founder.tell("b", Records(tuple(records[first : first + RECORDS_MAX])))
            overlay.publish(rp, "b", within_s=PUBLISHED_WITHIN_S)
        wait_for(lambda: overlay["b"].ask("GET", "/api/v1/overlay")["domains"] >= CROWD, CROWD_WITHIN_S, every_s=0.5)
        print(f"{CROWD} newcomers: {dict(statuses)}; all in the directory after {time.monotonic() - began:.1f} s")
        changed = watch.told("b", "overlay.directory.changed")
        assert sum(event["admitted_count"] for event in changed) >= CROWD
        standing = overlay["b"].ask("GET", "/api/v1/overlay")["links"]
        assert standing <= SUSPICIOUS.chosen + SUSPICIOUS.accepted + len(overlay.names)
    finally:
        founder.close()
        overlay.forget("b", founder.domain)


def _newcomer(network: Network, founder: LyingMember, number: int) -> Newcomer:
    """A newcomer that the founder sponsored, on one of the days before, as its quota allows."""
    today = int(time.time() // DAY_S)
    made = Newcomer(f"crowd-{number}", network)
    founder.sponsor(made, number % QUOTA_PER_DAY, day=today - number // QUOTA_PER_DAY)
    made.chain, made.record = [founder.record], made.record_made()
    return made
