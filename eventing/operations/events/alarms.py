"""Alarms and the rules that raise them."""

from __future__ import annotations

from typing import Any

from eventing.core.shapes import closed_schema
from eventing.operations.shapes import AlarmData
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_BOTH, Effect, EventKind, items, moment, or_null, text
from eventing.rps.shapes import WatchRuleData

ALARMS_MAX = 1000
"""Alarms in a state: the latest. All of them are at /api/v1/alarms."""

WATCHES_MAX = 1000
"""Rules in a state: the last changed ones. An RP has 24 at most."""

RULES_MAX = 32
"""Rules of an RP (rps/rules/watches.py, rps/rules/audience.py), or of the domain."""

_RP = or_null(text("id of the RP; null for the domain"))
_ALARM = closed_schema(AlarmData, "the alarm")
_PUT: dict[str, Any] = {
    "op": "put",
    "at": ["alarms", "$alarm.id"],
    "value": "$alarm",
    "newer": "changed_at",
}
_MOVED: tuple[Effect, ...] = ({**_PUT, "if": "present"},)

KINDS: dict[str, EventKind] = {
    events.ALARM_RAISED: EventKind(
        "A rule is broken.",
        ON_BOTH,
        {"alarm": _ALARM},
        effects=({**_PUT, "most": ALARMS_MAX, "by": "raised_at"},),
    ),
    events.ALARM_CHANGED: EventKind(
        "A rule is still broken, with changed values; at most once in ten seconds.",
        ON_BOTH,
        {"alarm": _ALARM},
        effects=_MOVED,
    ),
    events.ALARM_ACKNOWLEDGED: EventKind(
        "An operator acknowledged an alarm.",
        ON_BOTH,
        {"alarm": _ALARM, "by": text("identity of the operator")},
        effects=_MOVED,
    ),
    events.ALARM_MUTED: EventKind(
        "An operator muted an alarm until a time: nobody is notified of it meanwhile.",
        ON_BOTH,
        {"alarm": _ALARM, "by": text("identity of the operator")},
        effects=_MOVED,
    ),
    events.ALARM_UNMUTED: EventKind(
        "An operator ended the mute of an alarm before its time.",
        ON_BOTH,
        {"alarm": _ALARM, "by": text("identity of the operator")},
        effects=_MOVED,
    ),
    events.ALARM_CLEARED: EventKind(
        "A rule is kept again, or was removed.",
        ON_BOTH,
        {"alarm": _ALARM, "cleared_at": moment("when"), "why": text("one sentence")},
        effects=({"op": "remove", "at": ["alarms", "$alarm.id"]},),
    ),
    events.WATCH_CHANGED: EventKind(
        "The rules of an RP, its audiences among them, or those of the domain were changed.",
        ON_BOTH,
        {
            "rp": _RP,
            "rules": items(closed_schema(WatchRuleData), "all rules in force there now", most=RULES_MAX),
            "removed": items(text("id of a rule"), "ids of removed rules", most=RULES_MAX),
            "by": text("identity of the operator; empty when the RP was removed"),
        },
        effects=(
            {"op": "remove", "each": "$removed", "at": ["watches", "$each"]},
            {
                "op": "put",
                "each": "$rules",
                "at": ["watches", "$each.id"],
                "value": "$each",
                "newer": "since",
                "most": WATCHES_MAX,
                "by": "since",
            },
        ),
    ),
}
