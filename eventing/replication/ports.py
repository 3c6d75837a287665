"""Ports of replication to the process that it runs in (core/ports.py)."""

from __future__ import annotations

from eventing.core.ports import Port


@Port
def forward_start(peer: str, /) -> None:
    """Start the task that forwards to the peer. Not connected: no task is started, and the sweep forwards."""


@Port
def forwards_waiting() -> int:
    """Return how many such tasks wait for a thread. Not connected: unknown. Raises redis.RedisError."""
    raise NotImplementedError
