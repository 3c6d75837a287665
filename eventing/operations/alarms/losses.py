"""Watching durable subscriptions for loss: at every RP that has some, without a rule that anybody had to add.

The life of a look, each second, in the gateway that leads (watcher.py):

    a slice of all subscriptions, by RP and id, so that after some seconds all were looked at
    -> those with half their history unread, or with loss, are followed from then on: looked at in every turn
    -> how fast each reads, and when it loses the next event (core/events/lag.py) -> Observed, for the machine

The cost is bounded whatever the domain holds: SLICE_MAX subscriptions a turn, FOLLOWED_MAX that are followed; 10,000 RPs
with a subscription each are gone round in twenty turns. The rules are those of `rps/rules/watches.py: loss_rules`.
Synchronous.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eventing.conf import config
from eventing.core.events.lag import loss_in_s, share_used
from eventing.core.ids import ADMIN_SUFFIX, DOMAIN_ADMIN
from eventing.log.lags import COLUMNS, Asked, Found, asked_of, lags
from eventing.operations.alarms import findings
from eventing.operations.alarms.evaluation import Observed
from eventing.operations.alarms.findings import Losing
from eventing.overlay import takeover
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.watches import LOSS, Rule, loss_rules
from eventing.rps.selectors.watches import domain_watches
from eventing.subscriptions.models import Subscription
from eventing.telemetry import metrics

SLICE_MAX = 500
"""Durable subscriptions looked at in a turn of a second, beside those that are followed. Measured: 18 ms of a thread's time."""

FOLLOWED_MAX = 200
"""Those that are followed, and about which there may be alarms: a fifth of all alarms that can be open."""

SHARE_FOLLOWED = 0.5
"""Of its history that a subscription has unread from which it is followed: before, no loss is near."""

KEPT_S = 60.0
"""How long one is followed after it was in danger, so that how fast it reads is known when it is again."""

RATE_S = 60.0
"""Time over which it is measured how fast a subscription reads."""

RATE_STEP_S = 5.0


@dataclass(slots=True)
class _Followed:
    """A subscription that is looked at in every turn; `reads`: when, and how many events it had acknowledged then."""

    rp: str
    seen: float
    reads: deque[tuple[float, int]] = field(default_factory=deque)
    lost: int = 0

    def per_s(self, now: float, read: int) -> float | None:
        """How fast it reads; None on the first look."""
        while len(self.reads) > 1 and now - self.reads[1][0] >= RATE_S:
            self.reads.popleft()
        if not self.reads or now - self.reads[-1][0] >= RATE_STEP_S:
            self.reads.append((now, read))
        since, before = self.reads[0]
        return max(0.0, (read - before) / (now - since)) if now > since else None


@dataclass(slots=True)
class _Round:
    """What was counted since the first subscription was looked at."""

    losing: int = 0
    lost: int = 0
    furthest: int = 0

    def add(self, found: Found) -> None:
        self.losing += found.lag.lost > 0
        self.lost += found.lag.lost
        self.furthest = max(self.furthest, found.lag.events)

    def tell(self) -> None:
        metrics.SUBSCRIPTIONS_LOSING.set(self.losing)
        metrics.SUBSCRIPTIONS_LOST.set(self.lost)
        metrics.SUBSCRIPTIONS_LAG_MAX.set(self.furthest)


