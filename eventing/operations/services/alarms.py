"""Writes of alarms: raised, changed and cleared by the watcher; acknowledged by people. Each is reported as an event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from eventing.access.rules.permission import require_operator
from eventing.core.errors import Conflict, InvalidRequest
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.core.timestamps import timestamp
from eventing.operations.models import Alarm
from eventing.operations.rules.alarms import (
    ABOUT_CHARS_MAX,
    DETAIL_CHARS_MAX,
    HOMES,
    LASTING,
    LASTING_MAX,
    LINK_CHARS_MAX,
    MORE,
    NOTE_CHARS_MAX,
    WHY_CHARS_MAX,
    Changed,
    Cleared,
    Output,
    Raised,
    Stated,
    Value,
)
from eventing.operations.selectors.alarms import alarm_get, alarms_open, mute_of
from eventing.operations.shapes import AlarmAcknowledged, AlarmAnswer, AlarmCleared, AlarmData, AlarmMuted
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.rps.models import RendezvousPoint

KEPT_S = 30 * 86_400
"""Seconds for which cleared alarms are kept: as long as the events about them may be."""

KEPT_MAX = 10_000  # bound: cleared alarms; the oldest are removed
MUTE_COLUMNS = ("muted_until", "muted_by", "mute_reason")
"""Columns of a mute, which an alarm that is raised again takes over."""

PURGE_BATCH = 1000
PURGE_ROUNDS_MAX = 30
"""Batches of one purge, every ten minutes: 50 alarms a second may be raised and cleared, and a purge takes about a
second.
"""


def alarms_apply(outputs: Sequence[Output], *, now: datetime | None = None) -> int:
    """Write the evaluation's outputs in one transaction, with their events. Returns how many rows changed.

    Idempotent, also when another gateway has written the same: an open alarm is not raised again, one that is not open
    is neither changed nor cleared.
    """
    if not outputs:
        return 0
    now = now or timezone.now()
    with change(now) as outbox:
        return sum(_apply(one, outbox) for one in outputs)


def alarms_end(rows: Iterable[Alarm], outbox: Outbox, why: str) -> None:
    """Clear these alarms within the caller's transaction."""
    for row in rows:
        _clear(row, outbox, why)


def alarm_acknowledge(*, alarm_id: str, principal: Principal, note: str = "", now: datetime | None = None) -> Alarm:
    """Acknowledge an alarm with a note; a repetition replaces the note.

    A lasting alarm, whose object has ended, is cleared: nothing else could clear it.

    For operators. Raises Forbidden, NotFound, Conflict (it is cleared already), InvalidRequest.
    """
    now = now or timezone.now()
    require_operator(principal)
    if len(note) > NOTE_CHARS_MAX:
        raise InvalidRequest(f"A note has at most {NOTE_CHARS_MAX} characters.")
    with change(now) as outbox:
        row = alarm_get(alarm_id, lock=True)
        if row.cleared_at is not None:
            raise Conflict("The alarm is cleared already and needs no acknowledgement.")
        row.acknowledged_at, row.acknowledged_by, row.note = now, principal.identity, note
        row.changed_at = changed_later(row, now)
        row.save(update_fields=["acknowledged_at", "acknowledged_by", "note", "changed_at"])
        alarm_announce(events.ALARM_ACKNOWLEDGED, row, outbox, by=principal.identity)
        outbox.act("alarm.acknowledge", principal, "alarm", str(row.id), rp=row.rp or None, note=note)
        if row.rule == LASTING:
            _clear(row, outbox, f"{principal.identity} acknowledged it.")
    return row


