"""Requests to the WebSub hub in Redis, from their arrival until the deliverer has settled them.

Requests of strangers cost no row in SQL: they are soft state, bounded in all, for each source, and for each host that is to
be called because of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eventing.store.client import script_read
from eventing.store.keys import HUB_REQUESTS_KEY, PUSH_CHANNEL, hub_count_key

UNSETTLED_MAX = 10_000  # bound: unsettled requests of the domain; a further request is refused with 429
SOURCE_MAX = 60  # bound: requests a minute of one principal or address; a further request is refused with 429
TARGET_MAX = 120  # bound: requests a minute with callbacks at one host; a further request is refused with 429
COUNTS_S = 60
PAGE = 100
HUB_NOTICE = "websub"
"""Message on the deliverer's channel; every other message is the id of a subscription."""

_FOLDER = Path(__file__).parent / "lua"
_ADD = script_read(_FOLDER, "hub_request_add")
_SETTLE = script_read(_FOLDER, "hub_request_settle")


async def hub_request_add(redis: Any, field: str, request: bytes, *, source: str, target: str) -> str:
    """Store a request and notify the deliverer. Returns `stored`, or the bound that is reached. Raises redis.RedisError.

    Args:
        redis: an asynchronous client.
        field: identifies topic and callback.
        source: identity or address of the sender.
        target: host of the callback.
    """
    keys = (HUB_REQUESTS_KEY, hub_count_key("from", source), hub_count_key("to", target))
    found = await redis.eval(_ADD.text, 3, *keys, field, request, UNSETTLED_MAX, SOURCE_MAX, TARGET_MAX)
    answer = found.decode() if isinstance(found, bytes) else str(found)
    if answer == "stored":
        await redis.publish(PUSH_CHANNEL, HUB_NOTICE)
    return answer


async def hub_requests_page(redis: Any, cursor: int) -> tuple[int, dict[bytes, bytes]]:
    """Return some unsettled requests by field, and the cursor to continue from; 0: no more. Raises redis.RedisError."""
    following, found = await redis.hscan(HUB_REQUESTS_KEY, cursor, count=PAGE)
    return int(following), found


async def hub_request_settle(redis: Any, field: bytes, request: bytes) -> None:
    """Remove a settled request, unless another one has replaced it. Raises redis.RedisError."""
    await redis.eval(_SETTLE.text, 1, HUB_REQUESTS_KEY, field, request)
