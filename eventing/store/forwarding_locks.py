"""Peer locks: the right of one process to forward to a peer, and the RPs with something to send
(replication/forwarding/wakeups.py).

All functions raise redis.RedisError.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from eventing.store.client import client, run_script
from eventing.store.keys import peer_key
from eventing.store.lease import LeaderLease
from eventing.store.scripts import script_read

PAUSE_S_MAX = 3600
_FOLDER = Path(__file__).parent / "lua"
_WAKE = script_read(_FOLDER, "wake")
_BEGIN = script_read(_FOLDER, "forwarding_lock_acquire")
_END = script_read(_FOLDER, "forwarding_lock_release")
_NOTED = (
    "untaken", "dirty", "turn", "ring", "sent", "probe", "failing", "supplied", "paused", "links", "again", "traffic", "contact",
)  # fmt: skip


def wake_note(peer: str, rps: Iterable[str], sent_s: int, *, anyway: bool) -> bool:
    """Note that something happened at these RPs. Returns True if a task must be sent, which is noted for `sent_s`.

    Args:
        anyway: send a task even if one was sent that has not begun.
    """
    return bool(run_script(_WAKE, [*_keys(peer, "dirty", "turn", "ring", "sent"), sent_s * 1000, int(anyway), *rps]))


class PeerLock(NamedTuple):
    """The lock of a peer: the right to forward to it, of the task with this token. Each step compares the token.

    Args:
        duration_s: after `acquire` and each `renew` the lock expires.
    """

    peer: str
    token: str
    duration_s: int

    def acquire(self) -> bool:
        """Take the lock; False if another task has it, which then forwards what is dirty, or while the peer is paused."""
        keys = _keys(self.peer, "turn", "sent", "paused")
        return bool(run_script(_BEGIN, [*keys, self.token, self.duration_s * 1000]))

    def renew(self) -> bool:
        """Renew the lock; False if it was lost meanwhile: the caller must stop."""
        return bool(LeaderLease(peer_key(self.peer, "turn"), self.token, self.duration_s * 1000).renew())

    def release(self, *, whatever: bool = False) -> bool:
        """Release the lock; False if something is dirty (the caller continues then), unless `whatever` is set."""
        keys = _keys(self.peer, "dirty", "turn", "ring")
        return bool(run_script(_END, [*keys, self.token, int(whatever)]))

    def take(self, count_max: int) -> list[str]:
        """Remove and return dirty RPs, at most so many."""
        found: Any = client().spop(peer_key(self.peer, "dirty"), count_max)
        return [rp.decode() for rp in found or ()]

    def put_back(self, rps: Collection[str]) -> None:
        """Make RPs dirty again that could not be forwarded."""
        if rps:
            client().sadd(peer_key(self.peer, "dirty"), *rps)

    def wait(self, timeout_s: float) -> bool:
        """Wait until an RP is dirty, at most `timeout_s`; return whether one is."""
        return client().blpop([peer_key(self.peer, "ring")], timeout=max(0.01, timeout_s)) is not None


def peer_lock_drop(peer: str) -> None:
    """Release the lock of any owner, at the start of the forwarder, whose killed predecessor may have it.
    One that lives after all stops at its next `renew`."""
    _delete(peer, "turn", "ring", "sent", "paused")


def probe_note(peer: str, kept_s: int) -> bool:
    """Request a probe of the peer; False if one was requested within `kept_s` and none has begun."""
    return bool(client().set(peer_key(peer, "probe"), "1", nx=True, ex=kept_s))


def probed(peer: str) -> bool:
    """Return True if a probe was requested since the last call."""
    return bool(client().delete(peer_key(peer, "probe")))


def pause(peer: str, pause_s: float) -> None:
    """Pause forwarding to the peer (at most PAUSE_S_MAX) at its request. Work found by the sweep meanwhile waits too."""
    since_and_s = f"{time.time()!r} {pause_s!r}"  # peering/selectors/standing.py shows it
    client().set(peer_key(peer, "paused"), since_and_s, px=_pause_ms(pause_s))
    hold_off(peer, pause_s)


def paused(peer: str) -> bool:
    """Return True if forwarding to the peer is paused."""
    return bool(client().exists(peer_key(peer, "paused")))


def pause_end(peer: str) -> None:
    """End the pause of the peer."""
    _delete(peer, "paused")


def hold_off(peer: str, pause_s: float) -> None:
    """Send no task for the peer for `pause_s` (at most PAUSE_S_MAX), whatever happens: it would only find that it must wait."""
    client().set(peer_key(peer, "sent"), "1", px=_pause_ms(pause_s))


def forget(peer: str) -> None:
    """Remove all notes about a domain that is no longer a peer."""
    _delete(peer, *_NOTED)


def _pause_ms(pause_s: float) -> int:
    return max(1, min(int(pause_s * 1000), PAUSE_S_MAX * 1000))


def _keys(peer: str, *what: str) -> list[Any]:
    """Make key count and keys of a script."""
    return [len(what), *(peer_key(peer, one) for one in what)]


def _delete(peer: str, *what: str) -> None:
    client().delete(*(peer_key(peer, one) for one in what))
