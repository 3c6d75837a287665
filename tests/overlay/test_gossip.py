"""Gossip: rows of many objects in bounded messages, whatever others send."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventing.overlay import gossip, gossip_rows
from eventing.overlay.byte_budget import BURST_BYTES, FLOOD
from eventing.overlay.gossip import (
    ANSWERS_MAX,
    ROUND_DUE,
    Contribute,
    ContributorDeparted,
    RowRefused,
    RowsConflict,
    Withdraw,
)
from eventing.overlay.gossip_messages import MESSAGE_BYTES_MAX, GossipMessage, GossipPart, Outgoing, packed
from eventing.overlay.gossip_object import LEASE_S_MAX, GossipObject, GossipScope, RowChange, SignedRow, row_bytes
from eventing.overlay.gossip_rows import AHEAD_S, DEPARTED_MAX
from eventing.overlay.machine import Fired, MessageReceived, SendMessage
from eventing.sim.federation import STARTED_S
from tests.overlay.gossiping import GossipNode, GossipWorld
from tests.overlay.test_gossip_objects import Digits

NOW = int(STARTED_S)
CHANCE = Random(1)


class Load(GossipObject):
    name = "load"

    def valid(self, owner: Any, payload: bytes) -> bool:
        return payload != b"nonsense"


class Zonal(GossipObject):
    name = "zonal"
    scope = GossipScope.ZONE


class Wide(GossipObject):
    name = "wide"
    payload_bytes_max = 4096


def row(owner: int, payload: bytes = b"x", *, version: int = NOW, **changes: Any) -> SignedRow:
    return msgspec.structs.replace(SignedRow(owner, version, version + 600, payload, b"s" * 64), **changes)


@pytest.fixture
def node() -> GossipNode:
    """Domain 0 of 1,000."""
    made = GossipNode(0, [0] * 1000, [Load(), Digits()], STARTED_S)
    made.peers = [1, 2]
    return made


def received(node: GossipNode, *rows: SignedRow, peer: int = 1, now: float = 0.0, of: str = "load") -> list[Any]:
    return given_part(node, GossipPart(of, rows=rows), peer=peer, now=now)


def given_part(node: GossipNode, *parts: GossipPart, peer: int = 1, now: float = 0.0) -> list[Any]:
    return node.handle(MessageReceived(peer, GossipMessage(parts)), now, CHANCE)


def rows_in(node: GossipNode, of: str = "load") -> dict[Any, bytes]:
    return {owner: one.payload for owner, one in node.gossip.sets[of].rows.items()}


def test_the_newest_row_of_each_contributor_is_held(node: GossipNode) -> None:
    received(node, row(5, b"new", version=NOW + 2), row(5, b"old"), row(6, b"six"))
    assert rows_in(node) == {5: b"new", 6: b"six"}


@pytest.mark.parametrize(
    ("false", "why"),
    [
        (row(5, signature=b"forged"), "signature"),
        (row(5, b"nonsense"), "invalid payload"),
        (row(5, bytes(129)), "too large"),
        (row(5, version=NOW + int(AHEAD_S) + 2), "ahead of time"),
        (row(5, version=2**40 - 1), "ahead of time"),
        (row(5, expires_s=NOW + int(AHEAD_S) + LEASE_S_MAX + 2), "ahead of time"),
    ],
    ids=["forged", "invalid", "large", "ahead", "last version", "long lease"],
)
def test_a_false_row_is_refused_and_reported(node: GossipNode, false: SignedRow, why: str) -> None:
    assert received(node, false) == [RowRefused(1, "load", 5, why)]
    assert rows_in(node) == {}


@pytest.mark.parametrize("other", [row(5, expires_s=NOW), row(4000)], ids=["expired", "unknown"])
def test_a_row_that_is_nobodys_fault_is_ignored(node: GossipNode, other: SignedRow) -> None:
    assert received(node, other) == []
    assert rows_in(node) == {}


def test_contradictory_rows_count_for_nothing_on_either_side_and_are_reported_once(node: GossipNode) -> None:
    there = GossipNode(1, [0] * 10, [Load()], STARTED_S)
    one, other = row(5, b"a"), row(5, b"b")
    here_events = received(node, one) + received(node, other) + received(node, one, other)
    there_events = received(there, other, peer=0) + received(there, one, peer=0)
    conflict = RowsConflict("load", 5, (one, other))
    assert here_events == there_events == [conflict]
    assert rows_in(node) == rows_in(there) == {}
    received(node, row(5, b"later", version=NOW + 1))
    assert rows_in(node) == {5: b"later"}


def test_evidence_reaches_a_domain_that_holds_one_of_the_rows(node: GossipNode) -> None:
    there = GossipNode(1, [0] * 10, [Load()], STARTED_S)
    received(node, row(5, b"a"), row(5, b"b"), peer=3)
    received(there, row(5, b"a"), peer=0)
    assert events_between(node, there) == [RowsConflict("load", 5, (row(5, b"a"), row(5, b"b")))]


def events_between(one: GossipNode, other: GossipNode, now: float = 0.0) -> list[Any]:
    """Let one send a round to the other; return events of both."""
    events: list[Any] = []
    queue: list[tuple[GossipNode, GossipNode, Any]] = [(one, other, one.gossip.message_for(other.me, now, True))]
    while queue:
        source, target, message = queue.pop(0)
        for output in target.handle(MessageReceived(source.me, message), now, CHANCE):
            if isinstance(output, SendMessage):
                queue.append((target, source, output.message))
            else:
                events.append(output)
    return events


def test_a_change_is_applied_to_the_version_that_it_was_made_from(node: GossipNode) -> None:
    received(node, row(5, b"123456789"), of="digits")
    change = RowChange(5, NOW, NOW + 9, NOW + 600, bytes([8]) + b"0", b"s" * 64)
    given_part(node, GossipPart("digits", changes=(change,)))
    assert rows_in(node, "digits") == {5: b"123456780"}


def test_a_change_of_another_version_is_not_applied_and_the_whole_row_is_requested(node: GossipNode) -> None:
    received(node, row(5, b"123456789"), of="digits")
    change = RowChange(5, NOW + 4, NOW + 9, NOW + 600, bytes([8]) + b"0", b"s" * 64)
    (answer,) = given_part(node, GossipPart("digits", changes=(change,)))
    assert answer.message.parts[0].wants == ((5, 0),)
    assert rows_in(node, "digits") == {5: b"123456789"}


def test_a_changed_change_is_found_out_by_the_signature_of_the_whole_row() -> None:
    made = GossipNode(0, [0] * 10, [Digits()], STARTED_S)
    made.gossip.sets["digits"]._genuine = lambda name, one: one.payload != b"123456799"
    received(made, row(5, b"123456789"), of="digits")
    false = RowChange(5, NOW, NOW + 9, NOW + 600, bytes([7]) + b"99", b"s" * 64)
    assert given_part(made, GossipPart("digits", changes=(false,))) == [RowRefused(1, "digits", 5, "signature")]


def test_who_has_the_row_before_is_sent_the_change_and_others_the_whole_row(node: GossipNode) -> None:
    received(node, row(5, b"123456789"), row(5, b"123456780", version=NOW + 9), of="digits")
    (answer,) = given_part(node, GossipPart("digits", wants=((5, NOW),)))
    (part,) = answer.message.parts
    assert (len(part.changes), len(part.rows)) == (1, 0)
    (answer,) = given_part(node, GossipPart("digits", wants=((5, NOW - 1),)))
    (part,) = answer.message.parts
    assert (len(part.changes), len(part.rows)) == (0, 1)


def test_a_contributor_that_departs_leaves_with_its_lease_and_is_not_requested_again(node: GossipNode) -> None:
    received(node, row(5))
    offer = node.gossip.sets["load"].offer(5)
    node.handle(Fired(ROUND_DUE), 599.0, CHANCE)
    assert 5 in rows_in(node)
    assert ContributorDeparted("load", 5) in node.handle(Fired(ROUND_DUE), 601.0, CHANCE)
    assert rows_in(node) == {}
    assert given_part(node, GossipPart("load", offers=(offer,)), now=602.0) == []
    received(node, row(5, b"back", version=NOW + 700), now=700.0)
    assert rows_in(node) == {5: b"back"}


def test_no_more_than_500_departed_contributors_are_remembered(node: GossipNode) -> None:
    for owner in range(1, 701):
        node.gossip.sets["load"].hold((row(owner),))
    node.handle(Fired(ROUND_DUE), 601.0, CHANCE)
    assert len(node.gossip.sets["load"]._departed) == DEPARTED_MAX


def test_a_domain_answers_a_newer_row_of_itself_with_a_newer_one_still(node: GossipNode) -> None:
    node.handle(Contribute("load", b"mine"), 0.0, CHANCE)
    received(node, row(0, b"from before a restart", version=NOW + 40))
    (held,) = node.gossip.sets["load"].held(0)
    assert (held.payload, held.version) == (b"mine", NOW + 41)


def test_a_domain_that_withdraws_refreshes_no_longer(node: GossipNode) -> None:
    node.handle(Contribute("load", b"mine"), 0.0, CHANCE)
    node.handle(Withdraw("load"), 1.0, CHANCE)
    node.handle(Fired(ROUND_DUE), 100.0, CHANCE)
    assert node.gossip.sets["load"].held(0)[0].version == NOW
    node.handle(Fired(ROUND_DUE), 400.0, CHANCE)
    assert rows_in(node) == {}


def test_a_contribution_that_changes_fast_is_signed_once_a_period(node: GossipNode) -> None:
    for second in range(50):
        node.handle(Contribute("load", b"%d" % second), float(second), CHANCE)
    assert rows_in(node) == {0: b"0"}
    node.handle(Fired(ROUND_DUE), 61.0, CHANCE)
    assert rows_in(node) == {0: b"49"}


def test_a_row_that_is_refreshed_too_fast_is_held_but_not_offered(node: GossipNode) -> None:
    received(node, row(5, b"first"), peer=3)
    received(node, row(5, b"second", version=NOW + 100), peer=3)
    offers = sum(5 in {offer[0] for part in parts_sent(node, 100.0) for offer in part.offers} for _ in range(20))
    assert offers > 0
    received(node, row(5, b"third", version=NOW + 101), peer=3)
    assert rows_in(node) == {5: b"third"}
    assert not [part for part in parts_sent(node, 102.0) if part.offers]


def parts_sent(node: GossipNode, now: float) -> list[GossipPart]:
    out = node.handle(Fired(ROUND_DUE), now, CHANCE)
    return [part for one in out if isinstance(one, SendMessage) for part in one.message.parts]


def test_rounds_go_on_though_nothing_is_new(node: GossipNode) -> None:
    for at in range(20):
        parts = parts_sent(node, 8.0 * at)
        assert {part.object for part in parts} == {"load", "digits"}
        assert all(part.ranges for part in parts)


def test_a_peer_is_answered_so_often_in_a_round_and_no_more(node: GossipNode) -> None:
    received(node, row(5))
    asked = [given_part(node, GossipPart("load", wants=((5, 0),))) for _ in range(3 * ANSWERS_MAX)]
    assert sum(map(len, asked)) == ANSWERS_MAX
    node.handle(Fired(ROUND_DUE), 8.0, CHANCE)
    assert given_part(node, GossipPart("load", wants=((5, 0),)))


def test_rows_of_strangers_and_of_times_to_come_are_not_requested(node: GossipNode) -> None:
    offers = ((4000, NOW, 1), (5, NOW + int(AHEAD_S) + 2, 1), (6, NOW, 1))
    (answer,) = given_part(node, GossipPart("load", offers=offers))
    assert answer.message.parts[0].wants == ((6, 0),)


def test_contributors_that_sign_ever_new_rows_cost_a_multiple_of_the_object_at_most_and_wait_for_others(
    node: GossipNode,
) -> None:
    taken = 0
    received(node, *(row(owner, bytes(100)) for owner in range(1, 101)))
    for second in range(1, 200):
        version = NOW + second
        offers = (*((owner, version, 1) for owner in range(1, 101)), (500 + second, NOW, 1))
        for answer in given_part(node, GossipPart("load", offers=offers), now=float(second)):
            wants = [owner for owner, _ in answer.message.parts[0].wants]
            assert wants[:1] == [500 + second], "who is new waits for who signs every second"
            rows = [row(owner, bytes(100), version=version if owner <= 100 else NOW) for owner in wants]
            taken += sum(map(row_bytes, rows))
            received(node, *rows, now=float(second))
    assert taken <= 1.3 * (BURST_BYTES + 200 * FLOOD * Load.bytes_per_s)


def test_rows_that_were_not_requested_are_ignored_beyond_the_budget(node: GossipNode) -> None:
    for first in range(1, 900, 100):
        received(node, *(row(owner, bytes(128)) for owner in range(first, first + 100)))
    assert len(rows_in(node)) < 250


def test_objects_of_a_zone_stay_in_it() -> None:
    made = GossipWorld(40, 4, [Zonal()])
    for node in made.nodes:
        made.world.give(node.me, Contribute("zonal", b"x"))
    made.world.run(200.0)
    for node in made.nodes:
        zone = [other.me for other in made.nodes if node.in_zone(other.me)]
        assert sorted(node.gossip.sets["zonal"].rows) == zone


def test_a_state_is_dumped_to_plain_data_and_taken_up(node: GossipNode) -> None:
    node.handle(Contribute("load", b"mine"), 0.0, CHANCE)
    received(node, row(5), row(6, b"a"), row(6, b"b"))
    plain = msgspec.msgpack.decode(msgspec.msgpack.encode(node.gossip.dump()))
    again = GossipNode(0, [0] * 1000, [Load(), Digits()], STARTED_S)
    again.gossip.load(plain)
    for name, of in node.gossip.sets.items():
        assert again.gossip.sets[name].rows == of.rows
        assert again.gossip.sets[name].conflicts == of.conflicts
    again.gossip.load({"format": 99})


def test_a_decoded_message_is_bounded() -> None:
    large = GossipMessage((GossipPart("load", rows=(SignedRow(1, 1, 1, bytes(7000)),)),))
    many = GossipMessage((GossipPart("load", wants=((1, 0),) * 200),))
    future = GossipMessage((GossipPart("load", offers=((1, 2**64 - 1, 0),)),))
    for message in (large, many, future):
        with pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=GossipMessage)


owners = st.integers(0, 2**32 - 1) | st.text("abcdef.", min_size=1, max_size=255)
wide_rows = st.builds(
    lambda owner, size: SignedRow(owner, NOW, NOW, bytes(size), bytes(64)), owners, st.integers(0, 4096)
)
contents = st.tuples(
    st.lists(st.tuples(owners, st.just(NOW), st.integers(0, 2**64 - 1)), max_size=600),
    st.lists(st.tuples(owners, st.just(NOW)), max_size=200),
    st.lists(wide_rows, max_size=20),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(contents, min_size=1, max_size=6), st.integers(0, 100))
def test_a_message_never_exceeds_its_bound_whatever_objects_have_to_send(of: list[Any], turn: int) -> None:
    outgoing = []
    for number, (offers, wants, rows) in enumerate(of):
        definition = Wide()
        definition.name = f"wide-{number}"
        one = Outgoing(definition)
        one.ranges = [(0, 2**64 - 1)]
        one.offers, one.wants, one.rows = list(offers), list(wants), list(rows)
        outgoing.append(one)
    encoded = msgspec.msgpack.encode(packed(outgoing, turn))
    assert len(encoded) <= MESSAGE_BYTES_MAX
    assert msgspec.msgpack.decode(encoded, type=GossipMessage) == packed(outgoing, turn)


def test_no_object_starves_beside_one_that_fills_every_message() -> None:
    greedy, modest = Outgoing(Wide()), Outgoing(Load())
    greedy.rows = [row(owner, bytes(4000)) for owner in range(1, 50)]
    modest.offers = [(owner, NOW, 1) for owner in range(20)]
    for turn in range(4):
        parts = {part.object: part for part in packed([greedy, modest], turn).parts}
        assert len(parts["load"].offers) == 20
        assert parts["wide"].rows


def test_an_object_takes_what_others_leave() -> None:
    greedy, modest = Outgoing(Wide()), Outgoing(Load())
    greedy.rows = [row(owner, bytes(3000)) for owner in range(1, 50)]
    modest.offers = [(1, NOW, 1)]
    sizes = [len(msgspec.msgpack.encode(packed([greedy, modest], turn))) for turn in (0, 1)]
    assert max(sizes) > 0.75 * MESSAGE_BYTES_MAX


def test_rows_reach_all_domains_and_a_lost_one_is_found_by_comparison() -> None:
    made = GossipWorld(60, 2, [Load()])
    made.world.network.conditions.loss = 0.2
    for node in made.nodes:
        made.world.later(node.me, Contribute("load", b"%d" % node.me), 30 * made.chance.random())
    made.world.run(120.0)
    held = [len(node.gossip.sets["load"].rows) for node in made.nodes]
    assert min(held) < 60 <= sum(held) / 50
    made.world.network.conditions.loss = 0.0
    made.world.run(300.0)
    assert {len(node.gossip.sets["load"].rows) for node in made.nodes} == {60}


def test_after_a_partition_both_sides_hold_all_rows_again() -> None:
    made = GossipWorld(40, 3, [Load()])
    made.world.network.conditions.sides = bytearray(number % 2 for number in range(40))
    for node in made.nodes:
        made.world.give(node.me, Contribute("load", b"%d" % node.me))
    made.world.run(280.0)
    assert {len(node.gossip.sets["load"].rows) for node in made.nodes} == {20}
    made.world.network.conditions.sides = None
    made.world.run(520.0)
    assert {len(node.gossip.sets["load"].rows) for node in made.nodes} == {40}


def test_an_equivocating_domain_is_known_to_all_within_a_minute() -> None:
    made = GossipWorld(60, 5, [Load()])
    made.world.run(10.0)
    for target, payload in ((3, b"low"), (50, b"high")):
        message = GossipMessage((GossipPart("load", rows=(row(59, payload, version=NOW + 10),)),))
        made.world.give(target, MessageReceived(59, message))
    made.world.run(70.0)
    found = {domain for domain, event, _ in made.events if isinstance(event, RowsConflict) and event.owner == 59}
    assert found >= set(range(59))
    assert all(59 not in node.gossip.sets["load"].rows for node in made.nodes)


def steady(count: int) -> float:
    """Bytes per second and domain, each way, in two refresh periods after the first two."""

    class Small(GossipObject):
        name = "small"
        refresh_s = 20.0
        bytes_per_s = 400.0

    made = GossipWorld(count, 6, [Small()])
    for node in made.nodes:
        made.world.later(node.me, Contribute("small", bytes(40)), 60 * made.chance.random())
    period_s = Small().refresh_period_s(count, 265)
    made.world.run(60 + 2 * period_s)
    before = sum(node.sent for node in made.nodes)
    made.world.run(60 + 4 * period_s)
    return (sum(node.sent for node in made.nodes) - before) / count / (2 * period_s)


@pytest.mark.long
def test_the_cost_of_an_object_stays_when_the_federation_grows_fourfold() -> None:
    small, large = steady(40), steady(160)
    assert large < 400.0
    assert 0.8 * small <= large <= 1.2 * small


def test_the_same_seed_draws_the_same_gossip() -> None:
    runs = []
    for _ in range(2):
        made = GossipWorld(20, 7, [Load(), Zonal()])
        for node in made.nodes:
            made.world.give(node.me, Contribute("load", b"x"))
        made.world.run(60.0)
        runs.append((made.world.handled, [node.sent for node in made.nodes]))
    assert runs[0] == runs[1]


def test_timers_and_messages_are_named_for_whoever_routes_them() -> None:
    assert {GossipMessage} == gossip.MESSAGES
    assert type(ROUND_DUE) in gossip.TIMERS
    assert gossip_rows.SETTLE_S > gossip.ROUND_S
