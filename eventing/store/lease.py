"""Leases of background work: of all processes that could do a task, one has the right to, until its lease expires.

Each step is one script that compares the owner with the holder, so a process that stalled for longer than its lease can
neither renew nor release the lease of its successor.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from eventing.store.client import client as own_client
from eventing.store.client import script_read

_FOLDER = Path(__file__).parent / "lua"
_ACQUIRE = script_read(_FOLDER, "lease_acquire")
_RENEW = script_read(_FOLDER, "lease_renew")
_RELEASE = script_read(_FOLDER, "lease_release")


class LeaderLease(NamedTuple):
    """The right of one owner. Each method returns 1 or 0 as the client in use does: an asynchronous one returns an
    awaitable, a pipeline returns the number among its answers. All raise redis.RedisError.

    Args:
        key: key of the lease (store/keys.py).
        owner: unique among processes.
        duration_ms: time from the last `acquire` or `renew` to the expiry of the lease.
    """

    key: str
    owner: str
    duration_ms: int

    def acquire(self, client: Any = None) -> Any:
        """Acquire the lease, or renew it if this owner holds it; 0 while another owner holds it.

        Args:
            client: a synchronous or asynchronous client or a pipeline; None: this process's synchronous client.
        """
        return (client or own_client()).eval(_ACQUIRE.text, 1, self.key, self.owner, self.duration_ms)

    def renew(self, client: Any = None) -> Any:
        """Renew the lease; 0 if it has expired or another owner holds it. `client`: see `acquire`."""
        return (client or own_client()).eval(_RENEW.text, 1, self.key, self.owner, self.duration_ms)

    def release(self, client: Any = None) -> Any:
        """Release the lease; 0 if it has expired or another owner holds it. `client`: see `acquire`."""
        return (client or own_client()).eval(_RELEASE.text, 1, self.key, self.owner)
