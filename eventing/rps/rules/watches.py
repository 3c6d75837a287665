"""Watch rules: conditions at an RP, or in the domain, whose breach raises an alarm. Pure.

    [{"lag": {"events": 1000, "seconds": 60}, "severity": "warning", "for_s": 30},
     {"silence": {"s": 300, "source": "/plant/3"}, "severity": "critical", "for_s": 0}]

A rule has exactly one of KINDS with its limits; exceeding one of them breaks the rule. The rule must be broken for
`for_s` before an alarm is raised, and kept for as long before the alarm is cleared
(eventing/operations/alarms/evaluation.py). KINDS is the only definition: rules are checked against it and their schema
is made from it; docs/operating.md describes it for users.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eventing.core.errors import InvalidRequest
from eventing.rps.rules.audience import FLAG, LINE_PATTERN, is_line

RULES_MAX = 16  # rules of an RP; several of one kind are for severities, peers or sources
DOMAIN_RULES_MAX = 32
# One gateway measures all of them every few seconds.
WATCHED_RPS_MAX = 1000  # bound: RPs with watch rules or audiences; the next RP is refused
FOR_S_DEFAULT = 10
FOR_S_MAX = 86_400
SEVERITIES = ("warning", "critical")
AUDIENCE = "audience"
AUDIENCE_FOR_S = 5
"""Seconds within which an audience may reconnect after the loss of its gateway without an alarm."""

_SECONDS_MAX = 30 * 86_400
_EVENTS_MAX = 10**9
_ID_CHARS = 16


@dataclass(frozen=True, slots=True)
class RuleLimit:
    """A number in a rule: least and greatest value, and unit."""

    low: int
    high: int
    unit: str
    about: str


@dataclass(frozen=True, slots=True)
class RuleKind:
    """A kind of rule; at least one of its limits is stated. `filters`: texts that narrow it, with their meaning."""

    about: str
    limits: Mapping[str, RuleLimit]
    rp: bool = False
    domain: bool = False
    filters: Mapping[str, str] = field(default_factory=dict)


FILTER_CHARS_MAX = 1024
LOSS = "loss"
LOSS_WITHIN_S = 600
"""Default time between an alarm and the predicted loss, in seconds: enough to restart a reader."""

LOSS_BUILT_IN: Mapping[str, Any] = {LOSS: {"within_s": LOSS_WITHIN_S}, "severity": "critical", "for_s": 2}
"""Rule for every RP with durable subscriptions, unless the RP, or the domain for all of them, states another."""

KINDS: Mapping[str, RuleKind] = {
    "lag": RuleKind(
        "A durable subscription is behind.",
        {
            "events": RuleLimit(1, _EVENTS_MAX, "events", "most unacknowledged events"),
            "seconds": RuleLimit(1, _SECONDS_MAX, "s", "longest waiting time of the oldest event"),
        },
        rp=True,
    ),
    "loss": RuleKind(
        "A durable subscription loses events, or is about to: they leave the history before it reads them.",
        {
            "within_s": RuleLimit(
                0,
                _SECONDS_MAX,
                "s",
                "time between the alarm and the predicted loss, at the present rates; 0: no watch for loss",
            )
        },
        rp=True,
        domain=True,
    ),
    "backlog": RuleKind(
        "Events wait for a peer.",
        {
            "events": RuleLimit(1, _EVENTS_MAX, "events", "most waiting events"),
            "oldest_s": RuleLimit(1, _SECONDS_MAX, "s", "longest waiting time of the oldest event"),
        },
        rp=True,
        domain=True,
        filters={"peer": "only this peer"},
    ),
    "lease_gap": RuleKind(
        "A lease is about to end without renewal: the RP's, or a durable subscription's there.",
        {"s": RuleLimit(1, _SECONDS_MAX, "s", "least remaining time")},
        rp=True,
    ),
    "silence": RuleKind(
        "No event was published.",
        {"s": RuleLimit(1, _SECONDS_MAX, "s", "longest without an event")},
        rp=True,
        filters={"source": "only events of this CloudEvents source"},
    ),
    "endpoint": RuleKind(
        "The endpoint of a durable subscription fails, or was paused because it did.",
        {"failing_s": RuleLimit(0, _SECONDS_MAX, "s", "longest without an attempt that succeeds")},
        rp=True,
        domain=True,
    ),
    "reliability": RuleKind(
        "The target reliability cannot be met.",
        {"missed_s": RuleLimit(0, _SECONDS_MAX, "s", "longest time for which no plan meets it")},
        rp=True,
    ),
    "history_quota": RuleKind(
        "The histories have reserved most of the domain's quota.",
        {"percent": RuleLimit(1, 100, "%", "greatest share of the quota")},
        domain=True,
    ),
    "process_lag": RuleKind(
        "A gateway's event loop is delayed.",
        {"ms": RuleLimit(1, 60_000, "ms", "greatest delay")},
        domain=True,
    ),
}


@dataclass(frozen=True, slots=True)
class WatchRule:
    """A rule in force.

    Attributes:
        id: identifies the rule's content; changes with it.
        rp: the RP's id; empty for a rule of the domain.
        kind: of KINDS, or AUDIENCE.
        for_s: seconds for which the rule must be broken before an alarm is raised.
        settings: limits and filters; for an audience its members.
    """

    id: str
    rp: str
    kind: str
    severity: str
    for_s: int
    settings: Mapping[str, Any]


def parse_rules(document: Any, *, domain: bool = False) -> list[dict[str, Any]]:
    """Check the rules of an RP, or of the domain, and return their normal form. Raises InvalidRequest naming the invalid one."""
    most = DOMAIN_RULES_MAX if domain else RULES_MAX
    if not isinstance(document, list) or len(document) > most:
        raise InvalidRequest(f"watch is a list of at most {most} rules.")
    made = [_parsed(number, one, domain) for number, one in enumerate(document, 1)]
    for number, one in enumerate(made):
        if one in made[:number]:
            raise InvalidRequest(f"watch rule {number + 1} repeats another one.")
    return made


def rules_of(
    rp: str, watch: Sequence[Mapping[str, Any]], audience: Sequence[Mapping[str, Any]] = ()
) -> list[WatchRule]:
    """Make the parsed rules, and one for each audience; `rp` is empty for the domain's."""
    made = []
    for one in watch:
        (kind,) = set(one) & set(KINDS)
        made.append(WatchRule(_id(rp, one), rp, kind, one["severity"], one["for_s"], one[kind]))
    for one in audience:
        severity = "warning" if one["publishing"] == FLAG else "critical"
        made.append(WatchRule(_id(rp, {AUDIENCE: one}), rp, AUDIENCE, severity, AUDIENCE_FOR_S, one))
    return made