class Losses:
    """Of one gateway while it leads.

    Attributes:
        rules: those that something was found at lately, for the machine; they change from turn to turn.
    """

    def __init__(self, alarmed: Iterable[str] = ()) -> None:
        """`alarmed`: the RPs with an open alarm about loss (empty text: the domain), which whoever takes over goes on with."""
        self.rules: tuple[Rule, ...] = ()
        self._held = set(alarmed)
        self._followed: dict[str, _Followed] = {}
        self._at: tuple[str, str] = ("", "")
        self._round = _Round()

    def look(self, now: float) -> list[Observed]:
        """What is found in this turn. Raises redis.RedisError, SQL's errors."""
        rows = self._slice()
        ids = list(self._followed)
        followed = asked_of(Subscription.objects.filter(id__in=ids).values(*COLUMNS)) if ids else []
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

    def keep(self, held: Iterable[Rule]) -> None:
        """Go on with the RPs of these rules, whatever is found: the machine holds something of them."""
        self._held = {rule.rp for rule in held}

    def _slice(self) -> list[Asked]:
        """The next subscriptions, by RP and id; after the last one from the first one again."""
        rp, one = self._at
        rows = Subscription.objects.order_by("at", "id").filter(at__gte=rp).exclude(at=rp, id__lte=one)
        found = asked_of(rows.values(*COLUMNS)[:SLICE_MAX])
        self._at = (found[-1].rp, found[-1].id) if len(found) == SLICE_MAX else ("", "")
        return found

    def _follow(self, asked: Mapping[str, Asked], found: Mapping[str, Found], now: float) -> None:
        """Begin to follow what is in danger, the worst first while there is room; end it for what was not for long."""
        in_danger = {name: one for name, one in found.items() if one.lag.lost or _share(one) >= SHARE_FOLLOWED}
        for name in in_danger.keys() & self._followed.keys():
            self._followed[name].seen = now
        for name, followed in list(self._followed.items()):
            if name not in found or now - followed.seen > KEPT_S:
                del self._followed[name]
        fresh = sorted(in_danger.keys() - self._followed.keys(), key=lambda name: (-found[name].lag.lost, name))
        for name in fresh[: FOLLOWED_MAX - len(self._followed)]:
            self._followed[name] = _Followed(rp_of(asked[name].rp), now)

    def _observed(self, found: Mapping[str, Found], now: float) -> list[Observed]:
        """What is found at each rule of the RPs whose subscriptions are followed, and of those that the machine holds."""
        of_rp: dict[str, list[Losing]] = {rp: [] for rp in self._held}
        for name, followed in self._followed.items():
            of_rp.setdefault(followed.rp, []).append(_losing(name, followed, found[name], now))
        if not of_rp:
            self.rules = ()
            return []
        rows = RendezvousPoint.objects.filter(id__in=list(of_rp)).values_list("id", "name", "watch")
        shown: dict[str, tuple[str, Sequence[Mapping[str, Any]]]] = {
            rp: (name or rp, watch) for rp, name, watch in rows
        }
        shown[""] = (DOMAIN_ADMIN, ())
        own = domain_watches()
        of_domain = own.watch if own is not None else ()
        made: list[Observed] = []
        rules: list[Rule] = []
        for rp in sorted(of_rp.keys() & shown.keys()):
            label, watch = shown[rp]
            for rule in loss_rules(rp, watch, of_domain):
                rules.append(rule)
                made.append(Observed(rule.id, findings.loss(rule, label, of_rp[rp])))
        self.rules = tuple(rules)
        return made


def rp_of(at: str) -> str:
    """The id of the RP whose alarms are those of a subscription at `at`; empty for the domain's."""
    return "" if at == DOMAIN_ADMIN else at.removesuffix(ADMIN_SUFFIX)


def alarmed(rows: Iterable[Any]) -> set[str]:
    """The RPs of the open alarms about loss among `rows`."""
    return {row.rp for row in rows if row.kind == LOSS}


def _share(found: Found) -> float:
    return 0.0 if found.waiting is None else share_used(found.waiting, found.bounds)


def _losing(name: str, followed: _Followed, found: Found, now: float) -> Losing:
    per_s = followed.per_s(now, found.read)
    loss_s = None
    if found.waiting is not None and _share(found) >= SHARE_FOLLOWED:
        loss_s = loss_in_s(found.waiting, found.bounds, per_s or 0.0)
    lag, was_lost = found.lag, followed.lost
    followed.lost = lag.lost or was_lost
    standing = found.standing
    if standing is not None and takeover.elsewhere(standing, config().domain, int(now * 1000)):
        return Losing(name, lag.events, 0, found.bounds.max_events, None)  # its reader reads another domain's history
    return Losing(name, lag.events, lag.lost, found.bounds.max_events, loss_s, per_s is not None, was_lost)
