"""The data plane as this process knows it: which primary is the home of which RP.

The topology of several servers is looked up at the first use, every REFRESH_S, and whenever a server's answer or a lost
connection shows that it has changed. Whoever finds that calls `look_again` and repeats.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from time import monotonic
from typing import Any

from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    ReadOnlyError,
    RedisError,
    TimeoutError,
    TryAgainError,
)

from eventing.core.container import memoized
from eventing.core.data_plane import (
    CLUSTER,
    SINGLE,
    DataPlaneAddress,
    Primary,
    Topology,
    UnownedSlot,
    data_plane_address,
    keys_of_command,
    slot_of_key,
    slot_of_tag,
)
from eventing.store.topology import look_up

REFRESH_S = 10.0  # bound: seconds that a topology counts as known; it is looked up anew
ANSWERS_OF_CHANGE = ("MASTERDOWN", "UNBLOCKED", "NOREPLICAS")
"""Beginnings of answers that redis-py has no class for."""
log = logging.getLogger(__name__)


class SeveralSlots(RedisError):
    """A command has keys of several slots, which may be at different servers."""


def is_of_topology(error: object) -> bool:
    """Return True for a server's answer that the command was not carried out because of the topology or of a failover that is
    under way: it is to be repeated after a new look at the topology."""
    if isinstance(error, AskError | ClusterDownError | TryAgainError | ReadOnlyError | BusyLoadingError):
        return True  # MovedError is an AskError, MasterDownError a ClusterDownError
    return isinstance(error, RedisError) and str(error).startswith(ANSWERS_OF_CHANGE)


def is_of_connection(error: object) -> bool:
    """Return True where a server could not be reached, or the connection broke: the command may have been carried out."""
    return isinstance(error, ConnectionError | TimeoutError | OSError)


class Plane:
    """Homes of RPs among several servers. One per process; thread-safe."""

    def __init__(self, address: DataPlaneAddress) -> None:
        self.address = address
        self._topology: Topology | None = None
        self._began = float("-inf")  # when the look began that the topology is of
        self._lock = threading.Lock()

    @property
    def sharded(self) -> bool:
        """True for a cluster, where notifications are published on channels of slots."""
        return self.address.kind == CLUSTER

    @property
    def is_known(self) -> bool:
        """True once the topology was looked up."""
        return self._topology is not None

    def home_of(self, rp: str) -> Primary:
        """Return the primary that holds everything of an RP. Raises redis.RedisError."""
        return self.home_of_slot(slot_of_tag(rp))

    def home_of_key(self, key: Any) -> Primary:
        """Return the primary of a key or channel; any one for None. Raises redis.RedisError."""
        return self.primaries()[0] if key is None else self.home_of_slot(slot_of_key(key))

    def home_of_slot(self, slot: int) -> Primary:
        """Return the primary of a slot. Raises redis.RedisError."""
        try:
            return self.topology().home_of_slot(slot)
        except UnownedSlot:
            raise ClusterDownError(f"no primary holds slot {slot}") from None

    def primaries(self) -> tuple[Primary, ...]:
        """Return all primaries, in an order that lasts while they do. Raises redis.RedisError."""
        found = self.topology().primaries
        if not found:
            raise ClusterDownError("the cluster has no primary")
        return found

    def topology(self) -> Topology:
        """Return the topology as last looked up; the first call looks it up. Raises redis.RedisError."""
        if self._topology is None:
            self.look_again(monotonic())
            assert self._topology is not None  # noqa: S101 - else the look has raised
        return self._topology

    def refresh(self, older_than_s: float = REFRESH_S) -> None:
        """Have a thread look the topology up anew, if the last look began longer ago; returns at once."""
        if monotonic() - self._began > older_than_s and not self._lock.locked():
            threading.Thread(target=self._quietly, args=(monotonic(),), name="topology", daemon=True).start()

    def look_again(self, since: float) -> None:
        """Look the topology up, unless another thread did so after `since` (monotonic seconds). Keeps the known one where no
        server answers.

        Raises redis.RedisError where none is known and no server answers.
        """
        with self._lock:
            if self._began >= since:
                return
            began = monotonic()
            known = [primary.place for primary in self._topology.primaries] if self._topology else ()
            try:
                found = look_up(self.address, known)
            except RedisError as error:
                if self._topology is None:
                    raise
                log.debug("The topology of the data plane could not be looked up: %s", error)
                return
            self._began = began
            if found == self._topology:
                return
            if self._topology is not None:
                names = ", ".join(primary.place.name for primary in found.primaries)
                log.info("The topology of the data plane has changed; primaries: %s.", names)
            self._topology = found

    def _quietly(self, since: float) -> None:
        try:
            self.look_again(since)
        except RedisError as error:
            log.debug("The topology of the data plane could not be looked up: %s", error)


def require_one_slot(commands: Sequence[Sequence[Any]]) -> Any:
    """Return a key of these commands; None without any. Raises SeveralSlots unless all of their keys are of one slot."""
    keys = [key for command in commands for key in keys_of_command(command)]
    if len(keys) > 1 and len({slot_of_key(key) for key in keys}) > 1:
        raise SeveralSlots(f"{commands[0][0]} has keys of several slots")
    return keys[0] if keys else None


@memoized(maxsize=8)
def plane_of(url: str) -> Plane | None:
    """Return this process's knowledge of the data plane at `url`; None for a single server. Raises ConfigError."""
    address = data_plane_address(url)
    return None if address.kind == SINGLE else Plane(address)
