"""Reads of live sessions of all gateways, which are asked at each request (store/sessions.py)."""

from __future__ import annotations

import json
from dataclasses import dataclass

import msgspec

from eventing.core import strict_json
from eventing.core.errors import InvalidCursor, InvalidRequest
from eventing.core.timestamps import timestamp_of
from eventing.operations.rules.session_listing import (
    LIMIT_MAX,
    SORTS,
    Ask,
    Key,
    Row,
    SessionListing,
    Sort,
    answer_read,
    encode,
    key_valid,
    merged,
    row_key,
)
from eventing.operations.shapes import GatewaysAsked, SessionAnswer, SessionPage
from eventing.sql.pages import cursor_of, key_of
from eventing.store.sessions import ask_gateways


@dataclass(frozen=True, slots=True)
class SessionListings:
    """The answers; `asked` is the number of gateways that received the question."""

    asked: int
    answers: list[SessionListing]


def sessions_page(
    *, principal: str = "", rp: str = "", sort: str = "id", cursor: str | None = None, limit: int = LIMIT_MAX
) -> SessionPage:
    """Return a page of the domain's live sessions.

    Args:
        principal: only those of this identity; empty: any.
        rp: only those that read the RP with this id; empty: any.
        sort: `id`, `lag` (slowest first) or `since` (oldest first).
        limit: at most LIMIT_MAX rows.

    Raises InvalidRequest, InvalidCursor, redis.RedisError.
    """
    order = sort_of(sort)
    after = None if cursor is None else _after(order, cursor)
    limit = min(limit, LIMIT_MAX)
    found = sessions_ask(Ask("", principal=principal, rp=rp, sort=order, after=after, limit=limit))
    rows, more = merged(found.answers, order, limit)
    following = cursor_of(f"sessions-{order}", json.dumps(row_key(order, rows[-1]))) if more else None
    return SessionPage(
        items=[_shown(row) for row in rows],
        next=following,
        matching=_matching(found),
        gateways=GatewaysAsked(found.asked, len(found.answers)),
    )


def _shown(row: Row) -> SessionAnswer:
    return SessionAnswer.of(
        row,
        principal=row.principal or None,
        issuer=row.issuer or None,
        since=timestamp_of(row.since),
        address=row.address or None,
    )


def session_find(session: str) -> tuple[Row | None, bool]:
    """Return one session, None if no answering gateway has it; and whether all gateways answered. Raises
    redis.RedisError.
    """
    found = sessions_ask(Ask("", session=session, limit=1))
    rows, _ = merged(found.answers, "id", 1)
    return (rows[0] if rows else None), len(found.answers) >= found.asked


def sessions_ask(ask: Ask) -> SessionListings:
    """Ask all gateways; the key for the answers is filled in here. Raises redis.RedisError."""
    found = ask_gateways(lambda reply: encode(msgspec.structs.replace(ask, reply=reply)))
    return SessionListings(found.asked, [answer_read(answer) for answer in found.answers])


def sort_of(text: str) -> Sort:
    """Return the order of this name. Raises InvalidRequest."""
    for known in SORTS:
        if text == known:
            return known
    raise InvalidRequest(f"sort must be one of {', '.join(SORTS)}.")


def _matching(found: SessionListings) -> int:
    return sum(answer.matching for answer in found.answers)


def _after(sort: Sort, cursor: str) -> Key:
    try:
        key = strict_json.parse(key_of(f"sessions-{sort}", cursor).encode())
    except strict_json.NotStrictJson:
        key = None
    if not key_valid(sort, key):
        raise InvalidCursor("Use `next` of the previous page, with the same filters.")
    return tuple(key)
