"""The watcher beside each gateway: one of them leads, looks whether the watch rules are kept, and raises alarms.

The leader holds a lease in Redis, renewed each second; when it is killed another one takes over within TURN_KEPT_S + TURN_S
and goes on from the open alarms in SQL. Should two lead for a moment, the database lets each alarm be open once.

    each second: renew the lease -> load the rules if they changed -> look (measurements.py) -> the machine (evaluation.py)
    -> its outputs in one transaction with their events (operations/services/alarms.py)

Loss of durable subscriptions is watched without a rule (losses.py). Without rules and subscriptions a gateway pays a round
trip to Redis a second, the leader two small queries besides. Nothing here can fail the
gateway: while Redis or SQL is away nothing is looked at, and what was pending begins anew.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

from redis.exceptions import RedisError

from eventing.core.errors import HeraldError
from eventing.operations.alarms.evaluation import Machine, Rules, Tick
from eventing.operations.alarms.losses import Losses, alarmed
from eventing.operations.alarms.measurements import Looks
from eventing.operations.models import Alarm
from eventing.operations.rules.alarms import LASTING, Output, Stated, Value
from eventing.operations.samples.gateway_view import GatewayView
from eventing.operations.selectors.alarms import alarms_open
from eventing.operations.services.alarms import alarms_apply, alarms_purge
from eventing.rps.rules.watches import Rule
from eventing.rps.selectors.watches import InForce, rules_in_force, rules_stamp
from eventing.sql.threads import in_database
from eventing.store import keys
from eventing.store.cancellation import cancel_and_wait

TURN_S = 1.0
TURN_KEPT_S = 3.0
"""A leader that has said nothing for so long has lost its turn."""

RELOAD_S = 30.0
"""Rules are loaded anew after this also if nothing shows that they changed: an RP's lease may have ended."""

PURGE_S = 600.0
CLOCK_BACK_S = 1.0
"""A clock that was set back by more makes the leader begin anew, as after a takeover; less only delays it as much."""

LEAVE_S = 1.0
log = logging.getLogger(__name__)


class Watcher:
    """Of one gateway process. Begin it by `start`; `close` ends it, before the gateway's connections are closed."""

    def __init__(self, gateway: GatewayView) -> None:
        self._gateway = gateway
        self._task: asyncio.Task[None] | None = None
        self._leads = False
        self._lead: _Lead | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._forever())

    async def close(self) -> None:
        """End, and let another one lead at once."""
        if self._task is None:
            return
        await cancel_and_wait([self._task])
        self._task = None
        if self._leads:
            try:
                async with asyncio.timeout(LEAVE_S):
                    await self._gateway.redis.delete(keys.WATCHING_TURN_KEY)
            except (RedisError, OSError, TimeoutError):
                pass  # it expires

    async def _forever(self) -> None:
        while True:
            await asyncio.sleep(TURN_S)
            try:
                await self.turn()
            except (RedisError, OSError, HeraldError):
                self._lead = None  # what was told, and what was not, SQL knows
            except Exception:
                self._lead = None
                log.exception("Watching failed; the next turn comes in %g s.", TURN_S)

    async def turn(self) -> None:
        """One second's work. Raises redis' errors, HeraldError when SQL is away."""
        self._leads = await self._renew()
        if not self._leads:
            self._lead = None
            return
        now = self._gateway.clock()
        if self._lead is None or now < self._lead.now - CLOCK_BACK_S:
            self._lead = _Lead()
        await in_database(self._lead.turn)(now)

    async def _renew(self) -> bool:
        """Whether it is this gateway's turn to lead."""
        redis, kept_ms = self._gateway.redis, int(TURN_KEPT_S * 1000)
        pipeline = redis.pipeline(transaction=False)
        pipeline.set(keys.WATCHING_TURN_KEY, self._gateway.id, nx=True, px=kept_ms)
        pipeline.get(keys.WATCHING_TURN_KEY)
        _, holder = await pipeline.execute()
        if holder is None or holder.decode() != self._gateway.id:
            return False
        await redis.pexpire(keys.WATCHING_TURN_KEY, kept_ms)
        return True


class _Lead:
    """The time of one gateway as the leader. Synchronous: it runs in a thread of the database's."""

    def __init__(self) -> None:
        self._machine: Machine | None = None
        self._looks = Looks()
        self._losses = Losses()
        self._in_machine: tuple[Rule, ...] = ()
        self._rules: InForce | None = None
        self._stamp: tuple[object, ...] | None = None
        self._loaded_at = self._purged_at = 0.0
        self.now = 0.0  # of its last turn

    def turn(self, now: float) -> None:
        """Load, look, tell."""
        self.now = now
        machine = self._with_rules(now)
        outputs = machine.handle(Tick(), now)
        assert self._rules is not None  # noqa: S101 - just loaded
        if self._rules.domain or self._rules.rps:
            for observed in self._looks.look(self._rules, now):
                outputs += machine.handle(observed, now)
        outputs += self._watch_losses(machine, now)
        if outputs:
            alarms_apply(outputs, now=datetime.fromtimestamp(now, UTC))
        if now - self._purged_at >= PURGE_S:
            self._purged_at = now
            alarms_purge(now=datetime.fromtimestamp(now, UTC))

    def _with_rules(self, now: float) -> Machine:
        """The machine, with the rules as they are now."""
        stamp = rules_stamp()
        if self._machine is not None and stamp == self._stamp and now - self._loaded_at < RELOAD_S:
            return self._machine
        self._rules, self._stamp, self._loaded_at = rules_in_force(), stamp, now
        if self._machine is None:
            open_ = [row for row in alarms_open() if row.rule != LASTING]
            self._losses = Losses(alarmed(open_))
            self._losses.look(now)
            self._machine = Machine(self._all_rules(), [_stated(row) for row in open_], now)
        else:
            outputs = self._machine.handle(Rules(self._all_rules()), now)
            alarms_apply(outputs, now=datetime.fromtimestamp(now, UTC))
        return self._machine

    def _watch_losses(self, machine: Machine, now: float) -> list[Output]:
        """Look for loss, whose rules come and go with what is found."""
        found = self._losses.look(now)
        outputs: list[Output] = []
        if self._losses.rules != self._in_machine:
            outputs += machine.handle(Rules(self._all_rules()), now)
        for observed in found:
            outputs += machine.handle(observed, now)
        self._losses.keep(rule for rule in self._losses.rules if machine.holds(rule.id))
        return outputs

    def _all_rules(self) -> tuple[Rule, ...]:
        """Every rule in force that something may be found at, each once."""
        assert self._rules is not None  # noqa: S101 - just loaded
        self._in_machine = self._losses.rules
        stated = (*self._rules.domain, *(rule for one in self._rules.rps for rule in one.rules))
        return tuple({rule.id: rule for rule in (*stated, *self._losses.rules)}.values())


def _stated(row: Alarm) -> Stated:
    values = tuple(Value(**value) for value in row.values)
    since = row.since.timestamp()
    return Stated(row.rule, row.about, row.rp, row.kind, row.severity, row.detail, values, row.link, since)
