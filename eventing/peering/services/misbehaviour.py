"""Counts of other domains' misbehaviour, one row per kind, carrier and origin.

The life of a note: `misbehaviour_note` counts it in SQL at once, up to WRITES_PER_S in a process -> beyond that it is
counted in memory and written within GATHER_S, so that a flood of refusals costs additions and not transactions -> the
first of a row, and then one each REPORT_S while the misbehaviour continues, is an event on `domain.admin`, with the
count.

Bounds: ROWS_MAX rows; beyond them misbehaviour is counted under its kind alone, so a stranger who invents names fills
no table.
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
from msgspec.structs import asdict

from eventing.core.container import per_process
from eventing.core.ids import DOMAIN_ADMIN
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.peering.models import Misbehaviour
from eventing.peering.models.misbehaviour import DETAIL_CHARS
from eventing.peering.ports import misbehaviour_noted
from eventing.peering.rules.misbehaviour import KINDS, Kind
from eventing.peering.selectors.event_data import misbehaviour_data

# A few lies are recorded at once, a flood is gathered.
WRITES_PER_S = 10  # bound: writes of misbehaviour per process and second; the counts are gathered for a second
GATHER_S = 1.0
REPORT_S = 60.0  # between two events about one row
ROWS_MAX = 10_000  # bound: rows of misbehaviour; further misbehaviour is counted under its kind alone
NAME_CHARS = 253
RP_CHARS = 64
log = logging.getLogger(__name__)

Key = tuple[Kind, str, str]


@dataclass(slots=True)
class _Held:
    """Unwritten notes of one key, with the last one's detail."""

    count: int
    rp: str
    detail: str


class _Gatherer:
    """This process's unwritten notes. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[Key, _Held] = {}
        self._second = float("-inf")
        self._written = 0
        self._timer: threading.Timer | None = None

    def admit(self, key: Key, rp: str, detail: str) -> bool:
        """Return whether to write the note now; else hold it until a timer writes it."""
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
        """Remove and return the held notes."""
        with self._lock:
            held, self._held, self._timer = self._held, {}, None
            return held

    def _late(self) -> None:
        try:
            misbehaviour_flush()
        except Error as error:  # SQL does not answer: these counts are lost, and logged as lost
            log.warning("Counts of misbehaviour were lost, the database does not answer: %s", error)
        finally:
            connection.close()  # this thread ends


_gatherer = per_process(_Gatherer)


def misbehaviour_note(kind: Kind, *, carrier: str, origin: str = "", rp: str = "", detail: str = "") -> None:
    """Count one act.

    Args:
        kind: see peering/rules/misbehaviour.py.
        carrier: the peer whose authenticated request carried it; "" if not certain.
        origin: the domain whose feed or statement it concerned; empty if that is the carrier, or none.
        rp: id of the RP concerned, if any.
        detail: one sentence, no payload; cut to DETAIL_CHARS.
    """
    if carrier:
        misbehaviour_noted(kind, carrier[:NAME_CHARS], rp[:RP_CHARS], 1)
    key = (kind, carrier[:NAME_CHARS], "" if origin == carrier else origin[:NAME_CHARS])
    if _gatherer().admit(key, rp, detail):
        log.warning("Misbehaviour: %s (%s) from %s, origin %s, RP %s: %s", kind, KINDS[kind], *key[1:], rp, detail)
        _write(key, 1, rp, detail, timezone.now())


def misbehaviour_flush() -> int:
    """Write this process's held notes now; return the number of rows."""
    held = _gatherer().take()
    if held:
        log.warning(
            "Misbehaviour: %d more acts, counted in %d rows.", sum(each.count for each in held.values()), len(held)
        )
    for key, each in held.items():
        _write(key, each.count, each.rp, each.detail, timezone.now())
    return len(held)


def _write(key: Key, count: int, rp: str, detail: str, now: datetime) -> None:
    """Add to a row, making it if there is room, and report it when a report is due."""
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
            outbox.event(events.MISBEHAVIOUR_NOTED, DOMAIN_ADMIN, asdict(misbehaviour_data(row)))


def _made(kind: Kind, carrier: str, origin: str, count: int, now: datetime, words: dict[str, object]) -> bool:
    """Make the row; return False if another process has made it meanwhile."""
    try:
        with transaction.atomic():
            Misbehaviour.objects.create(kind=kind, carrier=carrier, origin=origin, count=count, first_at=now, **words)
    except IntegrityError:
        return False
    return True
