"""What other domains may make this one hold of shared subscriptions, and what not: every attack is refused and counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.utils import timezone

from demo.harness.servers import wait_for
from eventing.access.services.tokens import ensure_domain_key
from eventing.conf import config
from eventing.core.errors import Conflict, InvalidCursor, InvalidRequest, Moved
from eventing.core.ids import admin_id
from eventing.core.signing import Signed
from eventing.log import control
from eventing.log.shared_subscriptions import StandingChange, SubscriptionKey, due_set, read_all, write_all
from eventing.operations.services.leases import leases_reap
from eventing.overlay.takeover import HolderStanding
from eventing.peering.models import Peer
from eventing.peering.selectors.peers import peers_forget
from eventing.peering.services import misbehaviour
from eventing.peering.services.misbehaviour import misbehaviour_flush
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.endpoints import Sender
from eventing.peering.wire.messages import VERSION, BadMessage
from eventing.replication.models import ReplicaAdmission
from eventing.rps.rules.statements import BadStatement
from eventing.rps.services.rendezvous_points import rendezvous_point_delete
from eventing.store.client import client as redis_client
from eventing.subscriptions.models import SharedSubscription, Subscription
from eventing.subscriptions.rules.shared_subscriptions import (
    LINE_BYTES_MAX,
    RECORD_BYTES_MAX,
    History,
    LineStatement,
    Record,
    abroad,
    here,
    line_read,
    record_read,
    sign,
)
from eventing.subscriptions.selectors.shared_subscriptions import record_of, shared_shown
from eventing.subscriptions.services import shared_records
from eventing.subscriptions.services.lease_use import leases_use
from eventing.subscriptions.services.subscriptions import (
    subscription_create,
    subscription_delete,
    subscription_renew,
    subscription_update,
)
from eventing.subscriptions.shapes import SharedState
from eventing.subscriptions.sharing import shared_subscriptions as federation
from eventing.subscriptions.sharing.messages import SentLine, SharingAnswer, SharingMessage, decoded, encode
from tests.peering.other_domain import OtherDomain
from tests.planes import events_made, principal
from tests.replication.shared_rp import BOUNDS, counted, link, new_rp, peer_made

ME = "localhost"
ID = "sub_" + "a" * 26
LEASE_MS = 10_000
ANN = principal("ann")


@pytest.fixture(autouse=True)
def _stores(transactional_db: None, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    redis_client().flushdb()
    ensure_domain_key()
    monkeypatch.setattr(misbehaviour, "WRITES_PER_S", 10_000)
    yield
    misbehaviour_flush()


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


class Keeper:
    """b.test: a peer that takes part in an RP here, and has this domain hold a subscription; c.test holds it too."""

    def __init__(self) -> None:
        self.rp = new_rp()
        self.b, self.c = OtherDomain("b.test"), OtherDomain("c.test", url="https://c.test")
        self.peer, self.other = peer_made(self.b, host=True), peer_made(self.c, host=True)
        link(self.rp, self.b, self.c)
        self.now = timezone.now()

    def record(self, by: dict[str, Any] | None = None, **changes: Any) -> Signed:
        """A record that b signs."""
        said: dict[str, Any] = {
            "v": 1,
            "kind": "record",
            "id": ID,
            "rp": self.rp,
            "keeper": "b.test",
            "version": 1,
            "owner": "b.test#bea",
            "holders": ["b.test", ME, "c.test"],
            "lease_ms": LEASE_MS,
            "start": {},
            "history": History(100, 10_000, None),
            "mode": "pull",
            "expires_at_ms": ms(self.now + timedelta(hours=1)),
            "at_ms": ms(self.now),
            "ended": False,
        }
        return sign(Record(**{**said, **changes}), by or self.b.keys[-1])

    def line(self, by: OtherDomain | None = None, *, key: dict[str, Any] | None = None, **changes: Any) -> SentLine:
        """A line of b's, or of another holder's."""
        by = by or self.b
        said: dict[str, Any] = {
            "v": 1,
            "kind": "line",
            "id": ID,
            "by": by.name,
            "term": 1,
            "beat": 1,
            "acked": {},
            "expires_at_ms": ms(self.now + timedelta(hours=1)),
            "told": [ME, "c.test"],
            "at_ms": ms(self.now),
        }
        return SentLine(sign(LineStatement(**{**said, **changes}), key or by.keys[-1]), LEASE_MS)

    def sends(self, *records: Signed, lines: list[SentLine] | None = None, peer: Peer | None = None) -> SharingAnswer:
        """A message of an authenticated peer; what is answered."""
        who = Peer.objects.get(pk=(peer or self.peer).pk)
        data = federation.subscriptions(
            Sender(who.name, "k", who), encode(SharingMessage(VERSION, list(records), lines or []))
        )
        return decoded(data, SharingAnswer)

    def refused(self, record: Signed, peer: Peer | None = None) -> str:
        """Why a record is refused; it must be, and leave nothing."""
        before = SharedSubscription.objects.count(), Subscription.objects.count()
        answer = self.sends(record, peer=peer)
        assert len(answer.refused) == 1, "it was taken"
        assert (SharedSubscription.objects.count(), Subscription.objects.count()) == before
        return answer.refused[0].why


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, SharingMessage]]:
    """What the sweep sends, taken by peers that hold everything."""
    sent: list[tuple[str, SharingMessage]] = []

    def call(url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
        sent.append((domain, decoded(body, SharingMessage)))
        return encode(SharingAnswer(VERSION))

    monkeypatch.setattr(federation, "call", call)
    return sent


def shown() -> SharedState:
    found = shared_shown(Subscription.objects.get(id=ID))
    assert found is not None
    return found


def standing_of(rp: str, name: str = ID) -> Any:
    return read_all([SubscriptionKey(rp, name)])[0].standing


# Taking records


def test_a_true_record_makes_the_subscription_here_for_the_same_owner(keeper: Keeper) -> None:
    assert keeper.sends(keeper.record()).refused == []
    row = Subscription.objects.get(id=ID)
    assert (row.owner, row.at, row.keeper, row.max_events) == ("b.test#bea", keeper.rp, "b.test", 100)
    assert shown().delivers is None, "we listen first"
    assert counted() == {}


def test_an_owner_has_one_identity_everywhere() -> None:
    assert here(abroad("bea", "b.test"), "b.test") == "bea"
    assert here(abroad("bea", "b.test"), ME) == "b.test#bea"
    assert here(abroad("localhost#ann", "b.test"), ME) == "ann"
    assert abroad("https://id.example|https://keys.example#x", "b.test") == "https://id.example|https://keys.example#x"
    assert here("b.test#ann", "b.tes") == "b.test#ann"


def test_a_record_is_within_our_own_bounds_of_history_and_lease(keeper: Keeper) -> None:
    far = ms(keeper.now + timedelta(days=10_000))
    keeper.sends(keeper.record(history=History(10**9, 10**12, None), expires_at_ms=far))
    row = Subscription.objects.get(id=ID)
    assert row.max_events == 1000
    assert row.expires_at <= timezone.now() + timedelta(seconds=config().lease_s_max)


@pytest.mark.parametrize("attack", ["another key", "changed", "from the future"])
def test_a_forged_record_is_refused_and_counted(keeper: Keeper, attack: str) -> None:
    forged = {
        "another key": lambda: keeper.record(keeper.c.keys[-1]),
        "changed": lambda: Signed(
            keeper.record().payload.replace(b"b.test#bea", b"b.test#eve"),
            keeper.record().kid,
            keeper.record().signature,
        ),
        "from the future": lambda: keeper.record(at_ms=ms(keeper.now + timedelta(hours=1))),
    }[attack]()
    keeper.refused(forged)
    assert counted() == {("forged", "b.test", ""): 1}


def test_a_record_that_is_none_is_refused_and_counted(keeper: Keeper) -> None:
    good = keeper.record()
    for payload in (b"{}", b"not json", good.payload + b" ", good.payload.replace(b'"v":1', b'"v":2'), b"[" * 5000):
        keeper.refused(Signed(payload, good.kid, good.signature))
    assert counted()["malformed", "b.test", ""] == 5


def test_an_oversize_record_or_line_is_not_read() -> None:
    for read, size in ((record_read, RECORD_BYTES_MAX), (line_read, LINE_BYTES_MAX)):
        with pytest.raises(BadStatement, match=f"at most {size} bytes"):
            read(Signed(b" " * (size + 1), "k", b"s" * 64))


def test_a_message_beyond_its_bounds_is_refused_whole(keeper: Keeper) -> None:
    with pytest.raises(BadMessage):
        keeper.sends(*[keeper.record()] * 65)
    with pytest.raises(BadMessage):
        federation.subscriptions(Sender("b.test", "k", keeper.peer), b"\x93\x01")


def test_a_keeper_that_does_not_take_part_is_refused(keeper: Keeper) -> None:
    stranger = OtherDomain("d.test")
    peer_made(stranger, host=True)
    forged = keeper.record(stranger.keys[-1], keeper="d.test", holders=["d.test", "b.test", ME])
    assert "does not take part" in keeper.refused(forged)


def test_a_record_brought_by_who_is_no_holder_is_refused(keeper: Keeper) -> None:
    assert "record it and send its record" in keeper.refused(keeper.record(holders=["b.test", ME]), keeper.other)
    assert "Only a subscription's holders" in keeper.refused(keeper.record(holders=["b.test", "c.test"]))


def test_holders_that_are_named_twice_or_without_the_keeper_first_are_refused(keeper: Keeper) -> None:
    for holders in (["b.test", ME, ME], [ME, "b.test"], [f"{n}.test" for n in "bcdefg"]):
        keeper.refused(keeper.record(holders=holders))


def test_a_peer_that_we_do_not_let_host_cannot_make_us_hold_any(keeper: Keeper) -> None:
    Peer.objects.update(host=False)
    peers_forget()
    assert "trusted with `host`" in keeper.refused(keeper.record())


def test_a_record_for_an_rendezvous_point_that_is_not_here_is_refused(keeper: Keeper) -> None:
    assert "no such rendezvous point" in keeper.refused(keeper.record(rp="b" * 26))


def test_one_keeper_has_no_more_held_here_than_its_bound(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_records, "PER_KEEPER_MAX", 2)
    others = ["sub_" + letter * 26 for letter in "bcd"]
    assert keeper.sends(*[keeper.record(id=other) for other in others[:2]]).refused == []
    assert "2 subscriptions of this domain are held here" in keeper.refused(keeper.record(id=others[2]))


def test_an_id_stays_its_keepers_and_ours_stay_ours(keeper: Keeper) -> None:
    keeper.sends(keeper.record())
    taken_over = keeper.record(keeper.c.keys[-1], keeper="c.test", holders=["c.test", ME], version=9)
    assert "of another domain" in keeper.refused(taken_over, keeper.other)
    own = subscription_create(reference=keeper.rp, principal=ANN)
    assert "Another subscription with this id" in keeper.refused(keeper.record(id=own.id))


def test_an_older_record_again_changes_nothing_and_does_not_revive_what_ended(keeper: Keeper) -> None:
    first, second = keeper.record(), keeper.record(version=2, history=History(5, 10_000, None))
    keeper.sends(first, second, first)
    assert Subscription.objects.get(id=ID).max_events == 5
    keeper.sends(keeper.record(version=3, ended=True))
    assert not Subscription.objects.exists()
    keeper.sends(first, second)
    assert not Subscription.objects.exists()


def test_two_records_of_one_version_are_counted_and_all_holders_keep_the_same(keeper: Keeper) -> None:
    one, two = sorted((keeper.record(), keeper.record(owner="b.test#eve")), key=lambda record: record.payload)
    keeper.sends(two, one)
    assert record_of(SharedSubscription.objects.get()).owner == msgspec.json.decode(two.payload)["owner"]
    keeper.sends(one)
    assert record_of(SharedSubscription.objects.get()).owner == msgspec.json.decode(two.payload)["owner"]
    assert counted() == {("equivocation", "b.test", ""): 2}


def test_it_lapses_here_by_itself_and_ends_with_the_replica(keeper: Keeper) -> None:
    keeper.sends(keeper.record(expires_at_ms=ms(keeper.now + timedelta(seconds=60))))
    assert leases_reap(now=keeper.now + timedelta(seconds=90)) == 1
    assert not SharedSubscription.objects.exists()
    keeper.sends(keeper.record(version=2))
    rendezvous_point_delete(reference=keeper.rp, principal=ANN)
    assert shared_records.shared_purge(now=keeper.now) == 1


# Lines


def test_lines_of_who_delivers_are_followed(keeper: Keeper) -> None:
    answer = keeper.sends(keeper.record(), lines=[keeper.line(acked={"f" * 16: 7})])
    assert (answer.refused, answer.unknown, answer.lines) == ([], [], [])
    assert (shown().delivers, shown().acked) == ("b.test", {"f" * 16: 7})


def test_a_line_of_what_is_not_recorded_here_asks_for_the_record(keeper: Keeper) -> None:
    assert keeper.sends(lines=[keeper.line()]).unknown == [ID]


def test_a_forged_line_is_counted_and_changes_nothing(keeper: Keeper) -> None:
    keeper.sends(keeper.record())
    before = standing_of(keeper.rp)
    keeper.sends(lines=[keeper.line(key=keeper.c.keys[-1], term=5, acked={"f" * 16: 7})])
    stranger = OtherDomain("d.test")
    peer_made(stranger)
    keeper.sends(lines=[keeper.line(stranger, term=5)])
    assert standing_of(keeper.rp) == before
    assert shown().acked == {}
    assert counted() == {("forged", "b.test", ""): 2}


def test_a_holder_whose_admission_was_taken_back_is_not_heard_any_more(keeper: Keeper) -> None:
    keeper.sends(keeper.record())
    ReplicaAdmission.objects.filter(domain="b.test").update(revoked=True)
    before = standing_of(keeper.rp)
    keeper.sends(lines=[keeper.line()])
    assert standing_of(keeper.rp) == before


def test_what_is_acknowledged_never_goes_back_whatever_lines_come_again(keeper: Keeper) -> None:
    old, new = keeper.line(acked={"f" * 16: 7, "g" * 16: 1}), keeper.line(beat=2, acked={"f" * 16: 9, "g" * 16: 1})
    keeper.sends(keeper.record(), lines=[old, new, old])
    assert shown().acked == {"f" * 16: 9, "g" * 16: 1}


def test_a_line_that_comes_again_prolongs_nothing(keeper: Keeper) -> None:
    keeper.sends(keeper.record(), lines=[keeper.line()])
    before = standing_of(keeper.rp)
    keeper.sends(lines=[keeper.line()])
    assert standing_of(keeper.rp) == before


def test_a_line_prolongs_the_lease_as_its_owner_renewed_it_within_our_own_bound(keeper: Keeper) -> None:
    keeper.sends(keeper.record())
    keeper.sends(lines=[keeper.line(beat=2, expires_at_ms=ms(keeper.now + timedelta(hours=5)))])
    assert Subscription.objects.get().expires_at > keeper.now + timedelta(hours=4)
    keeper.sends(lines=[keeper.line(beat=3, expires_at_ms=ms(keeper.now + timedelta(days=10_000)))])
    assert Subscription.objects.get().expires_at <= timezone.now() + timedelta(seconds=config().lease_s_max)


def test_who_tells_an_old_term_is_answered_with_the_new_one(keeper: Keeper) -> None:
    keeper.sends(keeper.record(), lines=[keeper.line(keeper.c, term=4)])
    answer = keeper.sends(lines=[keeper.line()])
    assert line_read(answer.lines[0].statement).term == 4
    assert answer.lines[0].left_ms <= LEASE_MS


def test_what_was_acknowledged_here_while_nobody_heard_of_it_is_told_to_who_delivers_now(keeper: Keeper) -> None:
    keeper.sends(keeper.record(), lines=[keeper.line(acked={"f" * 16: 7})])
    answer = keeper.sends(lines=[keeper.line(keeper.c, term=2, acked={"g" * 16: 3})])
    line = line_read(answer.lines[0].statement)
    assert (line.by, line.term, line.acked) == (ME, 0, {"f" * 16: 7, "g" * 16: 3})
    assert standing_of(keeper.rp).deliverer == "c.test"
    answer = keeper.sends(lines=[keeper.line(keeper.c, term=2, beat=2, acked=line.acked)])
    assert answer.lines == []


def test_a_line_of_term_zero_says_what_is_acknowledged_and_moves_nothing_else(keeper: Keeper) -> None:
    keeper.sends(keeper.record(), lines=[keeper.line()])
    before = standing_of(keeper.rp)
    keeper.sends(lines=[keeper.line(keeper.c, term=0, beat=99, acked={"f" * 16: 7})])
    assert (standing_of(keeper.rp), shown().acked) == (before, {"f" * 16: 7})


# The sweep


def test_when_the_lines_stop_we_take_over_and_stand_down_for_a_higher_term(
    keeper: Keeper, told: list[tuple[str, SharingMessage]]
) -> None:
    keeper.sends(keeper.record(), lines=[keeper.line(acked={"f" * 16: 7})])
    before = timezone.now() + timedelta(milliseconds=LEASE_MS)
    federation.subscriptions_sweep(now=before)
    assert standing_of(keeper.rp).deliverer == "b.test"
    federation.subscriptions_sweep(now=before + timedelta(milliseconds=LEASE_MS // 4 + 100))
    assert standing_of(keeper.rp)[:3] == (2, ME, 1)
    lines = [(domain, line_read(message.lines[0].statement)) for domain, message in told]
    assert [(line.by, line.acked) for _, line in lines] == [(ME, {"f" * 16: 7})] * 4
    assert sorted((line.term, domain) for domain, line in lines) == [
        (0, "b.test"),
        (0, "c.test"),
        (2, "b.test"),
        (2, "c.test"),
    ], "the others are asked, then told"
    keeper.sends(lines=[keeper.line(keeper.c, term=3)])
    assert standing_of(keeper.rp).deliverer == "c.test"


def test_one_that_was_away_asks_and_leaves_it_to_who_delivers(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper.sends(keeper.record(), lines=[keeper.line()])
    place = SubscriptionKey(keeper.rp, ID)
    kept = read_all([place])[0]
    lapsed = HolderStanding(1, ME, 5, ms(keeper.now) - 20 * LEASE_MS)
    assert write_all([StandingChange(place, kept.raw, lapsed, b"", 600)]) == [True]
    due_set({ID: 0})
    terms: list[tuple[str, int]] = []

    def call(url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
        terms.append((domain, line_read(decoded(body, SharingMessage).lines[0].statement).term))
        lines = [keeper.line(keeper.c, term=2, beat=9, told=[ME, "b.test"])] if domain == "b.test" else []
        return encode(SharingAnswer(VERSION, lines=lines))

    monkeypatch.setattr(federation, "call", call)
    federation.subscriptions_sweep()
    assert sorted(terms) == [("b.test", 0), ("c.test", 0)]
    assert standing_of(keeper.rp)[:3] == (2, "c.test", 9)


def test_nothing_is_taken_over_that_nobody_could_be_asked_about_in_time(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"sub_{'a' * 24}{one}{other}" for one in "abcd" for other in "ab"]
    monkeypatch.setattr(federation, "LINES_MAX", 3)
    monkeypatch.setattr(federation, "CALL_S_MAX", 0.2)
    for name in names:
        keeper.sends(keeper.record(id=name), lines=[keeper.line(id=name)])
    asked: set[tuple[str, str]] = set()
    began: list[float] = []

    def call(url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
        read = [line_read(one.statement) for one in decoded(body, SharingMessage).lines]
        asked.update((line.id, domain) for line in read if line.term == 0)
        if domain == "b.test":
            began.append(time.monotonic())
            wait_for(lambda: time.monotonic() > began[0] + 0.3)  # it answers, but late
        return encode(SharingAnswer(VERSION))

    monkeypatch.setattr(federation, "call", call)
    federation.subscriptions_sweep(now=timezone.now() + timedelta(milliseconds=2 * LEASE_MS))
    ours = {name for name in names if standing_of(keeper.rp, name).deliverer == ME}
    assert ours == {name for name in names if (name, "b.test") in asked}
    assert 0 < len(ours) < len(names), "the others' turn is with the next sweep"


def test_a_line_is_passed_on_to_a_holder_that_its_deliverer_does_not_reach(
    keeper: Keeper, told: list[tuple[str, SharingMessage]]
) -> None:
    keeper.sends(keeper.record())
    keeper.sends(lines=[keeper.line(told=[ME])])
    federation.subscriptions_sweep()
    assert [(domain, [line_read(one.statement).by for one in message.lines]) for domain, message in told] == [
        ("c.test", ["b.test"])
    ]


def test_a_peer_that_does_not_answer_keeps_no_other_from_being_told(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []

    def call(url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
        assert timeout_s <= federation.CALL_S_MAX
        called.append(domain)
        if domain == "b.test":
            raise PeerError("unreachable", "gone")
        return encode(SharingAnswer(VERSION))

    monkeypatch.setattr(federation, "call", call)
    keeper.sends(keeper.record())
    federation.subscriptions_sweep(now=timezone.now() + timedelta(milliseconds=2 * LEASE_MS))
    assert sorted(called) == ["b.test", "c.test", "c.test"], "asked and told; who does not answer is waited for once"
    assert standing_of(keeper.rp).deliverer == ME


# At the keeper


@pytest.fixture
def made(keeper: Keeper) -> Subscription:
    """A subscription of ann's, created here, at three domains."""
    control.append(keeper.rp, events_made(3), BOUNDS)
    return subscription_create(reference=keeper.rp, principal=ANN, replicas=3, lease_s=600)


