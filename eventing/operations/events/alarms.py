"""Alarms and the rules that raise them."""

from __future__ import annotations

from typing import Any

from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_BOTH, Effect, Kind, items, moment, number, obj, or_null, text, truth
from eventing.rps.rules.watches import AUDIENCE, SEVERITIES
from eventing.rps.rules.watches import KINDS as RULE_KINDS

ALARMS_MAX = 1000
"""Alarms in a state: the latest. All of them are at /api/v1/alarms."""

WATCHES_MAX = 1000
"""Rules in a state: those that changed last. An RP has 24 at most."""

VALUES_MAX = 4
RULES_MAX = 32
"""Of an RP (rps/rules/watches.py, rps/rules/audience.py), or of the domain."""

_KIND = text("kind of the rule", of=(*RULE_KINDS, AUDIENCE))
_SEVERITY = text("how bad", of=SEVERITIES)
_RP = or_null(text("id of the RP that it is about; null for the domain"))
_ALARM = obj(
    {
        "id": text("of the alarm: the same for as long as it lasts"),
        "rule": text("id of the rule that it breaks"),
        "kind": _KIND,
        "rp": _RP,
        "about": text("what in particular: a durable subscription, a peer, a gateway, an audience; may be empty"),
        "severity": _SEVERITY,
        "detail": text("one sentence: what is wrong"),
        "values": items(
            obj(
                {
                    "name": text("what was measured"),
                    "value": number("as it was last told, in `unit`"),
                    "limit": number("what the rule sets, in `unit`"),
                    "unit": text("events, ends, s, ms, % or readers"),
                }
            ),
            "the numbers of the sentence",
            most=VALUES_MAX,
        ),
        "link": text("path of the console's page where more is to be seen"),
        "since": moment("when it was first seen broken, or has been since when that is known"),
        "raised_at": moment("when the alarm was raised: the rule's `for_s` later"),
        "changed_at": moment("of the last change of any of these"),
        "acknowledged": or_null(
            obj(
                {"at": moment("when"), "by": text("identity of who did it"), "note": text("for people; may be empty")},
                "who looks after it; null while nobody has said so",
            )
        ),
        "lasting": truth("whether it is about what has ended, and stays until it is acknowledged"),
    },
    "the alarm",
)
_RULE = obj(
    {
        "id": text("of the rule: another one for a rule that was changed"),
        "rp": _RP,
        "kind": _KIND,
        "severity": _SEVERITY,
        "for_s": number("seconds that it must be broken before an alarm, and kept before that is cleared"),
        "settings": {"type": "object", "description": "limits and filters of this kind (docs/operating.md)"},
        "since": moment("when the rules of its RP, or of the domain, changed last"),
    }
)
_PUT: dict[str, Any] = {
    "op": "put",
    "at": ["alarms", "$alarm.id"],
    "value": "$alarm",
    "newer": "changed_at",
}
_MOVED: tuple[Effect, ...] = ({**_PUT, "if": "present"},)

KINDS: dict[str, Kind] = {
    events.ALARM_RAISED: Kind(
        "A rule is broken.",
        ON_BOTH,
        {"alarm": _ALARM},
        effects=({**_PUT, "most": ALARMS_MAX, "by": "raised_at"},),
    ),
    events.ALARM_CHANGED: Kind(
        "A rule is still broken, by other numbers; at most once in ten seconds.",
        ON_BOTH,
        {"alarm": _ALARM},
        effects=_MOVED,
    ),
    events.ALARM_ACKNOWLEDGED: Kind(
        "Somebody looks after an alarm.",
        ON_BOTH,
        {"alarm": _ALARM, "by": text("identity of who did it")},
        effects=_MOVED,
    ),
    events.ALARM_CLEARED: Kind(
        "A rule is kept again, or is no more.",
        ON_BOTH,
        {"alarm": _ALARM, "cleared_at": moment("when"), "why": text("one sentence")},
        effects=({"op": "remove", "at": ["alarms", "$alarm.id"]},),
    ),
    events.WATCH_CHANGED: Kind(
        "The rules of an RP, its audiences among them, or those of the domain were changed.",
        ON_BOTH,
        {
            "rp": _RP,
            "rules": items(_RULE, "all that are in force there now", most=RULES_MAX),
            "removed": items(text("id of a rule"), "those that are no more", most=RULES_MAX),
            "by": text("identity of who did it; empty when the RP is gone"),
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
