"""Evaluation of findings: alarms that are raised once and cleared once. A pure state machine.

    machine = Machine(rules, open_alarms)
    for output in machine.handle(Observed(rule.id, findings), now):
        ...                            # Raised, Changed, Cleared (operations/rules/alarms.py)
    machine.handle(TimePassed(), now)  # now and then: observations expire

The life of one object under one rule (for example a subscription under a lag rule):

    kept -> broken, pending -> after the rule's for_s: raised -> kept again, healing -> as long after: cleared, removed

The state of an object without an observation for STALE_S is unknown: time alone then raises and clears nothing, and a
pending object begins anew. So an outage of Redis neither raises nor clears alarms. Late, repeated and unknown inputs
are harmless.

Outputs are bounded, too: RAISES_PER_S, those due for longest first, and CHANGES_PER_S; clears follow raises.

The state is bounded: ABOUTS_MAX objects of a rule, ROWS_MAX in all; others are entered when there is room. A new leader
rebuilds it from the rules and the open alarms: only pending objects begin anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from eventing.operations.rules.alarms import Changed, Cleared, Output, Raised, Stated, Value
from eventing.rps.rules.watches import WatchRule

ABOUTS_MAX = 20  # bound: objects with an alarm under one rule; only the worst have one
"""Objects of one rule with an alarm, raised or pending: more of them have one common cause."""

ROWS_MAX = 1000  # bound: alarms raised or pending; others when there is room
STALE_S = 30.0  # bound: seconds without a measurement; a pending alarm starts again
"""Several turns of the leader, with as many RPs as may have rules."""

CHANGED_S = 10.0
"""Least seconds between two reported changes of an alarm; more with many alarms, so that all together are
CHANGES_PER_S.
"""

# bound: alarms whose changed values are reported per second; the others are reported in the next seconds
CHANGES_PER_S = 10
# bound: alarms raised per second; the others are raised in the next seconds, the longest waiting first
RAISES_PER_S = 50
"""For all alarms together: each is a write to SQL and two events, and a stranger who may set rules can cause many."""

HEALTH_S_MIN = 2.0
"""Least seconds without a broken rule before an alarm is cleared, also with a for_s of 0, so that a value around a
limit is one alarm.
"""

KEPT_AGAIN = "The rule is kept again."
GONE = "The object of the alarm no longer exists."
NAME_EVERYTHING = frozenset({"lag", "loss", "process_lag"})
"""Kinds whose findings name every object, so that objects that are not named no longer exist."""

NO_RULE = "The rule was removed or changed."


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding at one object.

    Attributes:
        about: the object; empty where the rule has only one.
        broken: whether the rule is broken there; None: not known yet.
        detail, values, link: as of Stated, for an alarm.
        since: Unix seconds since when it is so, if known.
        kept: of an object whose rule is kept: why its alarm is cleared, if more is to be stated than that the rule is
            kept.
    """

    about: str
    broken: bool | None
    detail: str = ""
    values: tuple[Value, ...] = ()
    link: str = ""
    since: float | None = None
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """All findings at a rule, the worst first. At an object that is not named the rule is kept, or the object no longer
    exists.
    """

    rule: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class RulesInForce:
    """The rules in force from now on."""

    rules: tuple[WatchRule, ...]


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Time has passed."""


Input = Observed | RulesInForce | TimePassed


@dataclass(slots=True)
class _Row:
    """An object under a rule that is broken, or was broken recently.

    Attributes:
        reported: the alarm as reported last; None while pending.
        healthy: since when the rule is kept; None while it is broken. `why`: the reason to state when it is cleared.
    """

    finding: Finding
    began: float
    seen: float
    reported: Stated | None = None
    reported_at: float = 0.0
    healthy: float | None = None
    why: str = KEPT_AGAIN


@dataclass(slots=True)
class _Watch:
    rule: WatchRule
    rows: dict[str, _Row] = field(default_factory=dict)


class Machine:
    """The state machine; see the module.

    Args:
        rules: those in force.
        open_: the open alarms, including those of removed rules.
        now: Unix seconds.
    """

    def __init__(self, rules: Iterable[WatchRule], open_: Iterable[Stated], now: float) -> None:
        self._watches = {rule.id: _Watch(rule) for rule in rules}
        self._orphans: list[Stated] = []
        self._count = 0
        self._second, self._raises_left, self._changes_left = float("-inf"), 0, 0
        for alarm in open_:
            watch = self._watches.get(alarm.rule)
            if watch is None:
                self._orphans.append(alarm)
            elif alarm.about not in watch.rows:
                finding = Finding(alarm.about, True, alarm.detail, alarm.values, alarm.link, alarm.since)
                watch.rows[alarm.about] = _Row(finding, now, now, alarm, now)
                self._count += 1

    def __len__(self) -> int:
        """Return the number of objects held."""
        return self._count

    def holds(self, rule: str) -> bool:
        """Return whether the rule with this id is broken, or was recently, at any object."""
        return rule in self._watches and bool(self._watches[rule].rows)

    def handle(self, given: Input, now: float) -> list[Output]:
        """Return the outputs of an input at the time `now`, Unix seconds, in the order in which they are to be
        reported.
        """
        outputs: list[Output] = [Cleared(one.rule, one.about, NO_RULE) for one in self._orphans]
        self._orphans = []
        match given:
            case Observed(rule, findings):
                watch = self._watches.get(rule)
                if watch is not None:
                    outputs += self._observed(watch, findings, now)
            case RulesInForce(rules):
                outputs += self._rules(rules)
            case TimePassed():
                outputs += self._passed(self._watches.values(), now)
        return outputs

    def _rules(self, rules: Sequence[WatchRule]) -> list[Output]:
        outputs: list[Output] = []
        kept = {rule.id: rule for rule in rules}
        for rule_id in [one for one in self._watches if one not in kept]:
            rows = self._watches.pop(rule_id).rows
            self._count -= len(rows)
            outputs += [Cleared(rule_id, about, NO_RULE) for about, row in rows.items() if row.reported is not None]
        for rule_id, rule in kept.items():
            self._watches.setdefault(rule_id, _Watch(rule))
        return outputs

    def _observed(self, watch: _Watch, findings: Sequence[Finding], now: float) -> list[Output]:
        found = {finding.about: finding for finding in reversed(findings)}
        for about, row in list(watch.rows.items()):
            finding = found.get(about)
            if finding is not None and finding.broken is None:
                continue  # unknown: neither seen broken nor healthy
            if finding is not None and finding.broken:
                self._broken(row, finding, now)
            elif row.reported is None:
                self._drop(watch, about)
            else:
                stale = now - row.seen > STALE_S
                row.seen = now
                row.healthy = now if row.healthy is None or stale else row.healthy
                row.why = _why(watch.rule, finding)
        for finding in findings:
            if finding.broken and finding.about not in watch.rows and self._room(watch):
                watch.rows[finding.about] = _Row(finding, now, now)
                self._count += 1
        return self._passed([watch], now)

    @staticmethod
    def _broken(row: _Row, finding: Finding, now: float) -> None:
        if row.reported is None and now - row.seen > STALE_S:
            row.began = now  # the time between was not observed
        row.finding, row.seen, row.healthy = finding, now, None

    def _room(self, watch: _Watch) -> bool:
        return len(watch.rows) < ABOUTS_MAX and self._count < ROWS_MAX

    def _drop(self, watch: _Watch, about: str) -> None:
        del watch.rows[about]
        self._count -= 1

    def _passed(self, watches: Iterable[_Watch], now: float) -> list[Output]:
        """Apply the passing of time to the objects of these rules."""
        outputs: list[Output] = []
        raises: list[tuple[float, WatchRule, _Row]] = []
        changes: list[tuple[float, WatchRule, _Row]] = []
        changed_s = max(CHANGED_S, self._count / CHANGES_PER_S)
        for watch in watches:
            for about, row in list(watch.rows.items()):
                if now - row.seen > STALE_S:
                    if row.reported is None:
                        self._drop(watch, about)
                    continue
                due = _due(watch.rule, row)
                if row.reported is None:
                    if due is not None and now >= due:
                        raises.append((due, watch.rule, row))
                elif row.healthy is not None:
                    if due is not None and now >= due:
                        self._drop(watch, about)
                        outputs.append(Cleared(watch.rule.id, about, row.why))
                elif row.finding.detail != row.reported.detail and now - row.reported_at >= changed_s:
                    changes.append((row.reported_at, watch.rule, row))
        return outputs + self._reports(raises, changes, now)

    def _reports(
        self, raises: list[tuple[float, WatchRule, _Row]], changes: list[tuple[float, WatchRule, _Row]], now: float
    ) -> list[Output]:
        """Return the outputs within one second's bounds, those that have waited longest first; the rest stays due."""
        if not self._second <= now < self._second + 1:
            self._second, self._raises_left, self._changes_left = now, RAISES_PER_S, CHANGES_PER_S
        outputs: list[Output] = []
        for _, rule, row in sorted(raises, key=lambda one: one[0])[: self._raises_left]:
            row.reported, row.reported_at = _stated(rule, row), now
            outputs.append(Raised(row.reported))
        self._raises_left -= len(outputs)
        reported = sorted(changes, key=lambda one: one[0])[: self._changes_left]
        for _, rule, row in reported:
            row.reported, row.reported_at = _stated(rule, row), now
            outputs.append(Changed(row.reported))
        self._changes_left -= len(reported)
        return outputs


def _why(rule: WatchRule, finding: Finding | None) -> str:
    """Return why the alarm of an object whose rule is kept is cleared."""
    if finding is None:
        return GONE if rule.kind in NAME_EVERYTHING else KEPT_AGAIN
    return finding.kept or KEPT_AGAIN


def _due(rule: WatchRule, row: _Row) -> float | None:
    """Return when the row is raised or cleared if nothing changes; None if it is raised and broken."""
    if row.reported is None:
        return row.began + rule.for_s
    return None if row.healthy is None else row.healthy + max(rule.for_s, HEALTH_S_MIN)


def _stated(rule: WatchRule, row: _Row) -> Stated:
    found = row.finding
    since = row.reported.since if row.reported is not None else row.began if found.since is None else found.since
    return Stated(
        rule.id, found.about, rule.rp, rule.kind, rule.severity, found.detail, found.values, found.link, since
    )
