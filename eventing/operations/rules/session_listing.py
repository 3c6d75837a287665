"""Lists of live sessions over all gateways: what is asked, what each gateway answers, and the orders. Pure.

Every gateway answers with the first rows of its own after the place in the order that was asked for; put together and cut
once more they are the first of all. Sessions come, go and fall behind between two pages, so a list is never one picture of
one moment: a page is what was so when it was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from eventing.core.decoding import json_reader

LIMIT_MAX = 100  # rows of a page, and of each gateway's answer: some 30 KiB
ID_CHARS_MAX = 64
NUMBER_MAX = 2**53  # of what a cursor may hold: greater ones, and NaN, are not what every reader of JSON takes them for
RPS_SHOWN = 10  # of the RPs that a session reads; `readings` counts all
Sort = Literal["id", "lag", "since"]
SORTS: tuple[Sort, ...] = ("id", "lag", "since")
Key = tuple[Any, ...]


class Row(msgspec.Struct, frozen=True):
    """One session.

    Attributes:
        id: the gateway's id and a number; good until the session ends, never given again.
        principal: identity of who reads; empty for a stranger.
        issuer: who signed the token.
        kind: `herald.v1`, `cloudevents` or `sse`.
        rps: ids of RPs that it reads, at most RPS_SHOWN; `readings`: how many in all.
        since: Unix seconds.
        state: `idle` (reads nothing), `live`, `replaying` (is fed from the log), `stalled` (does not take what is sent).
        lag: events that the reading furthest behind is behind its log's end.
        waiting_bytes: what was written and not yet taken by the network.
        address: where it comes from.
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


class Ask(msgspec.Struct, frozen=True):
    """What is asked of every gateway.

    Attributes:
        reply: names the place where the answers are to go.
        close: None to list; else disconnect what matches, `True` so that the clients connect again.
        session, principal, rp: only those; empty: any.
        sort, after, limit: of a list: the order, the key of the row before the first, how many rows.
    """

    reply: str
    close: bool | None = None
    session: str = ""
    principal: str = ""
    rp: str = ""
    sort: Sort = "id"
    after: tuple[Any, ...] | None = None
    limit: int = LIMIT_MAX


class Answer(msgspec.Struct, frozen=True):
    """One gateway's answer: its first rows, one more than `limit` where it has more, and how many sessions match there."""

    gateway: str
    matching: int
    rows: list[Row] = []


def key_of(sort: Sort, *, id: str, lag: int, waiting_bytes: int, since: float) -> Key:
    """The place of a session in an order: `lag` has the slowest first, `since` the oldest, each then by id."""
    if sort == "lag":
        return (-lag, -waiting_bytes, id)
    return (since, id) if sort == "since" else (id,)


def row_key(sort: Sort, row: Row) -> Key:
    """`key_of` a row."""
    return key_of(sort, id=row.id, lag=row.lag, waiting_bytes=row.waiting_bytes, since=row.since)


def key_valid(sort: Sort, key: Any) -> bool:
    """Whether `key`, read from a cursor, is one that `key_of` may have given in this order."""
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


def merged(answers: Iterable[Answer], sort: Sort, limit: int) -> tuple[list[Row], bool]:
    """The first `limit` rows of all gateways, and whether there are more."""
    rows = sorted((row for answer in answers for row in answer.rows), key=lambda row: row_key(sort, row))
    return rows[:limit], len(rows) > limit


encode = msgspec.json.Encoder().encode
ask_read = json_reader(Ask)
answer_read = json_reader(Answer)
