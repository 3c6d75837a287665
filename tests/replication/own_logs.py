"""What the tests of seals share: logs of this domain, filled by hand, and both planes' state put back to what it was."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from eventing.conf import config
from eventing.core.events.cloudevents import Event
from eventing.core.events.feeds import Feed
from eventing.core.events.history import HistoryBounds
from eventing.core.seals import seals
from eventing.core.seals.seals import Seal
from eventing.core.signing import Signed
from eventing.log import control, federated
from eventing.log.federated import LogHead, StoredSeal
from eventing.replication.models import SealHead
from eventing.store import keys
from eventing.store.client import client as redis_client
from tests.log.harness import NEW_RP

BOUNDS = HistoryBounds(100_000, 64 * 1024 * 1024, None)
_NUMBERS = itertools.count(1)
decode = msgspec.msgpack.Decoder(Signed).decode


def new_log(bounds: HistoryBounds = BOUNDS) -> str:
    """The id of an RP with an empty log."""
    rp = next(NEW_RP)
    control.ensure_log(rp, bounds)
    return rp


def publish(rp: str, count: int, *, size: int = 40, bounds: HistoryBounds = BOUNDS) -> None:
    """Append new events, distinct ones each time."""
    numbers = [next(_NUMBERS) for _ in range(count)]
    if numbers:
        control.append(
            rp, [Event("/t", str(n), "t", f"event {n} ".encode().ljust(size, b".")) for n in numbers], bounds
        )


def state(rp: str) -> LogHead:
    """How far the log is."""
    found = federated.heads([rp])[0]
    assert found is not None
    return found


def own_key(rp: str) -> str:
    """The key of the own feed in its present epoch."""
    return Feed(config().domain, state(rp).epoch).key


def kept(rp: str) -> list[StoredSeal]:
    """All own seals that the log keeps, the oldest first."""
    found: list[StoredSeal] = []
    key, sequence, last = own_key(rp), 1, state(rp).sealed
    while sequence <= last:
        seal = federated.seal_of(rp, key, sequence)
        if seal is None:
            sequence += 1
        else:
            found.append(seal)
            sequence = seal.last + 1
    return found


def read(stored: StoredSeal) -> tuple[Signed, Seal]:
    """A seal that is kept: the statement, and what it says."""
    statement = decode(stored.seal)
    return statement, seals.seal_read(statement)


def head(rp: str) -> SealHead:
    """The head in SQL of the log's epoch."""
    return SealHead.objects.get(rp=rp, epoch=state(rp).epoch)


def backup(rp: str) -> dict[bytes, bytes]:
    """All that Redis holds of one RP."""
    pattern = keys.meta_key(rp).rpartition(":")[0].replace("{", "[{]").replace("}", "[}]") + ":*"
    return {key: _bytes(redis_client().dump(key)) for key in redis_client().scan_iter(match=pattern)}


def put_back(rp: str, saved: dict[bytes, bytes]) -> None:
    """Redis as it was at `backup`."""
    for key in backup(rp):
        redis_client().delete(key)
    for key, value in saved.items():
        redis_client().restore(key, 0, value)


def _bytes(value: Any) -> bytes:
    assert isinstance(value, bytes)
    return value
