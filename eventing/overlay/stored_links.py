"""Stored form of links, and of the links of the version before.

Format 2 has a list for each part of a link, format 1 had the fields of all parts in one list. Both are read. Format 2 is
written, which the version before cannot decode and treats as absent: it asks the peer what it holds, which loses nothing
(docs/decisions/0061).
"""

from __future__ import annotations

import msgspec

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.overlay.feed_tree import FeedTree
from eventing.overlay.graft_timer import GRAFT_S, GraftTimer
from eventing.overlay.link_refusals import LinkRefusals
from eventing.overlay.link_state import NEW, Link
from eventing.overlay.link_vector import PeerVector
from eventing.overlay.presumed_vector import PresumedVector

FORMAT = 2


class StoredLink(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A link of format 2."""

    format: int
    link: Link


class LinkFormat1(msgspec.Struct, array_like=True, frozen=True):
    """A link of format 1."""

    format: int
    lazy: frozenset[str] = frozenset()
    pruned: frozenset[str] = frozenset()
    theirs: dict[str, int] = {}
    met: bool = False
    awaited: dict[str, int] = {}
    ask_at: float | None = None
    asked: int = 0
    grafting: bool = False
    deaf: dict[str, tuple[float, int]] = {}
    shut_until: float = 0.0
    refusals: int = 0
    received_at: float = 0.0
    patience_s: float = GRAFT_S
    grafted: frozenset[str] = frozenset()
    presumed: dict[str, int] = {}
    ask_presumed_at: float | None = None
    awaited_at: float = 0.0
    late_s: float = 0.0
    confirm_at: float | None = None
    unsendable: dict[str, tuple[float, int, int]] = {}
    met_at: float = 0.0
    presumed_by: dict[str, str] = {}
    paths_doubted_until: float = 0.0

    def link(self) -> Link:
        """The same link in its parts."""
        return Link(
            PeerVector(self.theirs, self.met, self.received_at, self.met_at, self.confirm_at),
            FeedTree(self.lazy, self.pruned, self.grafted),
            GraftTimer(
                self.awaited, self.awaited_at, self.ask_at, self.asked, self.grafting, self.patience_s, self.late_s
            ),
            PresumedVector(self.presumed, self.presumed_by, self.ask_presumed_at, self.paths_doubted_until),
            LinkRefusals(self.deaf, self.unsendable, self.shut_until, self.refusals),
        )


def stored(link: Link) -> bytes:
    """Encode the link for storage."""
    return _encode(StoredLink(FORMAT, link))


def read(data: bytes | None) -> Link:
    """Decode a stored link; a new link for None and for undecodable data: asking the peer again loses nothing."""
    if data is None:
        return NEW
    try:
        found = _decode(data)
    except Undecodable:
        return _read_format_1(data)
    return found.link if found.format == FORMAT else _read_format_1(data)


def _read_format_1(data: bytes) -> Link:
    try:
        found = _decode_format_1(data)
    except Undecodable:
        return NEW
    return found.link() if found.format == 1 else NEW


_encode = msgspec.msgpack.Encoder().encode
_decode = msgpack_reader(StoredLink)
_decode_format_1 = msgpack_reader(LinkFormat1)