def test_what_is_created_is_delivered_here_and_told_to_the_others_until_they_have_it(
    made: Subscription, told: list[tuple[str, SharingMessage]]
) -> None:
    shown = shared_shown(made)
    assert shown is not None
    assert (shown.delivers, shown.keeper, set(shown.holders)) == (ME, ME, {ME, "b.test", "c.test"})
    assert list(shown.acked.values()) == [3], "it begins behind what there was"
    federation.subscriptions_sweep()
    records = {domain: record_read(message.records[0]) for domain, message in told}
    assert set(records) == {"b.test", "c.test"}
    assert records["b.test"].owner == "localhost#ann"
    told.clear()
    federation.subscriptions_sweep(now=timezone.now() + timedelta(seconds=5))
    assert {domain: len(message.records) for domain, message in told} == {"b.test": 0, "c.test": 0}, "only lines now"


def test_changes_renewals_and_the_end_are_new_versions_that_are_told(
    made: Subscription, told: list[tuple[str, SharingMessage]]
) -> None:
    federation.subscriptions_sweep()
    for version, work in enumerate(
        (
            lambda: subscription_update(subscription_id=made.id, principal=ANN, changes={"history": {"max_events": 2}}),
            lambda: subscription_renew(subscription_id=made.id, principal=ANN, lease_s=900),
            lambda: subscription_delete(subscription_id=made.id, principal=ANN),
        ),
        2,
    ):
        told.clear()
        work()
        federation.subscriptions_sweep()
        newest = [record_read(message.records[0]) for _, message in told]
        assert [(record.version, record.ended) for record in newest] == [(version, version == 4)] * 2
    assert read_all([SubscriptionKey(made.at, made.id)])[0].standing is None
    told.clear()
    federation.subscriptions_sweep(now=timezone.now() + timedelta(seconds=5))
    assert told == []


