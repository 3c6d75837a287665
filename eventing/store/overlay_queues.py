"""Queues of the overlay: messages that gateways received, for the one process that runs the overlay, and messages that wait for a
call of a domain that cannot be called.

All functions raise redis.RedisError.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from eventing.store.client import client, run_script, script_read
from eventing.store.keys import OVERLAY_TURN_KEY, overlay_inbox_key, overlay_outbox_key
from eventing.store.lease import LeaderLease

INBOX_MAX = 1000  # bound: overlay requests that wait for the process of the overlay; 503
INBOX_KEPT_S = 60  # bound: seconds that overlay requests wait for the process of the overlay; all are dropped
OUTBOX_MAX = 128  # bound: overlay messages that wait for a domain's call; the oldest are dropped
OUTBOX_KEPT_S = 60  # bound: seconds that overlay messages wait for a domain's call; all are dropped
TAKEN_MAX = 64  # entries taken from the inbox at once
_RECEIVE = script_read(Path(__file__).parent / "lua", "overlay_receive")
_SEPARATOR = b"\n"
AGAIN = "again"
"""Command: read what an administrator changed, and begin anew."""
LOOK = "look"
"""Command: make a picture now; somebody looks at it."""


class OverlayNotRunning(Exception):
    """No process of this domain runs the overlay at the moment."""


class OverlayBusy(Exception):
    """The inbox is full."""


def overlay_lease(owner: str, duration_ms: int) -> LeaderLease:
    """Return the lease of the process that runs the overlay. `owner` is unique among processes."""
    return LeaderLease(OVERLAY_TURN_KEY, owner, duration_ms)


def overlay_receive(sender: str, messages: bytes) -> list[bytes]:
    """Enqueue messages of a domain; return those that wait for it. Raises OverlayNotRunning, OverlayBusy."""
    return _entered(sender.encode() + _SEPARATOR + messages, overlay_outbox_key(sender))


def _entered(entry: bytes, *outbox: str) -> list[bytes]:
    keys = (OVERLAY_TURN_KEY, overlay_inbox_key(""), *outbox)
    found: Any = run_script(_RECEIVE, [len(keys), *keys, entry, INBOX_MAX, INBOX_KEPT_S * 1000])
    if found == -1:
        raise OverlayNotRunning
    if found == -2:
        raise OverlayBusy
    return list(found)


def overlay_again() -> None:
    """Enqueue the command AGAIN of this domain for the process of the overlay, if there is one."""
    with suppress(OverlayNotRunning, OverlayBusy):
        _entered(_SEPARATOR + AGAIN.encode())


def overlay_look() -> None:
    """Enqueue the command LOOK for the process of the overlay, if there is one."""
    with suppress(OverlayNotRunning, OverlayBusy):
        _entered(_SEPARATOR + LOOK.encode())


def overlay_observe(observations: bytes) -> None:
    """Enqueue observations of this domain for the process of the overlay. Raises OverlayNotRunning, OverlayBusy."""
    _entered(_SEPARATOR + observations)


def overlay_running() -> bool:
    """Return whether a process runs the overlay."""
    return bool(client().exists(OVERLAY_TURN_KEY))


def overlay_take(owner: str, wait_s: float) -> list[tuple[str, bytes]]:
    """Take what waits in an owner's inbox, each with its sender (empty for commands); wait for the first entry at most `wait_s`."""
    inbox = overlay_inbox_key(owner)
    first: Any = client().blpop([inbox], timeout=wait_s)
    if first is None:
        return []
    more: Any = client().lpop(inbox, TAKEN_MAX - 1)
    found = []
    for entry in (first[1], *(more or ())):
        sender, _, messages = entry.partition(_SEPARATOR)
        found.append((sender.decode(), messages))
    return found


def overlay_outbox_put(domain: str, messages: Sequence[bytes]) -> None:
    """Leave messages for a domain's next call."""
    key = overlay_outbox_key(domain)
    pipeline = client().pipeline(transaction=False)
    pipeline.rpush(key, *messages)
    pipeline.ltrim(key, -OUTBOX_MAX, -1)
    pipeline.expire(key, OUTBOX_KEPT_S)
    pipeline.execute()
