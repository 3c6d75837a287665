"""Records of attempts to deliver to endpoints in Redis: the last ones of each subscription, and notices to the deliverer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.store.bulk_connection import Command
from eventing.store.client import client
from eventing.store.keys import PUSH_CHANNEL, PUSH_TURN_KEY, push_attempts_key
from eventing.store.lease import LeaderLease

ATTEMPTS_KEPT = 50  # bound: attempts kept of a subscription; the oldest is discarded
KEPT_S = 30 * 86_400


class PushAttempt(msgspec.Struct, array_like=True, frozen=True):
    """One attempt.

    Attributes:
        at_ms: its begin, Unix milliseconds.
        what: `event`, `consent`, `test`, `replay`, or `warning` to the owner.
        epoch, first, last: the events sent; empty and 0 for none of the log.
        number: of this attempt for these events, from 1.
        verdict: of AttemptVerdict.
        reason: status or failure as a code.
        took_ms: milliseconds until the verdict.
        address: address connected to.
        excerpt: the begin of the answer's body.
        message: the value of `webhook-id`, where the mode has one.
    """

    at_ms: int
    what: str
    epoch: str
    first: int
    last: int
    number: int
    verdict: str
    reason: str
    took_ms: int
    address: str
    excerpt: Annotated[bytes, msgspec.Meta(max_length=4096)]
    message: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgpack_reader(PushAttempt)


def attempt_commands(rp: str, subscription: str, attempts: Sequence[PushAttempt]) -> list[Command]:
    """Return the commands that add these attempts of a subscription, the last one newest."""
    key = push_attempts_key(rp, subscription)
    return [
        ("LPUSH", key, *[_encode(attempt) for attempt in attempts[-ATTEMPTS_KEPT:]]),
        ("LTRIM", key, 0, ATTEMPTS_KEPT - 1),
        ("EXPIRE", key, KEPT_S),
    ]


def attempts_read(rp: str, subscription: str, count: int = ATTEMPTS_KEPT) -> list[PushAttempt]:
    """Return the last attempts, the newest first. Raises redis.RedisError."""
    kept: Any = client().lrange(push_attempts_key(rp, subscription), 0, count - 1)
    return _decoded(kept)


def attempts_read_each(places: Sequence[tuple[str, str]]) -> list[list[PushAttempt]]:
    """Return the last attempts of each subscription, given with its RP, in one round trip. Raises redis.RedisError."""
    pipeline = client().pipeline(transaction=False)
    for rp, subscription in places:
        pipeline.lrange(push_attempts_key(rp, subscription), 0, ATTEMPTS_KEPT - 1)
    return [_decoded(kept) for kept in pipeline.execute()]


def _decoded(kept: Sequence[bytes]) -> list[PushAttempt]:
    found = []
    for data in kept:
        try:
            found.append(_decode(data))
        except Undecodable:  # written by another version
            continue
    return found


def push_notify(subscription: str) -> None:
    """Notify the deliverer that something about a subscription changed. Raises redis.RedisError."""
    client().publish(PUSH_CHANNEL, subscription)


def push_lease(owner: str, duration_ms: int) -> LeaderLease:
    """Return the lease of the domain's deliverer."""
    return LeaderLease(PUSH_TURN_KEY, owner, duration_ms)
