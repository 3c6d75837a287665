"""The alarm watcher, a background service of each gateway: the leading one evaluates the watch rules and raises alarms.

The leader holds a lease in Redis, renewed each second; after a crash another gateway takes over within LEASE_S +
PERIOD_S and continues from the open alarms in SQL. If two lead for a moment, the database lets each alarm be open only
once.

    each second: renew the lease -> load the rules if they changed -> measure (measurements.py)
    -> the machine (evaluation.py) -> its outputs in one transaction with their events (operations/services/alarms.py)

Loss of durable subscriptions is watched without a rule (losses.py). Without rules and subscriptions a gateway pays a
round trip to Redis a second, the leader two small queries besides. No failure here stops the gateway: while Redis or
SQL does not answer, nothing is measured, and pending alarms begin anew.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

from eventing.core.errors import ApplicationError
from eventing.operations.alarms.evaluation import Machine, RulesInForce, TimePassed
from eventing.operations.alarms.losses import Losses, alarmed
from eventing.operations.alarms.measurements import Measurements
from eventing.operations.models import Alarm
from eventing.operations.rules.alarms import LASTING, PLACEMENT, Output, Stated, Value
from eventing.operations.samples.gateway_view import GatewayView
from eventing.operations.selectors.alarms import alarms_open
from eventing.operations.services.alarms import alarms_apply, alarms_purge
from eventing.rps.rules.watches import WatchRule
from eventing.rps.selectors.watches import InForce, rules_in_force, rules_stamp
from eventing.sql.threads import in_database
from eventing.store import keys
from eventing.store.cancellation import cancel_and_wait
from eventing.store.errors import RedisError
from eventing.store.lease import LeaderLease

PERIOD_S = 1.0
LEASE_S = 3.0
"""A leader that has not renewed its lease for this many seconds has lost it."""

RELOAD_S = 30.0
"""Rules are loaded anew after this many seconds even without a visible change: an RP's lease may have expired."""

PURGE_S = 600.0
CLOCK_BACK_S = 1.0
"""Seconds; a clock that was set back by more makes the leader begin anew, as after a takeover; less only delays it as
much.
"""

LEAVE_S = 1.0
log = logging.getLogger(__name__)


class Watcher:
    """The watcher of one gateway process. `start` begins it; `close` ends it, before the gateway's connections are
    closed.
    """

    def __init__(self, gateway: GatewayView) -> None:
        self._gateway = gateway
        self._lease = LeaderLease(keys.WATCHING_TURN_KEY, gateway.id, int(LEASE_S * 1000))
        self._task: asyncio.Task[None] | None = None
        self._lead: _Lead | None = None

    def start(self) -> None:
        """Start the watcher's task."""
        self._task = asyncio.get_running_loop().create_task(self._forever())

    async def close(self) -> None:
        """Stop, and release the lease for another gateway at once."""
        if self._task is None:
            return
        await cancel_and_wait([self._task])
        self._task = None
        try:
            async with asyncio.timeout(LEAVE_S):
                await self._lease.release(self._gateway.redis)
        except (RedisError, OSError, TimeoutError):
            pass  # the lease expires

    async def _forever(self) -> None:
        while True:
            await self._gateway.pause(PERIOD_S)
            try:
                await self.run_once()
            except (RedisError, OSError, ApplicationError):
                self._lead = None  # SQL has the reported alarms
            except Exception:
                self._lead = None
                log.exception("Watching failed; the next turn is in %g s.", PERIOD_S)

    async def run_once(self) -> None:
        """Do one second's work. Raises redis.RedisError, ApplicationError when SQL does not answer."""
        if not await self._is_leader():
            self._lead = None
            return
        now = self._gateway.clock()
        if self._lead is None or now < self._lead.now - CLOCK_BACK_S:
            self._lead = _Lead()
        await in_database(self._lead.run_once)(now)

    async def _is_leader(self) -> bool:
        """Renew or take the lease for LEASE_S; return whether this gateway holds it."""
        return bool(await self._lease.acquire(self._gateway.redis))


class _Lead:
    """The time of one gateway as the leader. Synchronous: it runs in a thread with a database connection."""

    def __init__(self) -> None:
        self._machine: Machine | None = None
        self._measurements = Measurements()
        self._losses = Losses()
        self._in_machine: tuple[WatchRule, ...] = ()
        self._rules: InForce | None = None
        self._stamp: tuple[object, ...] | None = None
        self._loaded_at = self._purged_at = 0.0
        self.now = 0.0  # time of the last turn

    def run_once(self, now: float) -> None:
        """Load the rules, measure, report."""
        self.now = now
        machine = self._with_rules(now)
        outputs = machine.handle(TimePassed(), now)
        assert self._rules is not None  # noqa: S101 - just loaded
        if self._rules.domain or self._rules.rps:
            for observed in self._measurements.measure(self._rules, now):
                outputs += machine.handle(observed, now)
        outputs += self._watch_losses(machine, now)
        if outputs:
            alarms_apply(outputs, now=datetime.fromtimestamp(now, UTC))
        if now - self._purged_at >= PURGE_S:
            self._purged_at = now
            alarms_purge(now=datetime.fromtimestamp(now, UTC))

    def _with_rules(self, now: float) -> Machine:
        """Return the machine with the present rules."""
        stamp = rules_stamp()
        if self._machine is not None and stamp == self._stamp and now - self._loaded_at < RELOAD_S:
            return self._machine
        self._rules, self._stamp, self._loaded_at = rules_in_force(), stamp, now
        if self._machine is None:
            open_ = [row for row in alarms_open() if row.rule not in (LASTING, PLACEMENT)]
            self._losses = Losses(alarmed(open_))
            self._losses.measure(now)
            self._machine = Machine(self._all_rules(), [_stated(row) for row in open_], now)
        else:
            outputs = self._machine.handle(RulesInForce(self._all_rules()), now)
            alarms_apply(outputs, now=datetime.fromtimestamp(now, UTC))
        return self._machine

    def _watch_losses(self, machine: Machine, now: float) -> list[Output]:
        """Measure losses, whose rules appear and disappear with the findings."""
        found = self._losses.measure(now)
        outputs: list[Output] = []
        if self._losses.rules != self._in_machine:
            outputs += machine.handle(RulesInForce(self._all_rules()), now)
        for observed in found:
            outputs += machine.handle(observed, now)
        self._losses.keep(rule for rule in self._losses.rules if machine.holds(rule.id))
        return outputs

    def _all_rules(self) -> tuple[WatchRule, ...]:
        """Return every rule in force that may have findings, each once."""
        assert self._rules is not None  # noqa: S101 - just loaded
        self._in_machine = self._losses.rules
        stated = (*self._rules.domain, *(rule for one in self._rules.rps for rule in one.rules))
        return tuple({rule.id: rule for rule in (*stated, *self._losses.rules)}.values())


def _stated(row: Alarm) -> Stated:
    values = tuple(Value(**value) for value in row.values)
    since = row.since.timestamp()
    return Stated(row.rule, row.about, row.rp, row.kind, row.severity, row.detail, values, row.link, since)
