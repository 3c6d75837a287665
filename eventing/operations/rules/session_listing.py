"""Lists of live sessions over all gateways: questions, answers of gateways, and orders. Pure.

Every gateway answers with its first rows after the requested place in the order; merged and cut once more they are the
first of all. Sessions begin, end and fall behind between two pages, so a list is no consistent snapshot: a page is the
state at its request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from eventing.core.decoding import json_reader

# About 30 KiB.
LIMIT_MAX = 100  # bound: sessions of a page; the others are on the next page
ID_CHARS_MAX = 64
NUMBER_MAX = 2**53  # in a cursor: readers of JSON differ about greater numbers and NaN
RPS_SHOWN = 10  # RPs of a session in its row; `readings` counts all
Sort = Literal["id", "lag", "since"]
SORTS: tuple[Sort, ...] = ("id", "lag", "since")
Key = tuple[Any, ...]


class Row(msgspec.Struct, frozen=True):
    """One session.

    Attributes:
        id: the gateway's id and a number; valid until the session ends, never reused.
        principal: identity of the reader; empty for a stranger.
        issuer: issuer of the token.
        kind: `herald.v1`, `cloudevents` or `sse`.
        rps: ids of RPs that it reads, at most RPS_SHOWN; `readings`: the number of all.
        since: Unix seconds.
        state: `idle` (reads nothing), `live`, `replaying` (is fed from the log), `stalled` (does not read what is
            sent).
        lag: greatest lag of its readings, events.
        waiting_bytes: bytes written and not yet accepted by the network.
        address: the client's address.
        passed: events that its readings have passed, summed over their logs; 0 from gateways of another release.
    """

    id: str
    gateway: str
    principal: str
    issuer: str
    kind: str
    rps: list[str]
    readings: int
    since: float
    state: Literal["idle", "live", "replaying", "stalled"]
    lag: int
    waiting_bytes: int
    address: str
    passed: int = 0


class Ask(msgspec.Struct, frozen=True):
    """A question to every gateway.

    Attributes:
        reply: the key for the answers.
        close: None to list; else disconnect the matching sessions, `True` so that the clients connect again.
        session, principal, rp: only those; empty: any.
        sort, after, limit: of a list: the order, the key of the row before the first, the number of rows.
    """

    reply: str
    close: bool | None = None
    session: str = ""
    principal: str = ""
    rp: str = ""
    sort: Sort = "id"
    after: tuple[Any, ...] | None = None
    limit: int = LIMIT_MAX


class SessionListing(msgspec.Struct, frozen=True):
    """One gateway's answer: its first rows, one more than `limit` if it has more, and the number of matching sessions
    there.
    """

    gateway: str
    matching: int
    rows: list[Row] = []


def key_of(sort: Sort, *, id: str, lag: int, waiting_bytes: int, since: float) -> Key:
    """Return the place of a session in an order: `lag` has the slowest first, `since` the oldest, each then by id."""
    if sort == "lag":
        return (-lag, -waiting_bytes, id)
    return (since, id) if sort == "since" else (id,)


def row_key(sort: Sort, row: Row) -> Key:
    """Return `key_of` a row."""
    return key_of(sort, id=row.id, lag=row.lag, waiting_bytes=row.waiting_bytes, since=row.since)


def key_valid(sort: Sort, key: Any) -> bool:
    """Return whether `key`, read from a cursor, is one that `key_of` may have made in this order."""
    wanted: dict[Sort, tuple[Callable[[Any], bool], ...]] = {
        "id": (_is_id,),
        "lag": (_is_behind, _is_behind, _is_id),
        "since": (_is_moment, _is_id),
    }
    checks = wanted[sort]
    return (
        isinstance(key, list)
        and len(key) == len(checks)
        and all(is_one(part) for part, is_one in zip(key, checks, strict=True))
    )


def _is_id(part: Any) -> bool:
    return isinstance(part, str) and len(part) <= ID_CHARS_MAX


def _is_behind(part: Any) -> bool:
    return type(part) is int and -NUMBER_MAX <= part <= 0


def _is_moment(part: Any) -> bool:
    return type(part) in (int, float) and 0 <= part <= NUMBER_MAX


def merged(answers: Iterable[SessionListing], sort: Sort, limit: int) -> tuple[list[Row], bool]:
    """Return the first `limit` rows of all gateways, and whether there are more."""
    rows = sorted((row for answer in answers for row in answer.rows), key=lambda row: row_key(sort, row))
    return rows[:limit], len(rows) > limit


encode = msgspec.json.Encoder().encode
ask_read = json_reader(Ask)
answer_read = json_reader(SessionListing)