def loss_rules(
    rp: str, watch: Sequence[Mapping[str, Any]], domain_watch: Sequence[Mapping[str, Any]] = ()
) -> list[WatchRule]:
    """Return the loss rules in force at an RP: its own, else the domain's, else the built-in one.

    Args:
        rp: id of the RP; empty for the domain's administrative RP.
        watch, domain_watch: parsed rules of the RP and of the domain.
    """
    stated = _of_loss(watch) or _of_loss(domain_watch) or [LOSS_BUILT_IN]
    return rules_of(rp, [one for one in stated if one[LOSS]["within_s"]])


def _of_loss(watch: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [one for one in watch if LOSS in one]


def schema(*, domain: bool = False) -> dict[str, Any]:
    """Make the JSON Schema of a list of rules."""
    kinds = {name: kind for name, kind in KINDS.items() if (kind.domain if domain else kind.rp)}
    common = {
        "severity": {"type": "string", "enum": list(SEVERITIES), "default": SEVERITIES[0]},
        "for_s": {
            "type": "integer",
            "minimum": 0,
            "maximum": FOR_S_MAX,
            "default": FOR_S_DEFAULT,
            "description": "Seconds for which the rule must be broken before the alarm, and kept before it is cleared.",
        },
    }
    return {
        "type": "array",
        "maxItems": DOMAIN_RULES_MAX if domain else RULES_MAX,
        "items": {
            "oneOf": [
                {
                    "type": "object",
                    "description": kind.about,
                    "properties": {name: _kind_schema(kind), **common},
                    "required": [name],
                    "additionalProperties": False,
                }
                for name, kind in kinds.items()
            ]
        },
    }


def _kind_schema(kind: RuleKind) -> dict[str, Any]:
    limits: dict[str, Any] = {
        name: {
            "type": "integer",
            "minimum": limit.low,
            "maximum": limit.high,
            "description": f"{limit.about}, in {limit.unit}",
        }
        for name, limit in kind.limits.items()
    }
    filters = {
        name: {
            "type": "string",
            "minLength": 1,
            "maxLength": FILTER_CHARS_MAX,
            "pattern": LINE_PATTERN,
            "description": about,
        }
        for name, about in kind.filters.items()
    }
    made: dict[str, Any] = {"type": "object", "properties": {**limits, **filters}, "additionalProperties": False}
    return {**made, "anyOf": [{"required": [name]} for name in limits]}


def _parsed(number: int, one: Any, domain: bool) -> dict[str, Any]:
    where = f"watch rule {number}"
    known = [name for name, kind in KINDS.items() if (kind.domain if domain else kind.rp)]
    if not isinstance(one, Mapping) or set(one) - {*known, "severity", "for_s"}:
        raise InvalidRequest(f"{where}: a rule has one of {', '.join(known)}, and severity and for_s.")
    named = [name for name in known if name in one]
    if len(named) != 1:
        raise InvalidRequest(f"{where}: a rule has exactly one of {', '.join(known)}.")
    severity, for_s = one.get("severity", SEVERITIES[0]), _integer(one.get("for_s", FOR_S_DEFAULT))
    if severity not in SEVERITIES:
        raise InvalidRequest(f"{where}: severity is {' or '.join(SEVERITIES)}.")
    if for_s is None or not 0 <= for_s <= FOR_S_MAX:
        raise InvalidRequest(f"{where}: for_s is an integer from 0 to {FOR_S_MAX}.")
    return {named[0]: _settings(where, named[0], one[named[0]]), "severity": severity, "for_s": for_s}


def _settings(where: str, name: str, stated: Any) -> dict[str, Any]:
    kind = KINDS[name]
    members = [*kind.limits, *kind.filters]
    if not isinstance(stated, Mapping) or set(stated) - set(members):
        raise InvalidRequest(f"{where}: {name} has the members {', '.join(members)} only.")
    made: dict[str, Any] = {}
    for member, limit in kind.limits.items():
        if member in stated:
            made[member] = value = _integer(stated[member])
            if value is None or not limit.low <= value <= limit.high:
                raise InvalidRequest(f"{where}: {name} {member} is an integer from {limit.low} to {limit.high}.")
    if not made:
        raise InvalidRequest(f"{where}: {name} states {' or '.join(kind.limits)}.")
    for member in kind.filters:
        if member in stated:
            made[member] = text = stated[member]
            if not isinstance(text, str) or not is_line(text, FILTER_CHARS_MAX):
                raise InvalidRequest(
                    f"{where}: {name} {member} is a text of 1 to {FILTER_CHARS_MAX} characters on one line."
                )
    return made


def _integer(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int else None


def _id(rp: str, one: Mapping[str, Any]) -> str:
    """Make an id from the content: a changed rule is another one, with a new alarm."""
    text = json.dumps([rp, one], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return base64.b32encode(hashlib.sha256(text.encode()).digest()).decode().lower()[:_ID_CHARS]
