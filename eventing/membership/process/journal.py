"""Journal of a run: what the machines report is gathered, and stored in batches: links and events within a second, refreshed records
within some. Comparisons restore what a crash loses of it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import DatabaseError, connection

from eventing.conf import config
from eventing.membership.ports import link_changed
from eventing.membership.process.happened import happening_of
from eventing.membership.rules.answerability import answerable
from eventing.membership.services.directory import directory_store
from eventing.membership.services.happenings import (
    DirectoryChanged,
    EquivocationProved,
    Happening,
    LinkDropped,
    LinkMade,
    SelfSuspected,
    happenings_store,
)
from eventing.membership.services.joining import known_links_store
from eventing.overlay.directory_messages import DomainAdmitted, DomainExpired, Equivocated, Refused, SponsorRemembered
from eventing.overlay.directory_records import DomainRecord
from eventing.overlay.links import Flapped, LinkDown, LinkUp, Reason
from eventing.overlay.liveness import Failed, SuspectsItself
from eventing.overlay.machine import SendMessage, SetTimer
from eventing.peering.rules.misbehaviour import Kind
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.store.errors import RedisError

LINKS_S = 1.0
RECORDS_S = 5.0
PENDING_MAX = 20_000  # bound: happenings that wait to be stored while SQL does not answer; the oldest are dropped
_NO_EVENTS = frozenset({SendMessage, SetTimer})
log = logging.getLogger(__name__)


class OverlayFault(NamedTuple):
    """Faults that a peer is answerable for, to be counted as misbehaviour."""

    kind: Kind
    peer: str
    detail: str


class Journal:
    """The journal of one run.

    Args:
        anchors: returns the approved peers in the directory.
        chosen: returns the peers of chosen links, the oldest first.
    """

    def __init__(self, anchors: Callable[[], Iterable[str]], chosen: Callable[[], list[str]]) -> None:
        self._anchors = anchors
        self._chosen = chosen
        self._happenings: list[Happening] = []
        self._admitted: dict[str, None] = {}
        self._expired: dict[str, None] = {}
        self._records: dict[str, DomainRecord] = {}
        self._faults: list[OverlayFault] = []
        self._past: dict[str, DomainRecord] = {}
        self._since: float | None = None
        self._records_since: float | None = None

    def next_at(self) -> float | None:
        """Return when something is to be stored."""
        times = []
        if self._since is not None:
            times.append(self._since + LINKS_S)
        if self._records_since is not None:
            times.append(self._records_since + RECORDS_S)
        return min(times, default=None)

    def record(self, record: DomainRecord, now: float) -> None:
        """Note a record that is held now."""
        self._records[record.domain] = record
        if self._records_since is None:
            self._records_since = now

    def note(self, outputs: list[Any], now: float) -> bool:
        """Note the events among the outputs of one input; return whether there are any."""
        if all(type(one) in _NO_EVENTS for one in outputs):
            return False
        silent = {event.peer for event in outputs if type(event) is Failed}
        ups = [event for event in outputs if type(event) is LinkUp]
        rotated = [event for event in outputs if type(event) is LinkDown and event.reason is Reason.EVICTED]
        swap = (ups[0].peer, rotated[0].peer) if len(ups) == len(rotated) == 1 and ups[0].chosen else (None, None)
        found = False
        for event in outputs:
            found = self._note(event, silent, swap, now) or found
        if found and self._since is None:
            self._since = now
        return found

    def flush(self, now: float, *, anyway: bool = False) -> None:
        """Store what is due, or everything."""
        at = self.next_at()
        if at is None or (now < at and not anyway):
            return
        moment = datetime.now(UTC)
        told = self._happenings
        faults, self._faults = self._faults, []
        if self._admitted or self._expired:
            told = [*told, DirectoryChanged(tuple(self._admitted), tuple(self._expired))]
        try:
            for fault in faults:
                misbehaviour_note(fault.kind, carrier=fault.peer, detail=fault.detail)
            if self._past:
                directory_store(self._past.values(), now=moment, held=False)
            if self._records or self._expired:
                directory_store(self._records.values(), list(self._expired), now=moment)
            if told:
                happenings_store(told, now=moment)
            if any(isinstance(one, LinkMade | LinkDropped) for one in told):
                known_links_store(self._chosen()[-6:])
        except (DatabaseError, RedisError) as error:
            log.warning("overlay: what happened could not be stored yet: %s", error)
            connection.close()
            self._since, self._records_since = now if told else None, now
            del self._happenings[:-PENDING_MAX], self._faults[:-PENDING_MAX]
            return
        self._happenings, self._admitted, self._expired, self._records, self._past = [], {}, {}, {}, {}
        self._since = self._records_since = None
        for one in told:
            if isinstance(one, LinkMade | LinkDropped):
                link_changed(one.peer, isinstance(one, LinkMade), one.reason)

    def _note(self, event: Any, silent: set[Any], swap: tuple[Any, Any], now: float) -> bool:
        up, down = swap
        match event:
            case LinkUp():
                anchor = event.peer in self._anchors()
                reason = "anchor" if anchor else "chosen" if event.chosen else "accepted"
                replaces = down if event.peer == up else None
                why = "rotated" if replaces else reason
                rtt_ms = round(event.rtt_s * 1000, 1) if event.rtt_s else None
                self._happenings.append(LinkMade(event.peer, event.chosen, anchor, why, replaces, rtt_ms))
            case LinkDown():
                by = up if event.peer == down else None
                reason = "rotated" if by else "silent" if event.peer in silent else event.reason.name.lower()
                self._happenings.append(LinkDropped(event.peer, reason, by))
            case SponsorRemembered():
                self._past[event.record.domain] = event.record
                self._records_since = self._records_since if self._records_since is not None else now
                return False
            case DomainAdmitted() if event.domain == config().domain:
                return False
            case DomainAdmitted():
                self._expired.pop(event.domain, None)
                self._admitted[event.domain] = None
            case DomainExpired():
                self._admitted.pop(event.domain, None)
                self._expired[event.domain] = None
                self._records.pop(event.domain, None)
            case Equivocated():
                one, other = event.proof.one, event.proof.other
                what = "two records" if one.domain == other.domain else "one sponsorship for two domains"
                self._happenings.append(
                    EquivocationProved(event.domain, f"It signed {what}: {one.domain}, {other.domain}.")
                )
            case SuspectsItself():
                self._happenings.append(SelfSuspected(event.silent, event.links))
            case Refused() if event.peer and answerable(event.record, time.time()):  # "": from before a restart
                self._faults.append(
                    OverlayFault("false-record", event.peer, f"A record of {event.domain}: {event.why}.")
                )
            case Flapped():
                detail = f"It ended {event.ended} overlay links that it had made, within minutes."
                self._faults.append(OverlayFault("flapping", event.peer, detail))
            case _:
                happening = happening_of(event)
                if happening is None:
                    return False
                self._happenings.append(happening)
        return True
