"""Use of rendezvous points and durable subscriptions at one gateway, noted so that it renews their leases.

A note costs a comparison: a descriptor states from when use renews its lease, which is rarely now. Due renewals are put
into a set, and the sweep has all of them renewed together (subscriptions/services/lease_use.py). Open readings are use
for as long as they last; the sweep finds them. A stopping gateway submits its notes first; notes of a killed one are
made again by the next use, for which at least three quarters of the lease remain. The same sweep writes when each intake was last used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from eventing.core.errors import ApplicationError
from eventing.gateway.admission.access import Descriptors
from eventing.gateway.delivery.hub import Hub
from eventing.gateway.delivery.session import Follower
from eventing.intakes.selectors.intakes import IntakeState
from eventing.intakes.services.lease_use import intakes_use, intakes_used
from eventing.log.appender import Destination
from eventing.rps.rules.descriptor import Descriptor
from eventing.sql.threads import in_database
from eventing.store.cancellation import cancel_and_wait
from eventing.store.errors import RedisError
from eventing.subscriptions.selectors.subscriptions import SubscriptionState
from eventing.subscriptions.services.lease_use import leases_use

SWEEP_S = 2.0
READINGS_S = 10.0  # between two sweeps of the open readings; the shortest lease that use renews has 45 s left
CLOSE_S = 1.0  # for the last notes; those that take longer are made again by the next use
RPS_AT_ONCE = 1000  # examined between two turns of the loop; ~0.2 ms
log = logging.getLogger(__name__)


class LeaseUses:
    """Notes of use of one gateway. All calls are made on the event loop.

    Args:
        clock: Unix seconds.
    """

    def __init__(self, hub: Hub, descriptors: Descriptors, clock: Callable[[], float]) -> None:
        self._hub = hub
        self._descriptors = descriptors
        self._clock = clock
        self._now = clock()  # as of the last sweep: reading the clock is too expensive for each publish
        self._rps: set[str] = set()
        self._subscriptions: set[str] = set()
        self._intakes: set[str] = set()
        self._intakes_used: dict[tuple[str, str], int] = {}  # RP and id, and Unix seconds of the last use
        self._read: dict[str, float] = {}  # RPs with readers, and the time from which use renews their lease
        self._attached: dict[
            Follower, tuple[str, float]
        ] = {}  # subscription, and the time from which use renews its lease
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to sweep."""
        self._task = asyncio.get_running_loop().create_task(self._sweep_forever())

    async def close(self) -> None:
        """Have the noted leases renewed, and stop."""
        if self._task is not None:
            await cancel_and_wait([self._task])
            self._task = None
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await self._renew()

    def rp(self, descriptor: Destination) -> None:
        """Note a permitted publish or read at an RP."""
        if descriptor.renewed_from <= self._now:
            self._rps.add(descriptor.id)

    def reading(self, descriptor: Descriptor) -> None:
        """Note that an RP is read from now on, as long as it has readers; or that its descriptor has changed."""
        self.rp(descriptor)
        self._read[descriptor.id] = descriptor.renewed_from

    def subscription(self, view: SubscriptionState) -> None:
        """Note that a durable subscription was read or acknowledged, which is use of its RP too."""
        if view.renewed_from <= self._now:
            self._subscriptions.add(view.id)
        descriptor = self._descriptors.peek(view.rp)
        if descriptor is not None:
            self.rp(descriptor)

    def intake(self, found: IntakeState) -> None:
        """Note that an intake published a webhook."""
        self._intakes_used[found.rp, found.id] = int(self._clock())
        if found.renewed_from <= self._now:
            self._intakes.add(found.id)

    def attached(self, follower: Follower, view: SubscriptionState) -> None:
        """Note that this follower reads a durable subscription from now on."""
        self.subscription(view)
        self._attached[follower] = (view.id, view.renewed_from)

    async def _sweep_forever(self) -> None:
        checked = self._clock()
        while True:
            await asyncio.sleep(SWEEP_S)
            self._now = self._clock()
            try:
                if not 0 <= self._now - checked < READINGS_S:
                    checked = self._now
                    await self._check_readings()
                await self._renew()
            except Exception:
                log.exception("Leases in use could not be renewed; trying again.")

    async def _check_readings(self) -> None:
        """Note the use of RPs and subscriptions with open readings."""
        for checked, (rp, renewed_from) in enumerate(list(self._read.items()), 1):
            if not self._hub.is_read(rp):
                self._read.pop(rp, None)
            elif renewed_from <= self._now:
                self._rps.add(rp)
            if checked % RPS_AT_ONCE == 0:
                await asyncio.sleep(0)
        for follower, (subscription, renewed_from) in list(self._attached.items()):
            if follower.session.followers.get(follower.channel.rp) is not follower:
                del self._attached[follower]
            elif renewed_from <= self._now:
                self._subscriptions.add(subscription)

    async def _renew(self) -> None:
        """Have the noted leases renewed. Notes stay when SQL or Redis does not answer."""
        if self._intakes_used:
            await self._note_intakes()
        if self._intakes:
            await self._renew_intakes()
        if not self._rps and not self._subscriptions:
            return
        rps, self._rps = self._rps, set()
        subscriptions, self._subscriptions = self._subscriptions, set()
        try:
            found = await in_database(leases_use)(rps=rps, subscriptions=subscriptions)
        except (ApplicationError, RedisError, OSError) as error:
            log.warning("Leases in use are not renewed yet: %s", error)
            self._rps |= rps
            self._subscriptions |= subscriptions
            return
        self._read.update({rp: found[rp] for rp in rps & self._read.keys() if rp in found})
        for follower, (subscription, _) in self._attached.items():
            if subscription in found:
                self._attached[follower] = (subscription, found[subscription])

    async def _note_intakes(self) -> None:
        used, self._intakes_used = self._intakes_used, {}
        try:
            await in_database(intakes_used)(used)
        except (RedisError, OSError) as error:
            log.warning("Uses of intakes are not noted yet: %s", error)
            self._intakes_used = {**used, **self._intakes_used}

    async def _renew_intakes(self) -> None:
        intakes, self._intakes = self._intakes, set()
        try:
            await in_database(intakes_use)(intakes)
        except (ApplicationError, RedisError, OSError) as error:
            log.warning("Leases of intakes in use are not renewed yet: %s", error)
            self._intakes |= intakes
