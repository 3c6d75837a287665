"""The codec: all messages of the machines pass it, and nothing that another domain sends can exceed its bounds."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.membership.wire import codec
from eventing.membership.wire.codec import BadOverlayMessage, check_of, decode, encode
from eventing.overlay.directory_messages import Compare, Equivocation, News, RangeEntries, Records, Want
from eventing.overlay.gossip_messages import GossipMessage, GossipPart
from eventing.overlay.gossip_object import RowChange, SignedRow
from eventing.overlay.links import Disconnect, Neighbor, NeighborReply, Reason
from eventing.overlay.liveness import Alive, Beat, Probe, ProbeFor
from eventing.overlay.machine import Id
from eventing.overlay.member import MESSAGES
from eventing.overlay.suspicion import MonitorPing, MonitorPong
from tests.membership.signers import Signer

RECORD = Signer("a.example").record()
SENT: list[Any] = [
    News((("a.example", 7, 2**64 - 1),)),
    Records((RECORD,)),
    Compare(((0, 2**64 - 1),)),
    RangeEntries((1, 2), (("a.example", 7, 0),)),
    Want(("a.example",)),
    Equivocation(RECORD, RECORD),
    Neighbor(True),
    NeighborReply(False, ("a.example",)),
    Disconnect(Reason.LEAVING),
    Beat(),
    Probe(),
    Probe("a.example"),
    Alive("a.example", None),
    ProbeFor("a.example"),
    MonitorPing(),
    MonitorPong(),
    GossipMessage(
        (
            GossipPart(
                "load",
                ((0, 7),),
                (3,),
                (("a.example", 7, 2**64 - 1),),
                (("a.example", 0),),
                (SignedRow("a.example", 7, 8, b"load", bytes(64)),),
                (RowChange("a.example", 6, 7, 8, b"change", bytes(64)),),
            ),
        )
    ),
]


def test_messages_arrive_as_they_were_sent() -> None:
    assert decode(encode(SENT)) == SENT


def test_each_message_of_the_machines_has_bounds() -> None:
    for kind in sorted(MESSAGES, key=lambda one: one.__name__):
        check_of(kind)


def test_a_field_without_bounds_is_refused_before_it_is_sent() -> None:
    class Opaque(msgspec.Struct, array_like=True, tag="opaque"):
        payload: object

    with pytest.raises(TypeError, match="no bounds"):
        check_of(Opaque)


def test_a_new_message_needs_no_change_of_the_codec() -> None:
    class Gossip(msgspec.Struct, array_like=True, tag="gossip"):
        contributors: dict[Id, tuple[int, float]]
        payload: bytes | None = None

    check_of(Gossip)(Gossip({"a.example": (1, 0.5)}, b"x"))
    for bad in (Gossip({"A B": (1, 0.5)}), Gossip({"a.example": (1, math.nan)}), Gossip({}, b"x" * 20_000)):
        with pytest.raises(BadOverlayMessage):
            check_of(Gossip)(bad)


BAD: dict[str, Any] = {
    "a name that is none": Want(("not a name",)),
    "an id that is no text": Want((7,)),
    "no id where one is needed": Want((None,)),
    "an id that cannot be hashed": Want((["a"],)),
    "a sponsor that is none": Records((msgspec.structs.replace(RECORD, domain=None),)),
    "a moment that is none": Records((msgspec.structs.replace(RECORD, issued_s=math.nan),)),
    "a moment without end": Records((msgspec.structs.replace(RECORD, expires_s=math.inf),)),
    "a record of a page": Records((msgspec.structs.replace(RECORD, signature=b"x" * 600),)),
    "a text of control characters": Records((msgspec.structs.replace(RECORD, zone="\x1b[2J"),)),
    "more items than are read": Want(("a.example",) * 1025),
}


@pytest.mark.parametrize("message", BAD.values(), ids=BAD.keys())
def test_a_message_beyond_its_bounds_is_refused(message: Any) -> None:
    with pytest.raises(BadOverlayMessage):
        decode(msgspec.msgpack.encode([message]))


def test_more_messages_than_one_request_may_have_are_refused() -> None:
    with pytest.raises(BadOverlayMessage, match="messages"):
        decode(encode([Beat()] * (codec.MESSAGES_MAX + 1)))


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\x91\x91\xa4want", b"\x81\x00\x00", b"\x91" * 5000, encode([["beat", 1]])[:-1]]
)
def test_bytes_that_are_no_messages_are_refused(data: bytes) -> None:
    with pytest.raises(BadOverlayMessage):
        decode(data)


def test_messages_of_types_that_a_newer_domain_has_are_skipped() -> None:
    newer = [["sonar", 1, {"loud": True}], ["beat"], ["whisper"], ["want", ["a.example"]]]
    assert decode(msgspec.msgpack.encode(newer)) == [Beat(), Want(("a.example",))]


def test_a_gossip_message_beyond_its_bound_is_refused_and_others_may_be_as_long_together() -> None:
    row = SignedRow("a.example", 1, 2, bytes(1000), bytes(64))
    long = GossipMessage((GossipPart("load", rows=(row,) * 16),))
    with pytest.raises(BadOverlayMessage, match="gossip"):
        decode(encode([long]))
    short = GossipMessage((GossipPart("load", rows=(row,) * 14),))
    assert decode(encode([short, short])) == [short, short]


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
_tags = st.sampled_from(sorted(map(codec.tag_of, MESSAGES)))


@given(st.lists(st.builds(lambda tag, rest: [tag, *rest], _tags, st.lists(_values, max_size=12)), max_size=3))
def test_whatever_is_sent_is_messages_within_bounds_or_refused(sent: list[Any]) -> None:
    try:
        found = decode(msgspec.msgpack.encode(sent))
    except BadOverlayMessage:
        return
    assert all(type(message) in MESSAGES for message in found)
    assert decode(encode(found)) == found
