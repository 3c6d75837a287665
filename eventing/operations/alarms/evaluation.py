"""Watching: from what was found at a rule to alarms that are raised once, and cleared once. A pure state machine.

    machine = Machine(rules, open_alarms)
    for output in machine.handle(Observed(rule.id, findings), now):    # Raised, Changed, Cleared (operations/rules/alarms.py)
        ...
    machine.handle(Tick(), now)        # now and then: what was seen does not last for ever

The life of one thing at one rule (a subscription at a lag rule, say):

    kept -> broken, pending -> after the rule's for_s: raised -> kept again, healing -> as long after: cleared, forgotten

What was not observed for STALE_S is unknown: then nothing is raised or cleared by time alone, and a thing that was pending
begins anew. So an outage of Redis neither makes alarms nor takes them away. Late, repeated and unknown inputs are harmless.

What is told is bounded too: RAISES_PER_S, those due for longest first, and CHANGES_PER_S; clears follow raises.

The state is bounded: ABOUTS_MAX things of a rule, ROWS_MAX in all; what is beyond is taken when there is room. It is rebuilt
from the rules and the open alarms by whoever takes over: only what was pending begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from eventing.operations.rules.alarms import Changed, Cleared, Output, Raised, Stated, Value
from eventing.rps.rules.watches import Rule

ABOUTS_MAX = 20
"""Things of one rule with an alarm, or about to have one: who has more of them has one trouble, not twenty."""

ROWS_MAX = 1000
STALE_S = 30.0
"""Several turns of the one who looks, with as many RPs as may have rules."""

CHANGED_S = 10.0
"""Least time between two changes of an alarm that are told; longer where there are many, so that all together are CHANGES_PER_S."""

CHANGES_PER_S = 10
RAISES_PER_S = 50
"""Of all alarms together: each is a write to SQL and two events, and a stranger who may set rules makes as many as there can be."""

HEALTH_S_MIN = 2.0
"""Least time of health before an alarm is cleared, also with a for_s of 0: what hovers at a limit is one alarm."""

KEPT_AGAIN = "The rule is kept again."
GONE = "What it was about is there no more."
NAME_EVERYTHING = frozenset({"lag", "loss", "process_lag"})
"""Kinds whose findings name everything there is, so that what they do not name is gone."""

NO_RULE = "The rule is no more, or is another one."


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found at one thing.

    Attributes:
        about: the thing; empty where the rule is about one only.
        broken: whether the rule is broken there; None: it cannot be said yet.
        detail, values, link: as of Stated, should an alarm be raised.
        since: Unix seconds since when it is so, where that is known.
        kept: of one that is not broken: why its alarm is cleared, if more is to be said than that the rule is kept.
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
    """Everything that was found at a rule, the worst first. What is not named is kept there, or gone."""

    rule: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules in force from now on."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Input = Observed | Rules | Tick


@dataclass(slots=True)
class _Row:
    """One thing at one rule that is broken, or was a moment ago.

    Attributes:
        told: the alarm as it was told; None while pending.
        healthy: since when it is kept; None while it is broken. `why`: what is said of it when it is cleared.
    """

    finding: Finding
    began: float
    seen: float
    told: Stated | None = None
    told_at: float = 0.0
    healthy: float | None = None
    why: str = KEPT_AGAIN


@dataclass(slots=True)
class _Watch:
    rule: Rule
    rows: dict[str, _Row] = field(default_factory=dict)


class Machine:
    """See the module.

    Args:
        rules: those in force.
        open_: the alarms that are open, those of rules that are no more among them.
        now: Unix seconds.
    """

    def __init__(self, rules: Iterable[Rule], open_: Iterable[Stated], now: float) -> None:
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
        """How many things are held."""
        return self._count

    def holds(self, rule: str) -> bool:
        """Whether anything of the rule with this id is broken, or was a moment ago."""
        return rule in self._watches and bool(self._watches[rule].rows)

    def handle(self, given: Input, now: float) -> list[Output]:
        """What follows from an input at the time `now`, Unix seconds; outputs are in the order in which they are to be told."""
        outputs: list[Output] = [Cleared(one.rule, one.about, NO_RULE) for one in self._orphans]
        self._orphans = []
        match given:
            case Observed(rule, findings):
                watch = self._watches.get(rule)
                if watch is not None:
                    outputs += self._observed(watch, findings, now)
            case Rules(rules):
                outputs += self._rules(rules)
            case Tick():
                outputs += self._passed(self._watches.values(), now)
        return outputs

    def _rules(self, rules: Sequence[Rule]) -> list[Output]:
        outputs: list[Output] = []
        kept = {rule.id: rule for rule in rules}
        for rule_id in [one for one in self._watches if one not in kept]:
            rows = self._watches.pop(rule_id).rows
            self._count -= len(rows)
            outputs += [Cleared(rule_id, about, NO_RULE) for about, row in rows.items() if row.told is not None]
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
            elif row.told is None:
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
        if row.told is None and now - row.seen > STALE_S:
            row.began = now  # nobody knows what was between
        row.finding, row.seen, row.healthy = finding, now, None

    def _room(self, watch: _Watch) -> bool:
        return len(watch.rows) < ABOUTS_MAX and self._count < ROWS_MAX

    def _drop(self, watch: _Watch, about: str) -> None:
        del watch.rows[about]
        self._count -= 1

    def _passed(self, watches: Iterable[_Watch], now: float) -> list[Output]:
        """What time does to the things of these rules."""
        outputs: list[Output] = []
        raises: list[tuple[float, Rule, _Row]] = []
        changes: list[tuple[float, Rule, _Row]] = []
        changed_s = max(CHANGED_S, self._count / CHANGES_PER_S)
        for watch in watches:
            for about, row in list(watch.rows.items()):
                if now - row.seen > STALE_S:
                    if row.told is None:
                        self._drop(watch, about)
                    continue
                due = _due(watch.rule, row)
                if row.told is None:
                    if due is not None and now >= due:
                        raises.append((due, watch.rule, row))
                elif row.healthy is not None:
                    if due is not None and now >= due:
                        self._drop(watch, about)
                        outputs.append(Cleared(watch.rule.id, about, row.why))
                elif row.finding.detail != row.told.detail and now - row.told_at >= changed_s:
                    changes.append((row.told_at, watch.rule, row))
        return outputs + self._told(raises, changes, now)

    def _told(
        self, raises: list[tuple[float, Rule, _Row]], changes: list[tuple[float, Rule, _Row]], now: float
    ) -> list[Output]:
        """As much of it as a second takes, what has waited longest first; the rest stays due."""
        if not self._second <= now < self._second + 1:
            self._second, self._raises_left, self._changes_left = now, RAISES_PER_S, CHANGES_PER_S
        outputs: list[Output] = []
        for _, rule, row in sorted(raises, key=lambda one: one[0])[: self._raises_left]:
            row.told, row.told_at = _stated(rule, row), now
            outputs.append(Raised(row.told))
        self._raises_left -= len(outputs)
        told = sorted(changes, key=lambda one: one[0])[: self._changes_left]
        for _, rule, row in told:
            row.told, row.told_at = _stated(rule, row), now
            outputs.append(Changed(row.told))
        self._changes_left -= len(told)
        return outputs


def _why(rule: Rule, finding: Finding | None) -> str:
    """Why the alarm of a thing that is not broken is cleared."""
    if finding is None:
        return GONE if rule.kind in NAME_EVERYTHING else KEPT_AGAIN
    return finding.kept or KEPT_AGAIN


def _due(rule: Rule, row: _Row) -> float | None:
    """When the row is raised or cleared, if it stays as it is; None if it is raised and broken."""
    if row.told is None:
        return row.began + rule.for_s
    return None if row.healthy is None else row.healthy + max(rule.for_s, HEALTH_S_MIN)


def _stated(rule: Rule, row: _Row) -> Stated:
    found = row.finding
    since = row.told.since if row.told is not None else row.began if found.since is None else found.since
    return Stated(
        rule.id, found.about, rule.rp, rule.kind, rule.severity, found.detail, found.values, found.link, since
    )
