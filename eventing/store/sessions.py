"""Queries to all gateways about their sessions, over Redis: one message to all, one answer from each.

Redis returns the number of gateways that received the message, so no list of gateways is needed: a killed one has lost
its connection and is neither queried nor shown. One that receives the message and does not answer in time (it hangs) is
reported as missing. Without queries, this costs one subscription. Where the data plane has several servers, a gateway may
be subscribed at another one than the message was sent to, while the channel moves: the gateways with a sign of life
count instead, so one that was killed is missing for some seconds.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import redis.asyncio

from eventing.store import keys
from eventing.store.client import client as own_client
from eventing.store.routed import RoutedRedis

# A gateway answers in some milliseconds, even with 50,000 sessions; on a busy machine it may take a second.
WAIT_S = 3.0  # bound: seconds to wait for the answers of all gateways; the answer names the gateways that are missing
ANSWERS_KEPT_MS = 10_000  # late answers expire


@dataclass(frozen=True, slots=True)
class GatewayAnswers:
    """The answers; `asked` is the number of gateways that received the query."""

    asked: int
    answers: list[bytes]


def ask_gateways(make: Callable[[str], bytes]) -> GatewayAnswers:
    """Ask every gateway, and wait for the answers, WAIT_S at most.

    Args:
        make: makes the query, given the key of the list for answers, which it has to contain.

    Raises redis.RedisError.
    """
    client, reply = own_client(), secrets.token_hex(8)
    key = keys.session_answers_key(reply)
    until = time.monotonic() + WAIT_S
    asked = int(client.publish(keys.SESSIONS_CHANNEL, make(reply)))
    if isinstance(client, RoutedRedis):
        asked = max(asked, int(client.zcount(keys.GATEWAYS_KEY, time.time(), "+inf")))
    answers: list[bytes] = []
    while len(answers) < asked and (left_s := until - time.monotonic()) > 0:
        found: Any = client.blpop([key], timeout=max(0.01, left_s))
        if found is None:
            break
        answers.append(found[1])
    client.delete(key)
    return GatewayAnswers(asked, answers)


async def answer_give(client: redis.asyncio.Redis, reply: str, answer: bytes) -> None:
    """Send a gateway's answer. Raises redis.RedisError."""
    pipeline = client.pipeline(transaction=False)
    pipeline.rpush(keys.session_answers_key(reply), answer)
    pipeline.pexpire(keys.session_answers_key(reply), ANSWERS_KEPT_MS)
    await pipeline.execute()
