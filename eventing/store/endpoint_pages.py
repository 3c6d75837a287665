"""Links to endpoint pages, and the sessions made of them, in Redis, which forgets them in time. Tokens are stored as digests."""

from __future__ import annotations

from eventing.store.client import client
from eventing.store.keys import endpoint_page_count_key, endpoint_page_key, endpoint_page_link_key


def page_link_put(digest: str, data: bytes, ttl_s: int) -> None:
    """Store a link. Raises redis.RedisError."""
    client().set(endpoint_page_link_key(digest), data, ex=ttl_s)


def page_link_take(digest: str) -> bytes | None:
    """Return a link's data and remove it, so that it works once; None without one. Raises redis.RedisError."""
    found = client().getdel(endpoint_page_link_key(digest))
    return found if isinstance(found, bytes) else None


def page_links_counted(subscription: str, window_s: int) -> int:
    """Count a new link of a subscription, and return the number within the window. Raises redis.RedisError."""
    key = endpoint_page_count_key(subscription)
    pipeline = client().pipeline(transaction=True)
    pipeline.set(key, 0, ex=window_s, nx=True)
    pipeline.incr(key)
    return int(pipeline.execute()[1])


def page_session_put(digest: str, data: bytes, ttl_s: int) -> None:
    """Store a session. Raises redis.RedisError."""
    client().set(endpoint_page_key(digest), data, ex=ttl_s)


def page_session_get(digest: str) -> bytes | None:
    """Return a session's data; None for none, or one that is over. Raises redis.RedisError."""
    found = client().get(endpoint_page_key(digest))
    return found if isinstance(found, bytes) else None


def page_session_delete(digest: str) -> None:
    """End a session. Raises redis.RedisError."""
    client().delete(endpoint_page_key(digest))
