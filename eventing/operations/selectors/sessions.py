"""Reads of live sessions, of all gateways: asked when somebody wants to see them (store/sessions.py)."""

from __future__ import annotations

import json
from dataclasses import dataclass

import msgspec

from eventing.core import strict_json
from eventing.core.errors import InvalidCursor, InvalidRequest
from eventing.log import control
from eventing.operations.rules.session_listing import (
    LIMIT_MAX,
    SORTS,
    Answer,
    Ask,
    Key,
    Row,
    Sort,
    answer_read,
    encode,
    key_valid,
    merged,
    row_key,
)
from eventing.sql.pages import cursor_of, key_of
from eventing.store.sessions import ask_gateways


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers; `asked` is how many gateways received the question."""

    asked: int
    answers: list[Answer]


@dataclass(frozen=True, slots=True)
class SessionsPage:
    """One page: its rows, the cursor of the next (None on the last), how many match, and who was asked and answered."""

    items: list[Row]
    next: str | None
    matching: int
    asked: int
    answered: int


def sessions_page(
    *, principal: str = "", rp: str = "", sort: str = "id", cursor: str | None = None, limit: int = LIMIT_MAX
) -> SessionsPage:
    """The live sessions of the domain.

    Args:
        principal: only those of this identity; `rp`: only those that read the RP with this id. Empty: any.
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
    return SessionsPage(rows, following, _matching(found), found.asked, len(found.answers))


def session_find(session: str) -> tuple[Row | None, bool]:
    """One session, None if no gateway that answered has it; and whether all answered. Raises redis.RedisError."""
    found = sessions_ask(Ask("", session=session, limit=1))
    rows, _ = merged(found.answers, "id", 1)
    return (rows[0] if rows else None), len(found.answers) >= found.asked


def sessions_ask(ask: Ask) -> Answered:
    """Ask all gateways; where the answers go is filled in here. Raises redis.RedisError."""
    found = ask_gateways(control.client(), lambda reply: encode(msgspec.structs.replace(ask, reply=reply)))
    return Answered(found.asked, [answer_read(answer) for answer in found.answers])


def sort_of(text: str) -> Sort:
    """The order of this name. Raises InvalidRequest."""
    for known in SORTS:
        if text == known:
            return known
    raise InvalidRequest(f"sort is one of {', '.join(SORTS)}.")


def _matching(found: Answered) -> int:
    return sum(answer.matching for answer in found.answers)


def _after(sort: Sort, cursor: str) -> Key:
    try:
        key = strict_json.parse(key_of(f"sessions-{sort}", cursor).encode())
    except strict_json.NotStrictJson:
        key = None
    if not key_valid(sort, key):
        raise InvalidCursor("Use the `next` of the page before, with the same filters.")
    return tuple(key)
