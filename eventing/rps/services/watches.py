"""Writes of watch rules and audiences, at an RP and in the domain.

At an RP they are local, also at replicas: neither signed nor sent to other domains, like a pause. They change without a
new version of the descriptor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from eventing.access.rules.permission import require_operator
from eventing.core.errors import PreconditionFailed, QuotaExceeded
from eventing.core.ids import DOMAIN_ADMIN, members_changed, same_json
from eventing.core.principals import Principal
from eventing.core.timestamps import timestamp
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.rps.models import DomainWatches, RendezvousPoint
from eventing.rps.rules.audience import parse_audience
from eventing.rps.rules.watches import WATCHED_RPS_MAX, WatchRule, parse_rules, rules_of
from eventing.rps.selectors.watches import domain_watches, watched_rps
from eventing.rps.shapes import WatchRuleData
from eventing.sql.locking import lock_domain

LOCAL = ("audience", "watch")
"""Local members of an RP; changed at replicas too."""

COLUMNS = ["audience", "watch", "watched_at"]


def watches_set(row: RendezvousPoint, changes: Mapping[str, Any], now: datetime) -> list[str]:
    """Check `audience` and `watch` of `changes` and set them in `row` (None: none); the caller saves. Returns the names
    of changed members.

    Raises InvalidRequest, and QuotaExceeded if too many RPs of the domain have rules; the caller holds the domain's
    lock.
    """
    before = {name: getattr(row, name) for name in LOCAL}
    if "audience" in changes:
        row.audience = parse_audience(changes["audience"] or [])
    if "watch" in changes:
        row.watch = parse_rules(changes["watch"] or [])
    changed = members_changed(before, {name: getattr(row, name) for name in LOCAL})
    if changed:
        if row.watched_at is None and watched_rps() >= WATCHED_RPS_MAX:
            raise QuotaExceeded(
                f"{WATCHED_RPS_MAX} rendezvous points of this domain have rules or audiences, which is the maximum."
            )
        row.watched_at = now if row.watch or row.audience else None
    return changed


def watches_change(row: RendezvousPoint, changes: Mapping[str, Any], principal: Principal, outbox: Outbox) -> None:
    """Change the rules of an existing RP, within the caller's transaction."""
    before = rules_of(row.id, row.watch, row.audience)
    changed = watches_set(row, changes, outbox.now)
    if changed:
        row.save(update_fields=COLUMNS)
        outbox.announce(row.id)
        outbox.act("rp.watch", principal, "rp", row.id, changed=changed)
        watches_announce(row, outbox, by=principal.identity, before=before)


def watches_announce(row: RendezvousPoint, outbox: Outbox, *, by: str, before: Sequence[WatchRule] = ()) -> None:
    """Report the rules of an RP, if there are or were any; `by`: identity of the actor, `before`: the rules before the
    change."""
    rules = rules_of(row.id, row.watch, row.audience)
    if rules or before:
        _announce(outbox, row.id, rules, before, by)


def watches_end(row: RendezvousPoint, outbox: Outbox) -> None:
    """Report the end of an RP's rules, within the caller's transaction."""
    if before := rules_of(row.id, row.watch, row.audience):
        _announce(outbox, row.id, [], before, "")


def domain_watches_replace(
    *, principal: Principal, watch: Any, versions: frozenset[int] | None = None, now: datetime | None = None
) -> DomainWatches:
    """Replace the domain's rules. For operators.

    Args:
        versions: versions that may be changed (If-Match); None for any.

    Raises Forbidden, InvalidRequest, PreconditionFailed.
    """
    now = now or timezone.now()
    require_operator(principal)
    parsed = parse_rules(watch, domain=True)
    with change(now) as outbox:
        lock_domain()
        row = domain_watches() or DomainWatches(version=0, changed_at=now)
        if versions is not None and row.version not in versions:
            raise PreconditionFailed(f"The present version is {row.version}; read the rules and repeat your change.")
        if not row.version or not same_json(row.watch, parsed):
            before = rules_of("", row.watch)
            outbox.act("watch.replace", principal, "domain", "", version=[row.version, row.version + 1])
            row.watch, row.version, row.changed_at = parsed, row.version + 1, now
            row.save()
            _announce(outbox, "", rules_of("", parsed), before, principal.identity)
    return row


def rule_data(rule: WatchRule, since: datetime) -> WatchRuleData:
    """Describe a rule for events and snapshots; `since`: the last change of the rules of its RP, or of the domain."""
    return WatchRuleData.of(rule, rp=rule.rp or None, settings=dict(rule.settings), since=timestamp(since))


def _announce(outbox: Outbox, rp: str, rules: Sequence[WatchRule], before: Sequence[WatchRule], by: str) -> None:
    kept = {rule.id for rule in rules}
    data = {
        "rp": rp or None,
        "rules": [rule_data(rule, outbox.now) for rule in rules],
        "removed": [rule.id for rule in before if rule.id not in kept],
        "by": by,
    }
    outbox.event(events.WATCH_CHANGED, rp or DOMAIN_ADMIN, data, domain_too=bool(rp))
