"""Counting misbehaviour: what other domains did that they must not, one row per kind, carrier and origin.

The life of a note: `misbehaviour_note` counts it in SQL at once, up to WRITES_PER_S in a process -> beyond that it is
counted in memory and written within GATHER_S, so that a flood of refusals costs additions and not transactions -> the
first of a row, and then one each REPORT_S while it goes on, is an event on `domain.admin`, with the count.

Bounds: ROWS_MAX rows; what would be a row more is counted under its kind alone. So a stranger who invents names fills no table.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import Error, IntegrityError, connection, transaction
from django.db.models import F
from django.utils import timezone

from eventing.core.ids import DOMAIN_ADMIN
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.peering.models import Misbehaviour
from eventing.peering.models.misbehaviour import DETAIL_CHARS
from eventing.peering.rules.misbehaviour import KINDS, Kind
from eventing.peering.selectors.event_data import misbehaviour_data

WRITES_PER_S = 10  # of one process: a lie or two are seen at once, a flood is gathered
GATHER_S = 1.0
REPORT_S = 60.0  # between two events about one row
ROWS_MAX = 10_000  # a few MB
NAME_CHARS = 253
RP_CHARS = 64
log = logging.getLogger(__name__)

Key = tuple[Kind, str, str]


@dataclass(slots=True)
class _Held:
    """Notes of one key that are not written yet, with the last one's words."""

    count: int
    rp: str
    detail: str


class _Gatherer:
    """What this process has noted and not written. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[Key, _Held] = {}
        self._second = float("-inf")
        self._written = 0
        self._timer: threading.Timer | None = None

    def admit(self, key: Key, rp: str, detail: str) -> bool:
        """Whether to write the note now; else it is held, and written by a timer."""
        with self._lock:
            now = time.monotonic()
            if now - self._second >= 1:
                self._second, self._written = now, 0
            if self._written < WRITES_PER_S and key not in self._held:
                self._written += 1
                return True
            if key not in self._held and len(self._held) >= ROWS_MAX:
                key = (key[0], "", "")
            count = self._held[key].count if key in self._held else 0
            self._held[key] = _Held(count + 1, rp, detail)
            if self._timer is None:
                self._timer = threading.Timer(GATHER_S, self._late)
                self._timer.daemon = True
                self._timer.start()
            return False

    def take(self) -> dict[Key, _Held]:
        """What is held, which is not held any more."""
        with self._lock:
            held, self._held, self._timer = self._held, {}, None
            return held

    def _late(self) -> None:
        try:
            misbehaviour_flush()
        except Error as error:  # SQL is away: these counts are lost, and said to be
            log.warning("Counts of misbehaviour were lost, the database does not answer: %s", error)
        finally:
            connection.close()  # this thread ends


_gatherer = _Gatherer()


def misbehaviour_note(kind: Kind, *, carrier: str, origin: str = "", rp: str = "", detail: str = "") -> None:
    """Count one act.

    Args:
        kind: see peering/rules/misbehaviour.py.
        carrier: the peer whose authenticated request brought it; "" if nobody is sure who it was.
        origin: the domain whose feed or statement it was about; empty if that is the carrier, or nobody.
        rp: id of the RP, if it was about one.
        detail: one sentence, no payload; cut to DETAIL_CHARS.
    """
    key = (kind, carrier[:NAME_CHARS], "" if origin == carrier else origin[:NAME_CHARS])
    if _gatherer.admit(key, rp, detail):
        log.warning("Misbehaviour: %s (%s) from %s, origin %s, RP %s: %s", kind, KINDS[kind], *key[1:], rp, detail)
        _write(key, 1, rp, detail, timezone.now())


def misbehaviour_flush() -> int:
    """Write what is held in this process now; returns how many rows that were."""
    held = _gatherer.take()
    if held:
        log.warning(
            "Misbehaviour: %d more acts, counted in %d rows.", sum(each.count for each in held.values()), len(held)
        )
    for key, each in held.items():
        _write(key, each.count, each.rp, each.detail, timezone.now())
    return len(held)


def _write(key: Key, count: int, rp: str, detail: str, now: datetime) -> None:
    """Add to a row, making it if there is room, and report it when it is time."""
    kind, carrier, origin = key
    words = {"rp": rp[:RP_CHARS], "detail": detail[:DETAIL_CHARS], "last_at": now}
    with change(now) as outbox:
        rows = Misbehaviour.objects.filter(kind=kind, carrier=carrier, origin=origin)
        if not rows.update(count=F("count") + count, **words):
            if Misbehaviour.objects.count() >= ROWS_MAX:
                carrier = origin = ""
                rows = Misbehaviour.objects.filter(kind=kind, carrier="", origin="")
            if not _made(kind, carrier, origin, count, now, words):
                rows.update(count=F("count") + count, **words)
        row = rows.get()
        due = row.reported_at is None or now - row.reported_at >= timedelta(seconds=REPORT_S)
        if due and rows.filter(reported_at=row.reported_at).update(reported_at=now, reported=row.count):
            outbox.event(events.MISBEHAVIOUR_NOTED, DOMAIN_ADMIN, misbehaviour_data(row))


def _made(kind: Kind, carrier: str, origin: str, count: int, now: datetime, words: dict[str, object]) -> bool:
    """Make the row; False if somebody else has meanwhile."""
    try:
        with transaction.atomic():
            Misbehaviour.objects.create(kind=kind, carrier=carrier, origin=origin, count=count, first_at=now, **words)
    except IntegrityError:
        return False
    return True
