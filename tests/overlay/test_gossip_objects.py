"""Every gossip object keeps the laws of gossip objects, and the example of the how-to runs."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.overlay import gossip_objects
from eventing.overlay.gossip import Contribute
from eventing.overlay.gossip_messages import MESSAGE_BYTES_MAX
from eventing.overlay.gossip_object import (
    REFRESH_S_MAX,
    SIGNATURE_BYTES_MAX,
    GossipObject,
    Rows,
    SignedRow,
    merge_rows,
    row_bytes,
)
from eventing.overlay.link_rows import MILLISECONDS_MAX, MeasuredLink, links_payload
from eventing.overlay.load_rows import AMOUNT_MAX, DomainLoad, ZoneTotals, payload_of
from eventing.overlay.suspicion_rows import ACCUSED_MAX, accusation_payload
from tests.overlay.gossiping import GossipWorld

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "gossip-object.md"
EXAMPLE: dict[str, Any] = {}
exec("\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)), EXAMPLE)


class Digits(GossipObject):
    """Numbers of many digits, of which the last ones change: an object with changes."""

    name = "digits"
    payload_bytes_max = 64

    def change(self, before: bytes, after: bytes) -> bytes | None:
        same = 0
        while same < min(len(before), len(after)) and before[same] == after[same]:
            same += 1
        return bytes([same]) + after[same:] if same > 1 else None

    def apply(self, before: bytes, change: bytes) -> bytes | None:
        return before[: change[0]] + change[1:] if change and change[0] <= len(before) else None


PAYLOADS: dict[str, st.SearchStrategy[bytes]] = {
    "digits": st.binary(max_size=64),
    "software": st.text("0123456789.", max_size=32).map(lambda text: EXAMPLE["msgspec"].msgpack.encode([text])),
}
"""Valid payloads of each object."""
amounts = st.integers(0, AMOUNT_MAX)
loads = st.builds(DomainLoad, amounts, amounts, amounts, amounts)
PAYLOADS["load"] = PAYLOADS["load-sample"] = loads.map(payload_of)
PAYLOADS["load-totals"] = st.builds(ZoneTotals, st.text(max_size=16), amounts, amounts, loads, loads).map(payload_of)
PAYLOADS["rebuttals"] = st.just(b"")
accused = st.tuples(st.integers(0, 2**32 - 1) | st.text("abc.", max_size=255), st.integers(0, 2**40 - 1))
PAYLOADS["accusations"] = st.lists(accused, max_size=ACCUSED_MAX).map(lambda of: accusation_payload(tuple(of)))
millionths, milliseconds = st.integers(0, 10**6), st.integers(0, MILLISECONDS_MAX)
measured = st.builds(MeasuredLink, st.text("abc.", min_size=1, max_size=253), millionths, milliseconds, milliseconds)
PAYLOADS["links"] = st.lists(measured, max_size=40, unique_by=lambda link: link.peer).map(links_payload)
OBJECTS: list[GossipObject] = [Digits(), EXAMPLE["Software"](), *(one() for one in gossip_objects.ALL)]
every_object = pytest.mark.parametrize("definition", OBJECTS, ids=lambda one: one.name)


def rows_of(definition: GossipObject) -> st.SearchStrategy[Rows]:
    """What a domain may hold of one contributor; few versions, so that contradictions are common."""
    payloads = PAYLOADS[definition.name]
    row = st.builds(lambda version, payload: SignedRow(1, version, 100, payload, b""), st.integers(1, 3), payloads)
    return st.lists(row, max_size=3).map(lambda rows: merge_rows((), tuple(rows)))


@every_object
@given(data=st.data())
def test_merge_is_commutative_associative_and_idempotent(definition: GossipObject, data: st.DataObject) -> None:
    one, other, third = (data.draw(rows_of(definition)) for _ in range(3))
    assert merge_rows(one, one) == one
    assert merge_rows(one, other) == merge_rows(other, one)
    assert merge_rows(merge_rows(one, other), third) == merge_rows(one, merge_rows(other, third))
    assert merge_rows((), one) == one


@every_object
@given(data=st.data())
def test_payloads_are_valid_within_bounds_and_changes_lead_from_one_to_the_other(
    definition: GossipObject, data: st.DataObject
) -> None:
    before, after = data.draw(PAYLOADS[definition.name]), data.draw(PAYLOADS[definition.name])
    assert definition.valid(1, before)
    assert len(before) <= definition.payload_bytes_max
    change = definition.change(before, after)
    if change is not None:
        assert definition.apply(before, change) == after


@every_object
@given(owner=st.integers(0, 9), payload=st.binary(max_size=256))
def test_payloads_of_strangers_raise_nothing(definition: GossipObject, owner: int, payload: bytes) -> None:
    assert definition.valid(owner, payload) in (True, False)
    definition.apply(payload, payload)


@every_object
def test_an_object_states_its_bounds(definition: GossipObject) -> None:
    largest = SignedRow("d" * 255, 1, 1, bytes(definition.payload_bytes_max), bytes(SIGNATURE_BYTES_MAX))
    assert 2 * row_bytes(largest) < MESSAGE_BYTES_MAX, "two contradictory rows do not fit into a message"
    assert definition.bytes_max >= definition.rows_max * definition.payload_bytes_max
    assert definition.refresh_period_s(10**6, 10**3) <= REFRESH_S_MAX
    assert 0 < definition.share <= 16


def test_names_of_objects_are_unique() -> None:
    assert len({definition.name for definition in OBJECTS}) == len(OBJECTS)


def test_three_rows_of_one_version_merge_alike_in_every_order() -> None:
    rows = [SignedRow(1, 5, 100, payload) for payload in (b"a", b"b", b"c")]
    found = set()
    for order in permutations(rows):
        held: Rows = ()
        for row in order:
            held = merge_rows(held, (row,))
        found.add(held)
    assert found == {(rows[0], rows[1])}


def test_domains_of_the_how_to_count_each_other() -> None:
    made = GossipWorld(3, 1, [EXAMPLE["Software"]()])
    for node, version in zip(made.nodes, ("5.0", "5.0", "5.1"), strict=True):
        payload = EXAMPLE["msgspec"].msgpack.encode(EXAMPLE["SoftwareInUse"](version))
        made.world.give(node.me, Contribute("software", payload))
    made.world.run(60.0)
    assert isinstance(EXAMPLE["contribution"], Contribute)
    for node in made.nodes:
        assert EXAMPLE["domains_by_version"](node.gossip.sets["software"]) == {"5.0": 2, "5.1": 1}
