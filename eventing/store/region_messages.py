"""Messages of other domains about regions, on their way from gateways to the process that keeps the views.

All functions raise redis.RedisError.
"""

from __future__ import annotations

from typing import Any

from eventing.store.client import client
from eventing.store.keys import REGION_MESSAGES_KEY

WAITING_MAX = 1000  # bound: messages about regions that wait; the next one is refused: 503
TAKEN_MAX = 200


def region_message_put(message: bytes) -> bool:
    """Append a message; False if too many wait."""
    if int(client().llen(REGION_MESSAGES_KEY)) >= WAITING_MAX:
        return False
    client().rpush(REGION_MESSAGES_KEY, message)
    return True


def region_messages_take() -> list[bytes]:
    """Remove and return the first messages, at most TAKEN_MAX."""
    found: Any = client().lpop(REGION_MESSAGES_KEY, TAKEN_MAX)
    return list(found or ())
