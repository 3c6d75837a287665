"""Reads of alarms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from django.db.models import Count, Q

from eventing.core.errors import InvalidRequest, NotFound
from eventing.operations.models import Alarm
from eventing.sql.pages import LIMIT_DEFAULT, Page, page_newest

STATES = ("open", "cleared", "all")
OPEN_MAX = 1000
"""Alarms in force that snapshots and the alarm watcher read: the latest."""

_SERIAL = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


def alarms_open(*, rp: str | None = None) -> Sequence[Alarm]:
    """Return the alarms in force, the latest first, at most OPEN_MAX; `rp`: only those of the RP with this id."""
    rows = Alarm.objects.filter(cleared_at=None)
    if rp is not None:
        rows = rows.filter(rp=rp)
    return list(rows.order_by("-raised_at", "-id")[:OPEN_MAX])


def alarms_counted(now: datetime) -> dict[str, int]:
    """Return how many alarms are open and not muted: {"open", "critical": of these}."""
    rows = Alarm.objects.filter(cleared_at=None).exclude(muted_until__gt=now)
    return rows.aggregate(open=Count("id"), critical=Count("id", filter=Q(severity="critical")))


def alarms_page(
    *, state: str = "open", rp: str | None = None, cursor: str | None = None, limit: int = LIMIT_DEFAULT
) -> Page[Alarm]:
    """Return a page of alarms, newest first. Raises InvalidRequest, InvalidCursor.

    Args:
        state: of STATES.
        rp: only those of the RP with this id.
    """
    if state not in STATES:
        raise InvalidRequest(f"state must be one of {', '.join(STATES)}.")
    rows = Alarm.objects.order_by("-id")
    if state != "all":
        rows = rows.filter(cleared_at__isnull=state == "open")
    if rp is not None:
        rows = rows.filter(rp=rp)
    return page_newest(rows, "alarms", cursor=cursor, limit=limit)


def mute_of(rule: str, about: str, now: datetime) -> Alarm | None:
    """Return the alarm of this rule and object whose mute is in force, whether it is open or cleared; None for none."""
    return Alarm.objects.filter(rule=rule, about=about, muted_until__gt=now).order_by("-id").first()


def alarm_get(alarm_id: str, *, lock: bool = False) -> Alarm:
    """Return one alarm; `lock`: for a change of it. Raises NotFound."""
    rows = Alarm.objects.select_for_update() if lock else Alarm.objects.all()
    row = rows.filter(id=int(alarm_id)).first() if _SERIAL.fullmatch(alarm_id) else None
    if row is None:
        raise NotFound("There is no such alarm. Old alarms are deleted.")
    return row
