"""Mutes of alarms: until a time, nobody is notified of an alarm and it is not counted on pages.

A mute is of the rule and its object, not of one alarm: an alarm that is cleared and raised again meanwhile is muted as well. It ends
by itself; a muted alarm stays open, is listed, and is an administrative event like any other.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from eventing.access.rules.permission import require_operator
from eventing.core.errors import Conflict, InvalidRequest
from eventing.core.principals import Principal
from eventing.core.timestamps import timestamp
from eventing.operations.models import Alarm
from eventing.operations.rules.alarms import MUTE_S_MAX, MUTE_S_MIN, NOTE_CHARS_MAX
from eventing.operations.selectors.alarms import alarm_get
from eventing.operations.services.alarms import MUTE_COLUMNS, alarm_announce, changed_later
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change


def alarm_mute(
    *, alarm_id: str, principal: Principal, for_s: int, reason: str = "", now: datetime | None = None
) -> Alarm:
    """Mute an alarm for some time from now; a repetition replaces time and reason.

    Args:
        for_s: seconds, MUTE_S_MIN to MUTE_S_MAX.
        reason: for the audit, and for those who see the alarm.

    For operators. Raises Forbidden, NotFound, Conflict (it is cleared already), InvalidRequest.
    """
    now = now or timezone.now()
    require_operator(principal)
    if not MUTE_S_MIN <= for_s <= MUTE_S_MAX:
        raise InvalidRequest(f"for_s is a number of seconds from {MUTE_S_MIN} to {MUTE_S_MAX}.")
    if len(reason) > NOTE_CHARS_MAX:
        raise InvalidRequest(f"A reason has at most {NOTE_CHARS_MAX} characters.")
    with change(now) as outbox:
        row = _open(alarm_id)
        row.muted_until, row.muted_by, row.mute_reason = now + timedelta(seconds=for_s), principal.identity, reason
        _save(row, outbox, events.ALARM_MUTED, principal)
        details = {"rule": row.rule, "about": row.about, "until": timestamp(row.muted_until), "reason": reason}
        outbox.act("alarm.mute", principal, "alarm", str(row.id), rp=row.rp or None, **details)
    return row


def alarm_unmute(*, alarm_id: str, principal: Principal, now: datetime | None = None) -> Alarm:
    """End the mute of an alarm; without one, nothing is changed.

    For operators. Raises Forbidden, NotFound, Conflict (it is cleared already).
    """
    now = now or timezone.now()
    require_operator(principal)
    with change(now) as outbox:
        row = _open(alarm_id)
        if row.muted_until is None:
            return row
        # Cleared alarms of the same object must not pass their mute on to the next one.
        Alarm.objects.filter(rule=row.rule, about=row.about, muted_until__gt=now).exclude(id=row.id).update(
            muted_until=now
        )
        row.muted_until, row.muted_by, row.mute_reason = None, "", ""
        _save(row, outbox, events.ALARM_UNMUTED, principal)
        outbox.act("alarm.unmute", principal, "alarm", str(row.id), rp=row.rp or None)
    return row


def _open(alarm_id: str) -> Alarm:
    row = alarm_get(alarm_id, lock=True)
    if row.cleared_at is not None:
        raise Conflict("The alarm is cleared already.")
    return row


def _save(row: Alarm, outbox: Outbox, kind: str, principal: Principal) -> None:
    row.changed_at = changed_later(row, outbox.now)
    row.save(update_fields=[*MUTE_COLUMNS, "changed_at"])
    alarm_announce(kind, row, outbox, by=principal.identity)
