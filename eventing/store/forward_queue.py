"""The queue of peers to which is to be forwarded, in a small domain: a list in Redis in place of Celery's queue.

The forwarder waits in one command for the next peer, so an idle domain polls nothing. What is lost with a process is found by the sweep,
as with Celery (replication/forwarding/wakeups.py). All functions raise redis.RedisError.
"""

from __future__ import annotations

from typing import Any

from eventing.store.client import client
from eventing.store.keys import FORWARD_QUEUE_KEY

WAITING_MAX = 10_000  # bound: peers that wait for a thread of the forwarder; the oldest are dropped, and the sweep enqueues them again


def forward_enqueue(peer: str) -> None:
    """Enqueue a peer."""
    pipeline = client().pipeline(transaction=False)
    pipeline.rpush(FORWARD_QUEUE_KEY, peer)
    pipeline.ltrim(FORWARD_QUEUE_KEY, -WAITING_MAX, -1)
    pipeline.execute()


def forward_take(within_s: float) -> str | None:
    """Return the next peer; None if there is none within that time.

    Args:
        within_s: seconds; below the time limit for an answer of Redis.
    """
    found: Any = client().blpop([FORWARD_QUEUE_KEY], timeout=within_s)
    return None if found is None else str(found[1].decode())


def forwards_queued() -> int:
    """Return how many peers wait."""
    found: Any = client().llen(FORWARD_QUEUE_KEY)
    return int(found)
