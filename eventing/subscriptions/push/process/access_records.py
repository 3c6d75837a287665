"""Access records of deliveries to endpoints (docs/records.md): events and bytes per minute, RP and owner of the subscription.

The deliverer is not a gateway, but its records lie beside theirs and are read with them. The client is `push`. Nothing is
opened before the first delivery.
"""

from __future__ import annotations

import base64
import os
import socket
import time
from weakref import WeakValueDictionary

from eventing.core.config import Config
from eventing.records.buffer import Buffer
from eventing.records.rows import DELIVER, Who
from eventing.records.sealing import SealingProcess
from eventing.records.segments import gateway_id
from eventing.records.writer import Writer

CLIENT = "push"
COUNTS_MAX = 10_000  # bound: RPs and owners counted at once; they are noted early
MINUTE_S = 60
CLOSE_S = 3.0


class PushAccessRecords:
    """The access records of one deliverer.

    Args:
        config: settings of the access records.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._counts: dict[tuple[str, str], list[int]] = {}
        self._subscriptions: dict[tuple[str, str], dict[str, None]] = {}
        self._who: WeakValueDictionary[str, Who] = WeakValueDictionary()
        self._writer: Writer | None = None
        self._buffer: Buffer | None = None
        self._noted_at = 0.0

    def delivered(self, rp: str, owner: str, subscription: str, events: int, content_bytes: int) -> None:
        """Count events that an endpoint accepted."""
        if not self._config.records:
            return
        key = rp, owner
        count = self._counts.setdefault(key, [0, 0])
        count[0] += events
        count[1] += content_bytes
        self._subscriptions.setdefault(key, {})[subscription] = None
        if len(self._counts) >= COUNTS_MAX:
            self._note(time.time())

    def flush_if_due(self) -> None:
        """Note what was counted, once in a flush interval; to be called at least that often."""
        now = time.time()
        if now - self._noted_at >= self._config.records_flush_s:
            self._note(now)

    def close(self) -> None:
        """Write everything. Waits."""
        self._note(time.time())
        if self._writer is not None:
            self._writer.close(CLOSE_S)
            self._writer = self._buffer = None

    def _note(self, now: float) -> None:
        self._noted_at = now
        if not self._counts and self._buffer is None:
            return
        buffer = self._opened()
        counts, self._counts = self._counts, {}
        subscriptions, self._subscriptions = self._subscriptions, {}
        minute = (now - self._config.records_flush_s / 2) // MINUTE_S * MINUTE_S
        for (rp, owner), (events, content_bytes) in counts.items():
            readings = len(subscriptions[rp, owner])
            buffer.note(minute, self._owner(owner), DELIVER, rp, "", events, 0, content_bytes, 0.0, readings)
        buffer.flush()

    def _opened(self) -> Buffer:
        if self._buffer is None:
            random = base64.b32encode(os.urandom(5)).decode().lower()
            config = self._config
            name = gateway_id(socket.gethostname(), time.time(), random)
            sealing = SealingProcess(config.records_path, config.records_url) if config.is_small else None
            self._writer = Writer(config.records_path, name, config.records_segment_s, sealing, config.records_url)
            self._writer.start()
            self._buffer = Buffer(self._writer, config.records_waiting_max, time.time)
        return self._buffer

    def _owner(self, owner: str) -> Who:
        """Return the owner as a record shows it: `ISSUER#SUBJECT`, or the subject of this domain."""
        found = self._who.get(owner)
        if found is None:
            issuer = owner.rpartition("#")[0].partition("|")[0] or self._config.domain
            foreign = issuer != self._config.domain and "://" not in issuer
            found = self._who[owner] = Who(owner, issuer, CLIENT, issuer if foreign else "")
        return found
