"""Asking all gateways about their sessions, over Redis: one message to all, one answer of each, nothing in between.

Redis says how many gateways heard it, so nobody has to keep a list of them: one that was killed has lost its connection and
is neither asked nor shown. One that hears and does not answer in time (it hangs) is told as missing. While nobody asks, this
costs nothing but a subscription.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import redis
import redis.asyncio

from eventing.store import keys

WAIT_S = 1.0  # for all answers together; a gateway answers in some ms, 50,000 sessions included
ANSWERS_KEPT_MS = 10_000  # what comes too late goes by itself


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers; `asked` is how many gateways heard the question."""

    asked: int
    answers: list[bytes]


def ask_gateways(client: redis.Redis, make: Callable[[str], bytes]) -> Answered:
    """Ask every gateway, and wait for the answers, WAIT_S at most.

    Args:
        make: the question, given the name of the place for answers, which it has to state.

    Raises redis.RedisError.
    """
    reply = secrets.token_hex(8)
    key = keys.session_answers_key(reply)
    until = time.monotonic() + WAIT_S
    asked = int(client.publish(keys.SESSIONS_CHANNEL, make(reply)))
    answers: list[bytes] = []
    while len(answers) < asked and (left_s := until - time.monotonic()) > 0:
        found: Any = client.blpop([key], timeout=max(0.01, left_s))
        if found is None:
            break
        answers.append(found[1])
    client.delete(key)
    return Answered(asked, answers)


async def answer_give(client: redis.asyncio.Redis, reply: str, answer: bytes) -> None:
    """A gateway's answer. Raises redis.RedisError."""
    pipeline = client.pipeline(transaction=False)
    pipeline.rpush(keys.session_answers_key(reply), answer)
    pipeline.pexpire(keys.session_answers_key(reply), ANSWERS_KEPT_MS)
    await pipeline.execute()
