"""Moves of an RP's readers to other domains: begun, ended, under way. Draining, placement and balancing call these; all gateways obey.

Each is an event on the RP's and the domain's administrative RP, with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.utils import timezone

from eventing.core.errors import Conflict, InvalidRequest
from eventing.core.timestamps import timestamp_of
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.replication.rules.balancing import SPREAD_S, BalancingStep
from eventing.replication.rules.reader_moves import (
    BY_BALANCING,
    BY_OPERATOR,
    BY_PLACEMENT,
    MOVE_S_MAX,
    MOVES_MAX,
    REASON_CHARS_MAX,
    ROOMS_MAX,
    SPREAD_S_MAX,
    URLS_MAX,
    ReaderMove,
    move_read,
    move_written,
)
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.sql.random_ids import random_id
from eventing.store.reader_moves import reader_move_store, reader_moves_delete, reader_moves_stored


def readers_move(
    *,
    rp: str,
    share: float,
    until: datetime,
    to: Sequence[str] = (),
    spread_s: float = 30.0,
    reason: str,
    by: str = BY_OPERATOR,
    now: datetime | None = None,
) -> ReaderMove:
    """Point a share of an RP's readers, and of those who publish to it over a connection, to other domains.

    Args:
        rp: id or name.
        share: above 0 up to 1.
        until: end of the move; at most MOVE_S_MAX from now.
        to: base URLs of domains that serve the RP, the best first; empty: ranked for each reader.
        spread_s: seconds over which the redirects are sent.
        reason: for people and the event.
        by: part that begins it, of BY.

    Raises InvalidRequest, Conflict (MOVES_MAX are under way), NotFound, Gone, redis.RedisError.
    """
    now = now or timezone.now()
    left_s = (until - now).total_seconds()
    if not 0 < share <= 1:
        raise InvalidRequest("share is above 0 and at most 1.")
    if not 0 < left_s <= MOVE_S_MAX:
        raise InvalidRequest(f"until is in the future, at most {MOVE_S_MAX:g} s from now.")
    if not 0 <= spread_s <= SPREAD_S_MAX:
        raise InvalidRequest(f"spread_s is from 0 to {SPREAD_S_MAX:g}.")
    if len(to) > URLS_MAX or not all(map(_is_base_url, to)):
        raise InvalidRequest(f"to has at most {URLS_MAX} base URLs of domains, http or https.")
    if len(reason) > REASON_CHARS_MAX:
        raise InvalidRequest(f"A reason has at most {REASON_CHARS_MAX} characters.")
    move = ReaderMove(
        random_id(),
        descriptor_get(rp).id,
        float(share),
        tuple(to),
        until.timestamp(),
        float(spread_s),
        reason,
        began=now.timestamp(),
        by=by,
    )
    _begin(move, now)
    return move


def readers_spread(*, rp: str, step: BalancingStep, reason: str, now: datetime) -> ReaderMove:
    """Point the readers that a step of balancing moves to domains by their room, instead of earlier steps for the RP.

    Raises Conflict (MOVES_MAX are under way), redis.RedisError.
    """
    move = ReaderMove(
        random_id(),
        rp,
        step.share,
        (),
        step.until,
        SPREAD_S,
        reason,
        new_share=step.new_share,
        rooms=step.rooms[:ROOMS_MAX],
        began=now.timestamp(),
        by=BY_BALANCING,
        readers=step.readers,
    )
    before = [one.id for one in reader_moves(now=now) if one.rp == rp and one.by in (BY_BALANCING, BY_PLACEMENT)]
    _begin(move, now, instead_of=before)
    return move


def _begin(move: ReaderMove, now: datetime, instead_of: Sequence[str] = ()) -> None:
    if len(reader_moves(now=now)) - len(instead_of) >= MOVES_MAX:
        raise Conflict(f"{MOVES_MAX} moves of readers are under way. End some of them first.")
    with change(now) as outbox:
        outbox.event(events.READERS_MOVING, move.rp, _event_data(move), domain_too=True)
    reader_move_store(move.id, move_written(move), instead_of)


def readers_move_end(*, move: str, now: datetime | None = None) -> bool:
    """End a move before its time; return whether it was under way. Raises redis.RedisError."""
    now = now or timezone.now()
    found = next((one for one in reader_moves(now=now) if one.id == move), None)
    if found is None:
        return False
    reader_moves_delete(move)
    with change(now) as outbox:
        outbox.event(events.READERS_MOVE_ENDED, found.rp, _event_data(found), domain_too=True)
    return True


def reader_moves(*, now: datetime | None = None) -> list[ReaderMove]:
    """Return the moves that are under way, by their ends; entries that are over are deleted. Raises redis.RedisError."""
    at = (now or timezone.now()).timestamp()
    stored = {id: move_read(entry) for id, entry in reader_moves_stored().items()}
    reader_moves_delete(*(id for id, move in stored.items() if move is None or move.until <= at))
    return sorted((move for move in stored.values() if move is not None and move.until > at), key=_end)


def _end(move: ReaderMove) -> tuple[float, str]:
    return move.until, move.id


def _event_data(move: ReaderMove) -> dict[str, Any]:
    return {
        "rp": move.rp,
        "move": move.id,
        "share": move.share,
        "new_share": move.new_share,
        "to": list(move.to) or [url for url, _ in move.rooms][:URLS_MAX],
        "until": timestamp_of(move.until),
        "spread_s": move.spread_s,
        "reason": move.reason,
        "by": move.by,
    }


def _is_base_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
