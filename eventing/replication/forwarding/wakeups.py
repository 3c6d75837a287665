"""Wake-ups: a process with something for a peer records it in Redis, and ensures that exactly one task forwards it.

Per peer there are the dirty set of RPs (`dirty`), the peer lock of the one task that forwards (`lock`, its token, with
an expiry that the task renews), a list that notifies a waiting task (`ring`), and a note that a task was sent and has
not begun (`sent`). Each step is one script, so that no wake-up falls between two of them:

    woken:   note the RPs; a task has the lock -> notify it; none was sent -> send one
    begun:   take the lock, unless another task has it
    ended:   release the lock, unless something was noted meanwhile: then go on

A task that dies keeps the lock until it expires (LOCK_S), and what it had taken out of `dirty` is lost; the sweep
(sweeping.py) finds both by comparing vectors, and needs none of these keys. A task that ends because Redis does not
answer cannot release its lock: its process remembers the lock, and the sweep releases it when Redis answers again
(`forwarding_locks_recover`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping

from eventing.core.container import per_process
from eventing.replication.ports import forward_start, forwards_waiting
from eventing.store import peer_state
from eventing.store.errors import RedisError
from eventing.store.peer_state import PeerLock

# Longer than a request to a peer; renewed before each request and while a turn waits.
LOCK_S = 30  # bound: seconds that a peer lock is valid; the lock of a dead task expires
SENT_S = 20  # a task that has not begun by then counts as lost, and the next wake-up sends another
RPS_MAX = 1000  # RPs of one request (wire.py)
# A turn sends those that it has taken in their order; the set that they are taken from has none, so of many some would wait for long.
TAKEN_MAX = 5000  # bound: RPs that a turn takes over before a request; it takes the others before the next one


_stopping = per_process(threading.Event)
"""Return the event that is set when this process is asked to end."""


def stop() -> None:
    """Ask this process to end: turns end after their present request."""
    _stopping().set()


def stopping() -> bool:
    """Return whether `stop` was called."""
    return _stopping().is_set()


def others_wait() -> bool:
    """Return whether the tasks of other peers wait for a thread. Raises redis.RedisError."""
    return forwards_waiting.provider is not None and forwards_waiting() > 0


def wake(peer: str, rps: Iterable[str] = (), *, anyway: bool = False) -> None:
    """Add these RPs to the peer's dirty set, and have them forwarded. Raises redis.RedisError.

    Args:
        anyway: send a task even if one was sent that has not begun: it may be lost, or delayed (store/peer_state.py: `hold_off`).
    """
    wake_all({peer: rps}, anyway=anyway)


def wake_all(rps: Mapping[str, Iterable[str]], *, anyway: bool = False) -> None:
    """Wake forwarding to several peers as `wake` does, each for its RPs. Where one server of several refuses, the others' peers are woken
    before its error is raised.
    """
    noted = peer_state.wakes_note(rps, SENT_S, anyway=anyway)
    for peer, answer in noted.items():
        if answer is True and forward_start.provider is not None:
            forward_start(peer)
    for answer in noted.values():
        if isinstance(answer, RedisError):
            raise answer


def probe(peer: str) -> None:
    """Try a failing peer at once after a sign of life in its request (store/peer_state.py: `failing`)."""
    if peer_state.probe_note(peer, SENT_S) and forward_start.provider is not None:
        forward_start(peer)


@per_process
def _abandoned() -> dict[str, PeerLock]:
    """Locks, by peer, that this process holds and could not release, because Redis did not answer when their
    tasks ended.
    """
    return {}


def peer_lock_acquire(peer: str) -> PeerLock | None:
    """Take the lock of a peer; None where `PeerLock.begin` returns False. Raises redis.RedisError."""
    lock = PeerLock(peer, os.urandom(8).hex(), LOCK_S)
    try:
        return lock if lock.acquire() else None
    except RedisError:
        _abandoned()[peer] = lock  # the lock may have been taken, and only the answer was lost
        raise


def peer_lock_abandon(lock: PeerLock) -> None:
    """Release the lock whatever is dirty, now or, if Redis does not answer, when it does (`forwarding_locks_recover`)."""
    try:
        lock.release(whatever=True)
    except RedisError:
        _abandoned()[lock.peer] = lock


def forwarding_locks_recover() -> list[str]:
    """Release the locks of this process's tasks that ended while Redis did not answer. Returns their peers, which may
    lack anything. Raises redis.RedisError.
    """
    ended = []
    abandoned = _abandoned()
    for peer, lock in list(abandoned.items()):
        lock.release(whatever=True)
        if abandoned.get(peer) == lock:
            del abandoned[peer]
        ended.append(peer)
    return ended
