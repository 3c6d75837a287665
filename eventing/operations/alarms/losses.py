"""Watching durable subscriptions for loss: at every RP with some, without a configured rule.

The life of a measurement, each second, in the leading gateway (watcher.py):

    a slice of all subscriptions, by RP and id, so that a round takes some seconds
    -> those with half their history unread, or with loss, are tracked from then on: measured in every turn
    -> reading rate, and time of the next loss (core/events/lag.py) -> Observed, for the machine

The cost is bounded whatever the domain holds: SLICE_MAX subscriptions a turn, FOLLOWED_MAX tracked ones; a round of
10,000 RPs with a subscription each takes twenty turns. The rules are those of `rps/rules/watches.py: loss_rules`.
Synchronous.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eventing.conf import config
from eventing.core.events.lag import loss_in_s, share_used
from eventing.core.ids import ADMIN_SUFFIX, DOMAIN_ADMIN, DOMAIN_ADMINS
from eventing.log.lags import LagQuery, LagResult, lags
from eventing.operations.alarms import findings
from eventing.operations.alarms.evaluation import Observed
from eventing.operations.alarms.findings import Losing
from eventing.overlay import takeover
from eventing.rps.rules.watches import LOSS, WatchRule, loss_rules
from eventing.rps.selectors.watches import domain_watches, watches_stated
from eventing.subscriptions.selectors.losses import asked_after, asked_by_id
from eventing.telemetry import metrics

SLICE_MAX = 500  # bound: durable subscriptions checked for loss per second; the others are checked in the next turns
"""Durable subscriptions measured in a turn of a second, beside the tracked ones. Measured: 18 ms of a thread's time."""

# bound: endangered durable subscriptions checked in every turn; the others have no alarm; the metrics count them
FOLLOWED_MAX = 200
"""Tracked subscriptions, about which there may be alarms: a fifth of all alarms that can be open."""

SHARE_FOLLOWED = 0.5
"""Unread share of its history from which a subscription is tracked: below it, no loss is near."""

KEPT_S = 60.0
"""Seconds for which a subscription is tracked after the danger, so that its reading rate is known if danger returns."""

RATE_S = 60.0
"""Seconds over which the reading rate is measured."""

RATE_STEP_S = 5.0


@dataclass(slots=True)
class _Followed:
    """A tracked subscription, measured in every turn; `reads`: times, and events acknowledged by then."""

    rp: str
    seen: float
    reads: deque[tuple[float, int]] = field(default_factory=deque)
    lost: int = 0

    def per_s(self, now: float, read: int) -> float | None:
        """Return its reading rate; None at the first measurement."""
        while len(self.reads) > 1 and now - self.reads[1][0] >= RATE_S:
            self.reads.popleft()
        if not self.reads or now - self.reads[-1][0] >= RATE_STEP_S:
            self.reads.append((now, read))
        since, before = self.reads[0]
        return max(0.0, (read - before) / (now - since)) if now > since else None


@dataclass(slots=True)
class _Round:
    """Counts since the round's first subscription."""

    losing: int = 0
    lost: int = 0
    furthest: int = 0

    def add(self, found: LagResult) -> None:
        self.losing += found.lag.lost > 0
        self.lost += found.lag.lost
        self.furthest = max(self.furthest, found.lag.events)

    def tell(self) -> None:
        metrics.SUBSCRIPTIONS_LOSING.set(self.losing)
        metrics.SUBSCRIPTIONS_LOST.set(self.lost)
        metrics.SUBSCRIPTIONS_LAG_MAX.set(self.furthest)


