"""Trimming a history because somebody asks for it: what is before a cursor goes, here and for good.

For readers it is as if the bounds had removed it: whoever is behind is told a gap with both ends, then goes on. In this
domain only: other replicas keep what they hold, and nothing that went is fetched from them again.

What this domain published and has not sent yet is gone for its peers as well. Where the RP is shared it is therefore sealed
first (SEAL_S at most): the chain then still proves that there was something, and what. What could not be sealed, or was
never shared, is left out of the seals, and the floor that this domain signs says so to whoever asks (replication/services/sealing.py).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from eventing.core.errors import InvalidCursor, InvalidRequest
from eventing.core.events.cursors import Cursor
from eventing.core.events.positions import LogState
from eventing.core.principals import Principal
from eventing.log import control, federated
from eventing.log.scripts import NoLog
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.rps.models import REASON_CHARS_MAX
from eventing.rps.ports import links_of_rps, seal_next
from eventing.rps.services.permission import rp_administered

ALL = "all"
SEAL_S = 2.0  # who trims waits no longer for seals; a run of 1,000 events takes some ms


@dataclass(frozen=True, slots=True)
class Trim:
    """What a trim came to: events removed by it, and the log's extent afterwards."""

    removed: int
    epoch: str
    first: int
    next: int


def history_trim(
    *, reference: str, principal: Principal, before: str, reason: str = "", now: datetime | None = None
) -> Trim:
    """Remove what the history of an RP holds up to and including a cursor.

    Args:
        principal: who administers the RP in this domain.
        before: a cursor of this domain's log, in its present epoch: whoever stands there or further misses nothing; or
            ALL: everything that is there now.
        reason: for those who read the audit or the administrative RP.

    Raises NotFound, Gone, Forbidden, InvalidRequest, InvalidCursor (another epoch, beyond the end), redis.RedisError.
    """
    now = now or timezone.now()
    if len(reason) > REASON_CHARS_MAX:
        raise InvalidRequest(f"A reason has at most {REASON_CHARS_MAX} characters.")
    with change(now):  # may they at all? Before anything is sealed for it
        rp = rp_administered(reference, principal, now).id
    _seal(rp)
    with change(
        now
    ) as outbox:  # it is in the audit before anything goes: a process that dies then has not done it unseen
        row = rp_administered(rp, principal, now)
        log = control.log_state(row.id) or control.ensure_log(row.id, row.bounds)
        keep = _first_kept(before, log)
        if keep > log.first:
            details: dict[str, Any] = {"removed": keep - log.first, "first": keep, "epoch": log.epoch, "reason": reason}
            outbox.act("rp.trim", principal, "rp", row.id, **details)
    try:
        trimmed = control.trim_log_before(rp, log.epoch, keep)
    except NoLog:
        raise InvalidCursor("The log is being made anew, and is empty. Read again to get a cursor of it.") from None
    log = control.log_state(rp) or log
    if trimmed.removed:
        with change(now) as outbox:
            by = {"by": principal.identity, "reason": reason} if trimmed.cut else {}
            outbox.event(events.HISTORY_TRIMMED, rp, {"removed": trimmed.removed, **events.log_data(log), **by})
    return Trim(trimmed.cut, log.epoch, log.first, log.next)


def _first_kept(before: str, log: LogState) -> int:
    if before == ALL:
        return log.next
    cursor = Cursor.parse(before)
    if cursor.epoch != log.epoch:
        raise InvalidCursor(f"The log's epoch is {log.epoch} now; read again to get a cursor of it.", epoch=log.epoch)
    if cursor.offset >= log.next:
        raise InvalidCursor(f"The last event has offset {log.next - 1}.")
    return cursor.offset + 1


def _seal(rp: str) -> None:
    """Seal what this domain has published there, if anybody else has a part in it, within SEAL_S."""
    head = federated.heads([rp])[0]
    if head is None or not (head.sealed or links_of_rps([rp])):
        return
    until = time.monotonic() + SEAL_S
    while seal_next(rp) and time.monotonic() < until:
        pass
