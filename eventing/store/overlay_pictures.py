"""State of the overlay in Redis: the picture that gateways show, and what the next run of its process takes up.

All functions raise redis.RedisError.
"""

from __future__ import annotations

from typing import Any

from eventing.store.client import client
from eventing.store.keys import (
    OVERLAY_LINKS_KEY,
    OVERLAY_PICTURE_KEY,
    OVERLAY_ROWS_KEY,
    OVERLAY_SEEN_KEY,
    OVERLAY_STATE_KEY,
    OVERLAY_WATCHED_KEY,
)

WATCHED_S = 20  # after a look; a screen or a program that goes on looks again meanwhile
STATE_KEPT_S = 6 * 3600  # longer than any lease in it


def picture_store(picture: bytes, kept_s: float) -> bool:
    """Store the picture for so long; return whether people look at it."""
    pipeline = client().pipeline(transaction=False)
    pipeline.set(OVERLAY_PICTURE_KEY, picture, px=max(1, int(kept_s * 1000)))
    pipeline.exists(OVERLAY_WATCHED_KEY)
    return bool(pipeline.execute()[1])


def picture_watched() -> bool:
    """Note that somebody looks at the picture; return whether nobody did before."""
    return bool(client().set(OVERLAY_WATCHED_KEY, "1", ex=WATCHED_S, nx=True))


def picture_stored() -> bytes | None:
    """Return the picture; None if there is no recent one."""
    return _stored(OVERLAY_PICTURE_KEY)


def seen_store(seen: bytes, kept_s: float) -> None:
    """Store what is known of single domains for so long."""
    client().set(OVERLAY_SEEN_KEY, seen, px=max(1, int(kept_s * 1000)))


def seen_stored() -> bytes | None:
    """Return what is known of single domains; None if there is nothing recent."""
    return _stored(OVERLAY_SEEN_KEY)


def state_store(state: bytes) -> None:
    """Store the state for the next run."""
    client().set(OVERLAY_STATE_KEY, state, ex=STATE_KEPT_S)


def state_stored() -> bytes | None:
    """Return the state of the last run; None if there is none."""
    return _stored(OVERLAY_STATE_KEY)


def row_version_store(name: str, version: int) -> None:
    """Store the version of an own row before the row is sent."""
    client().hset(OVERLAY_ROWS_KEY, name, str(version))


def row_versions_stored() -> dict[str, int]:
    """Return the versions of the last own rows by gossip object."""
    found: Any = client().hgetall(OVERLAY_ROWS_KEY)
    return {name.decode(): int(version) for name, version in found.items()}


def overlay_forget() -> None:
    """Delete picture and state: this domain left the overlay. Versions of own rows stay, so that none is used twice."""
    client().delete(OVERLAY_PICTURE_KEY, OVERLAY_SEEN_KEY, OVERLAY_STATE_KEY, OVERLAY_LINKS_KEY)


def _stored(key: str) -> bytes | None:
    found: Any = client().get(key)
    return None if found is None else bytes(found)