class Losses:
    """The measurements of one gateway while it leads.

    Attributes:
        rules: those with recent findings, for the machine; they change from turn to turn.
    """

    def __init__(self, alarmed: Iterable[str] = ()) -> None:
        """`alarmed`: the RPs with an open alarm about loss (empty text: the domain), which a new leader continues."""
        self.rules: tuple[WatchRule, ...] = ()
        self._held = set(alarmed)
        self._followed: dict[str, _Followed] = {}
        self._at: tuple[str, str] = ("", "")
        self._round = _Round()

    def measure(self, now: float) -> list[Observed]:
        """Return the findings of this turn. Raises redis.RedisError, SQL's errors."""
        rows = self._slice()
        ids = list(self._followed)
        followed = asked_by_id(ids) if ids else []
        asked = {one.id: one for one in (*rows, *followed)}
        ordered = sorted(asked.values(), key=lambda one: one.rp)
        found = dict(zip((one.id for one in ordered), lags(ordered), strict=True))
        for one in rows:
            self._round.add(found[one.id])
        self._follow(asked, found, now)
        if len(rows) < SLICE_MAX:
            self._round.tell()
            self._round = _Round()
        return self._observed(found, now)

    def keep(self, held: Iterable[WatchRule]) -> None:
        """Continue to observe the RPs of these rules: the machine holds objects of them."""
        self._held = {rule.rp for rule in held}

    def _slice(self) -> list[LagQuery]:
        """Return the next subscriptions, by RP and id; after the last one from the first one again."""
        rp, one = self._at
        found = asked_after(rp, one, SLICE_MAX)
        self._at = (found[-1].rp, found[-1].id) if len(found) == SLICE_MAX else ("", "")
        return found

    def _follow(self, asked: Mapping[str, LagQuery], found: Mapping[str, LagResult], now: float) -> None:
        """Start to track endangered subscriptions, the worst first while there is room; stop for those long out of
        danger.
        """
        in_danger = {name: one for name, one in found.items() if one.lag.lost or _share(one) >= SHARE_FOLLOWED}
        for name in in_danger.keys() & self._followed.keys():
            self._followed[name].seen = now
        for name, followed in list(self._followed.items()):
            if name not in found or now - followed.seen > KEPT_S:
                del self._followed[name]
        fresh = sorted(in_danger.keys() - self._followed.keys(), key=lambda name: (-found[name].lag.lost, name))
        for name in fresh[: FOLLOWED_MAX - len(self._followed)]:
            self._followed[name] = _Followed(rp_of(asked[name].rp), now)

    def _observed(self, found: Mapping[str, LagResult], now: float) -> list[Observed]:
        """Return the findings at each rule of the RPs with tracked subscriptions, and of those that the machine holds."""
        of_rp: dict[str, list[Losing]] = {rp: [] for rp in self._held}
        for name, followed in self._followed.items():
            of_rp.setdefault(followed.rp, []).append(_losing(name, followed, found[name], now))
        if not of_rp:
            self.rules = ()
            return []
        shown: dict[str, tuple[str, Sequence[Mapping[str, Any]]]] = {
            rp: (label, watch) for rp, label, watch in watches_stated(list(of_rp))
        }
        shown[""] = (DOMAIN_ADMIN, ())
        own = domain_watches()
        of_domain = own.watch if own is not None else ()
        made: list[Observed] = []
        rules: list[WatchRule] = []
        for rp in sorted(of_rp.keys() & shown.keys()):
            label, watch = shown[rp]
            for rule in loss_rules(rp, watch, of_domain):
                rules.append(rule)
                made.append(Observed(rule.id, findings.loss(rule, label, of_rp[rp])))
        self.rules = tuple(rules)
        return made


def rp_of(at: str) -> str:
    """Return the id of the RP whose alarms cover a subscription at `at`; empty for the domain's."""
    return "" if at in DOMAIN_ADMINS else at.removesuffix(ADMIN_SUFFIX)


def alarmed(rows: Iterable[Any]) -> set[str]:
    """Return the RPs of the open alarms about loss among `rows`."""
    return {row.rp for row in rows if row.kind == LOSS}


def _share(found: LagResult) -> float:
    return 0.0 if found.waiting is None else share_used(found.waiting, found.bounds)


def _losing(name: str, followed: _Followed, found: LagResult, now: float) -> Losing:
    per_s = followed.per_s(now, found.read)
    loss_s = None
    if found.waiting is not None and _share(found) >= SHARE_FOLLOWED:
        loss_s = loss_in_s(found.waiting, found.bounds, per_s or 0.0)
    lag, was_lost = found.lag, followed.lost
    followed.lost = lag.lost or was_lost
    standing = found.standing
    if standing is not None and takeover.elsewhere(standing, config().domain, int(now * 1000)):
        return Losing(
            name, lag.events, 0, found.bounds.max_events, None
        )  # its reader reads the history of another domain
    return Losing(name, lag.events, lag.lost, found.bounds.max_events, loss_s, per_s is not None, was_lost)