def alarm_last(
    row: Alarm | None,
    outbox: Outbox,
    *,
    rp: str,
    about: str,
    kind: str,
    detail: str,
    values: tuple[Value, ...],
    link: str,
) -> None:
    """Make an open alarm a lasting one, with its final values, within the caller's transaction; without one, raise it.

    Beyond LASTING_MAX there is one alarm that counts the others.
    """
    lasting = Alarm.objects.filter(rule=LASTING, cleared_at=None)
    if lasting.count() >= LASTING_MAX:
        _one_more(row, outbox, kind)
        return
    if row is None:
        since = outbox.now.timestamp()
        _raise(Stated(LASTING, about, rp, kind, "critical", detail, values, link, since), outbox)
        return
    row.rule, row.detail, row.link = LASTING, detail[:DETAIL_CHARS_MAX], link
    row.values, row.changed_at = [asdict(value) for value in values], changed_later(row, outbox.now)
    row.save(update_fields=["rule", "detail", "link", "values", "changed_at"])
    alarm_announce(events.ALARM_CHANGED, row, outbox)


def homes_contradicted(rp: str, term: int, detail: str, outbox: Outbox) -> None:
    """Raise a lasting alarm that an RP was handed over twice (replication/ports.py)."""
    about = f"{rp} term {term}"
    if not Alarm.objects.filter(rule=LASTING, about=about, cleared_at=None).exists():
        alarm_last(None, outbox, rp=rp, about=about, kind=HOMES, detail=detail, values=(), link=f"/rps/{rp}")


def alarms_rp_ends(row: RendezvousPoint, outbox: Outbox, reason: str) -> None:
    """End the alarms of a removed RP, within the caller's transaction; its lasting ones become the domain's."""
    for alarm in Alarm.objects.select_for_update().filter(rp=row.id, rule=LASTING, cleared_at=None):
        alarm.rp, alarm.changed_at = "", changed_later(alarm, outbox.now)
        alarm.save(update_fields=["rp", "changed_at"])
        alarm_announce(events.ALARM_CHANGED, alarm, outbox)
    alarms_end(alarms_open(rp=row.id), outbox, "The rendezvous point was removed.")


def _one_more(row: Alarm | None, outbox: Outbox, kind: str) -> None:
    """Count an alarm that has no lasting alarm of its own."""
    if row is not None:
        _clear(row, outbox, f"{LASTING_MAX} lasting alarms are open already; the audit records this one.")
    more = _open(LASTING, MORE)
    count = 1 if more is None else int(more.values[0]["value"]) + 1
    detail = f"{count:,} more objects ended with a loss than there are lasting alarms; the audit names them."
    values = (Value("ended", count, 0, "ends"),)
    stated = Stated(LASTING, MORE, "", kind, "critical", detail, values, "/audit", outbox.now.timestamp())
    if more is None:
        _raise(stated, outbox)
    else:
        _change(more, stated, outbox)


def alarms_purge(*, now: datetime | None = None) -> int:
    """Delete cleared alarms older than KEPT_S, or beyond KEPT_MAX, in up to PURGE_ROUNDS_MAX batches. Returns how many."""
    now = now or timezone.now()
    cleared = Alarm.objects.filter(cleared_at__isnull=False)
    before = now - timedelta(seconds=KEPT_S)
    for beyond in cleared.order_by("-cleared_at").values_list("cleared_at", flat=True)[KEPT_MAX : KEPT_MAX + 1]:
        before = max(before, beyond or before)
    ended = cleared.filter(cleared_at__lte=before).order_by("cleared_at").values_list("id", flat=True)
    forgotten = 0
    for _ in range(PURGE_ROUNDS_MAX):
        batch = Alarm.objects.filter(id__in=list(ended[:PURGE_BATCH])).delete()[1].get("eventing.Alarm", 0)
        forgotten += batch
        if batch < PURGE_BATCH:
            break
    return forgotten


def alarm_data(row: Alarm) -> AlarmData:
    """Return an alarm in force as events and snapshots show it."""
    return AlarmData.of(row, **_members(row))


