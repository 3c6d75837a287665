"""Moves of readers: which share of an RP's readers is pointed to other domains, until when, and which readers these are.

Life of a move: begun (by draining, placement, a load beyond the fair share or an operator) -> each gateway draws the sessions that it
moves, and redirects them one after the other over `spread_s` -> over at `until`, or ended before. A redirect is advice: a client that does
not support it, or finds no better server, stays.
"""

from __future__ import annotations

import msgspec

from eventing.core.decoding import Undecodable, json_reader
from eventing.replication.rules.ranking import drawn_by_room, hash_share

HOPS_MAX = 2  # bound: redirects that one client follows within its memory of them; it stays where it is served
MOVES_MAX = 100  # bound: moves of readers under way in a domain; another is refused: 409 `conflict`
ROOMS_MAX = 64  # bound: domains with room that a move names to gateways; readers are not pointed to the others
URLS_MAX = 16  # bound: addresses of a move; it is refused: 422 `invalid-request`
MOVE_S_MAX = 86_400.0  # bound: seconds until the end of a move; it is refused: 422 `invalid-request`
SPREAD_S_MAX = 3600.0  # bound: seconds over which redirects are spread; it is refused: 422 `invalid-request`
REASON_CHARS_MAX = 500  # bound: characters of the reason of a move; it is refused: 422 `invalid-request`
NAMED_MAX = 2  # bound: addresses of a redirect by room; the client takes the nearest of these, or stays
VALID_S = 60.0
"""Seconds for which a client may follow a redirect after it arrived."""


class ReaderMove(msgspec.Struct, frozen=True):
    """An instruction to all gateways of the domain.

    Attributes:
        rp: id of the RP.
        share: of its readers, above 0 up to 1.
        to: base URLs of the domains, the best first; empty: ranked for each reader.
        until: end, Unix seconds.
        spread_s: seconds over which the redirects are sent.
        reason: for people.
        new_share: of the readers that begin while it lasts and were not redirected here, from 0 to 1, redirected at once; None: those that
            begin are drawn as the others.
        rooms: base URLs of domains with the room of each as a weight, drawn from for each reader; empty: `to` counts.
        began: Unix seconds; 0 if the domain that stored it did not state it.
        by: part that began it, of BY.
        readers: of all domains that serve the RP, as far as known when it began; for balancing.
    """

    id: str
    rp: str
    share: float
    to: tuple[str, ...]
    until: float
    spread_s: float
    reason: str
    new_share: float | None = None
    rooms: tuple[tuple[str, int], ...] = ()
    began: float = 0.0
    by: str = ""
    readers: int = 0


BY_OPERATOR, BY_DRAINING, BY_PLACEMENT, BY_BALANCING = BY = ("operator", "draining", "placement", "balancing")
_read = json_reader(ReaderMove)
move_written = msgspec.json.Encoder().encode


def move_read(stored: bytes) -> ReaderMove | None:
    """Decode a stored move; None if it is none of this version's."""
    try:
        return _read(stored)
    except Undecodable:
        return None


def is_drawn(move: ReaderMove, session: str) -> bool:
    """Return whether the session is among the share that moves."""
    return hash_share("drawn", move.id, session) < move.share


def new_is_drawn(move: ReaderMove, session: str, hops: int) -> bool:
    """Return whether a session that begins is redirected: by a share for those that begin only if it was not redirected here.

    Args:
        hops: redirects that its client has followed lately.
    """
    if move.new_share is None:
        return is_drawn(move, session)
    return hops == 0 and hash_share("new", move.id, session) < move.new_share


def new_pause_s(move: ReaderMove, session: str, now: float) -> float:
    """Return the seconds until a session that begins is redirected; 0 where a move has a share of its own for these."""
    return pause_s(move, session, now) if move.new_share is None else 0.0


def targets_by_room(move: ReaderMove, session: str) -> list[str]:
    """Return the addresses drawn for a session by the rooms of the move, NAMED_MAX at most; none if it states no rooms."""
    return drawn_by_room(move.rooms, session, NAMED_MAX)


def pause_s(move: ReaderMove, session: str, now: float) -> float:
    """Return the seconds until the session is redirected: its own part of what is left of the spread."""
    return hash_share("pause", move.id, session) * max(0.0, min(move.spread_s, move.until - now))


def valid_s(move: ReaderMove, now: float) -> float:
    """Return for how many seconds a redirect that is sent now is valid; 0: the move is over."""
    return max(0.0, min(VALID_S, move.until - now))
