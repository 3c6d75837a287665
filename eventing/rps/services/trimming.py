"""Trimming of a history on request: events up to a cursor are deleted here, permanently.

For readers the effect is the same as of the bounds: a reader that is behind gets a gap with both ends, then continues.
The trim is local: other replicas keep their events, and removed events are not fetched from them again.

Events of this domain that were not yet sent are lost for its peers as well. Where the RP is shared they are therefore
sealed first (for SEAL_S at most): the chain then still proves their existence and content. Events that could not be
sealed, or were never shared, are left out of the seals, and this domain's signed low-water mark states so
(replication/services/sealing.py).
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
# A run of 1,000 events takes some milliseconds.
SEAL_S = 2.0  # bound: seconds of sealing before a trim; the rest is trimmed unsealed, and covered by the low-water mark


@dataclass(frozen=True, slots=True)
class Trim:
    """Result of a trim: events removed by it, and the log's extent afterwards."""

    removed: int
    epoch: str
    first: int
    next: int


def history_trim(
    *, reference: str, principal: Principal, before: str, reason: str = "", now: datetime | None = None
) -> Trim:
    """Remove the events of an RP's history up to and including a cursor.

    Args:
        principal: administrator of the RP in this domain.
        before: a cursor of this domain's log, in its present epoch: readers at or beyond it lose nothing; or ALL: all
            present events.
        reason: explanation in the audit and at the administrative RP.

    Raises NotFound, Gone, Forbidden, InvalidRequest, InvalidCursor (another epoch, beyond the end), redis.RedisError.
    """
    now = now or timezone.now()
    if len(reason) > REASON_CHARS_MAX:
        raise InvalidRequest(f"A reason has at most {REASON_CHARS_MAX} characters.")
    with change(now):  # check permission before anything is sealed
        rp = rp_administered(reference, principal, now).id
    _seal(rp)
    with change(now) as outbox:  # the audit entry precedes the removal: a process that crashes then leaves a trace
        row = rp_administered(rp, principal, now)
        log = control.log_state(row.id) or control.ensure_log(row.id, row.bounds)
        keep = _first_kept(row.id, before, log)
        if keep > log.first:
            details: dict[str, Any] = {"removed": keep - log.first, "first": keep, "epoch": log.epoch, "reason": reason}
            outbox.act("rp.trim", principal, "rp", row.id, **details)
    try:
        trimmed = control.trim_log_before(rp, log.epoch, keep)
    except NoLog:
        raise InvalidCursor("The log has just been replaced and is empty. Read again to get a cursor of it.") from None
    log = control.log_state(rp) or log
    if trimmed.removed:
        with change(now) as outbox:
            by = {"by": principal.identity, "reason": reason} if trimmed.cut else {}
            outbox.event(events.HISTORY_TRIMMED, rp, {"removed": trimmed.removed, **events.log_data(log), **by})
    return Trim(trimmed.cut, log.epoch, log.first, log.next)


def _first_kept(rp: str, before: str, log: LogState) -> int:
    if before == ALL:
        return log.next
    cursor = control.continued(rp, Cursor.parse(before), log.epoch)
    if cursor.epoch != log.epoch:
        raise InvalidCursor(
            f"The log's epoch is now {log.epoch}; read again to get a cursor of this epoch.", epoch=log.epoch
        )
    if cursor.offset >= log.next:
        raise InvalidCursor(f"The last event has offset {log.next - 1}.")
    return cursor.offset + 1


def _seal(rp: str) -> None:
    """Seal this domain's events at the RP, within SEAL_S, if another domain participates."""
    head = federated.heads([rp])[0]
    if head is None or not (head.sealed or links_of_rps([rp])):
        return
    until = time.monotonic() + SEAL_S
    while seal_next(rp) and time.monotonic() < until:
        pass