def test_a_holder_that_lost_the_record_is_told_again(made: Subscription, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, int]] = []

    def call(url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
        message = decoded(body, SharingMessage)
        sent.append((domain, len(message.records)))
        return encode(SharingAnswer(VERSION, [], [] if message.records else [made.id]))

    monkeypatch.setattr(federation, "call", call)
    federation.subscriptions_sweep()
    federation.subscriptions_sweep(now=timezone.now() + timedelta(seconds=5))
    sent.clear()
    federation.subscriptions_sweep(now=timezone.now() + timedelta(seconds=5))
    assert sorted(sent) == [("b.test", 1), ("c.test", 1)]


def test_more_holders_than_there_are_fit_peers_are_refused_and_nothing_is_made(keeper: Keeper) -> None:
    Peer.objects.filter(name="c.test").update(host=False)
    peers_forget()
    with pytest.raises(Conflict, match="there are 1"):
        subscription_create(reference=keeper.rp, principal=ANN, replicas=3)
    for wrong in (0, 6):
        with pytest.raises(InvalidRequest):
            subscription_create(reference=keeper.rp, principal=ANN, replicas=wrong)
    with pytest.raises(InvalidRequest):
        subscription_create(reference=admin_id(keeper.rp), principal=ANN, replicas=2)
    with pytest.raises(InvalidCursor):
        subscription_create(reference=keeper.rp, principal=ANN, replicas=2, start="oldepoch:7")
    assert not Subscription.objects.exists()


def test_a_change_at_a_holder_is_sent_to_the_keeper_and_so_is_a_renewal_unless_it_delivers(
    keeper: Keeper, told: list[tuple[str, SharingMessage]]
) -> None:
    keeper.sends(keeper.record(owner="localhost#ann"))
    work: list[Callable[[], Any]] = [
        lambda: subscription_update(subscription_id=ID, principal=ANN, changes={}),
        lambda: subscription_delete(subscription_id=ID, principal=ANN),
        lambda: subscription_renew(subscription_id=ID, principal=ANN),
    ]
    for one in work:
        with pytest.raises(Moved) as moved:
            one()
        assert moved.value.extra["to"] == ["https://b.test"]
    federation.subscriptions_sweep(now=timezone.now() + timedelta(milliseconds=2 * LEASE_MS))
    assert subscription_renew(subscription_id=ID, principal=ANN, lease_s=7200).granted_s == 7200
    federation.subscriptions_sweep()
    assert line_read(told[-1][1].lines[0].statement).expires_at_ms > ms(keeper.now + timedelta(hours=1, minutes=50))


def test_one_that_has_lapsed_is_not_taken_back(keeper: Keeper) -> None:
    assert "expired" in keeper.refused(keeper.record(expires_at_ms=ms(keeper.now - timedelta(seconds=5))))


def test_use_renews_a_subscription_where_it_is_delivered_for_as_long_as_its_keeper_granted(keeper: Keeper) -> None:
    keeper.sends(keeper.record(), lines=[keeper.line()])
    place, used_at = SubscriptionKey(keeper.rp, ID), keeper.now + timedelta(minutes=30)
    leases_use(subscriptions=[ID], now=used_at)
    assert Subscription.objects.get().expires_at <= keeper.now + timedelta(hours=1), "b delivers: it is used there"
    kept = read_all([place])[0]
    delivering = HolderStanding(2, ME, 1, ms(used_at) + LEASE_MS)
    assert write_all([StandingChange(place, kept.raw, delivering, b"", 3600)]) == [True]
    leases_use(subscriptions=[ID], now=used_at)
    left_s = (Subscription.objects.get().expires_at - used_at).total_seconds()
    assert 3590 <= left_s <= 3600, "an hour as its keeper said, not the default of a week"


def test_a_record_that_changes_something_else_leaves_the_lease_as_it_was(keeper: Keeper) -> None:
    keeper.sends(keeper.record())
    before = Subscription.objects.get()
    keeper.sends(keeper.record(version=2, history=History(10, 10_000, None)))
    after = Subscription.objects.get()
    assert after.max_events == 10
    assert (after.granted_s, after.expires_at) == (before.granted_s, before.expires_at)