def alarm_answer(row: Alarm) -> AlarmAnswer:
    """Return an alarm, open or cleared, as answers show it."""
    cleared = None if row.cleared_at is None else AlarmCleared(at=timestamp(row.cleared_at), why=row.cleared_why)
    return AlarmAnswer.of(row, cleared=cleared, **_members(row))


def _members(row: Alarm) -> dict[str, Any]:
    acknowledged = None
    if row.acknowledged_at is not None:
        acknowledged = AlarmAcknowledged(at=timestamp(row.acknowledged_at), by=row.acknowledged_by, note=row.note)
    muted = None
    if row.muted_until is not None:
        muted = AlarmMuted(until=timestamp(row.muted_until), by=row.muted_by, reason=row.mute_reason)
    return {
        "id": str(row.id),
        "rp": row.rp or None,
        "acknowledged": acknowledged,
        "lasting": row.rule == LASTING,
        "muted": muted,
    }


def _apply(output: Output, outbox: Outbox) -> bool:
    match output:
        case Raised(alarm):
            return _raise(alarm, outbox)
        case Changed(alarm):
            row = _open(alarm.rule, alarm.about)
            if row is None:
                return False
            _change(row, alarm, outbox)
            return True
        case Cleared(rule, about, why):
            row = _open(rule, about)
            if row is not None:
                _clear(row, outbox, why)
            return row is not None


def _change(row: Alarm, alarm: Stated, outbox: Outbox) -> None:
    row.detail, row.values = alarm.detail[:DETAIL_CHARS_MAX], _values(alarm)
    row.changed_at = changed_later(row, outbox.now)
    row.save(update_fields=["detail", "values", "changed_at"])
    alarm_announce(events.ALARM_CHANGED, row, outbox)


def _raise(alarm: Stated, outbox: Outbox) -> bool:
    now = outbox.now
    muted = mute_of(alarm.rule, alarm.about[:ABOUT_CHARS_MAX], now)
    row, made = Alarm.objects.get_or_create(
        rule=alarm.rule,
        about=alarm.about[:ABOUT_CHARS_MAX],
        cleared_at=None,
        defaults={
            "rp": alarm.rp,
            "kind": alarm.kind,
            "severity": alarm.severity,
            "detail": alarm.detail[:DETAIL_CHARS_MAX],
            "values": _values(alarm),
            "link": alarm.link[:LINK_CHARS_MAX],
            "since": min(now, datetime.fromtimestamp(alarm.since, UTC)),
            "raised_at": now,
            "changed_at": now,
            **({} if muted is None else _mute_members(muted)),
        },
    )
    if made:
        alarm_announce(events.ALARM_RAISED, row, outbox)
    return made


def _mute_members(row: Alarm) -> dict[str, Any]:
    return {name: getattr(row, name) for name in MUTE_COLUMNS}


def _clear(row: Alarm, outbox: Outbox, why: str) -> None:
    row.cleared_at, row.cleared_why = outbox.now, why[:WHY_CHARS_MAX]
    row.save(update_fields=["cleared_at", "cleared_why"])
    alarm_announce(events.ALARM_CLEARED, row, outbox, cleared_at=timestamp(outbox.now), why=row.cleared_why)


def alarm_announce(kind: str, row: Alarm, outbox: Outbox, **more: Any) -> None:
    """Report a change of an alarm within the caller's transaction."""
    outbox.event(kind, row.rp or DOMAIN_ADMIN, {"alarm": alarm_data(row), **more}, domain_too=bool(row.rp))


def _open(rule: str, about: str) -> Alarm | None:
    return Alarm.objects.select_for_update().filter(rule=rule, about=about[:ABOUT_CHARS_MAX], cleared_at=None).first()


def _values(alarm: Stated) -> list[dict[str, Any]]:
    return [asdict(value) for value in alarm.values]


def changed_later(row: Alarm, now: datetime) -> datetime:
    """Return a time after the last change: readers keep the latest, and a clock that was set back must not hide a
    change.
    """
    return max(now, row.changed_at + timedelta(microseconds=1))
