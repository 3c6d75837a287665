"""The last sample of the overlay, for snapshots and for the next one. All functions raise redis.RedisError."""

from __future__ import annotations

from typing import Any

from eventing.store.client import client
from eventing.store.keys import OVERLAY_SAMPLE_KEY

KEPT_S = 86_400


def overlay_sample_store(sample: bytes) -> None:
    """Store the last sample."""
    client().set(OVERLAY_SAMPLE_KEY, sample, ex=KEPT_S)


def overlay_sample_stored() -> bytes | None:
    """Return the last sample; None if there is no recent one."""
    found: Any = client().get(OVERLAY_SAMPLE_KEY)
    return None if found is None else bytes(found)
