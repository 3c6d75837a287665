"""Alarms and rules in snapshots."""

from __future__ import annotations

from typing import Any

from eventing.operations.events.alarms import WATCHES_MAX
from eventing.operations.selectors.alarms import alarms_open
from eventing.operations.services.alarms import alarm_data
from eventing.rps.rules.watches import rules_of
from eventing.rps.selectors.watches import domain_watches, rules_latest
from eventing.rps.services.watches import rule_data


def alarms_part(rp: str | None) -> dict[str, Any]:
    """Return the alarms in force: of an RP, or with None all."""
    return {str(row.id): alarm_data(row) for row in alarms_open(rp=rp)}


def watches_part(rp: str | None) -> dict[str, Any]:
    """Return the rules in force: of an RP, or with None all, the latest."""
    made = [rule_data(rule, since) for since, rule in rules_latest(rp, WATCHES_MAX)]
    own = domain_watches() if rp is None else None
    if own is not None:
        made += [rule_data(rule, own.changed_at) for rule in rules_of("", own.watch)]
    latest = sorted(made, key=lambda one: (one.since, one.id))[-WATCHES_MAX:]
    return {one.id: one for one in latest}
