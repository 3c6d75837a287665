"""Audiences at a gateway: connected readers of each required audience, here and at the other gateways.

An RP that declares an audience has a tally in each gateway with readers of it: updated at each join and leave,
published to the other gateways through Redis then and once a second (eventing/store/audience.py). A publish there
checks the tally and the other gateways' last counts; if these do not suffice, they are read again before the publish is
refused. An RP without audience costs the check of an empty tuple.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from eventing.core.errors import Unavailable
from eventing.gateway.delivery.hub import Hub
from eventing.gateway.delivery.tally import AudienceTally
from eventing.rps.rules.audience import MissingAudience, audience_missing
from eventing.rps.rules.descriptor import Descriptor
from eventing.store import audience as said
from eventing.store.audience import Present
from eventing.store.connection import AsyncRedis
from eventing.store.errors import RedisError

RENEW_S = 1.0
FRESH_S = 0.05  # age of other gateways' counts above which they are read again before a publish is refused
USED_S = 30.0  # time since the last publish for which the counts are read each second
KNOWN_MAX = 10_000  # RPs with an audience that were published to lately, of a gateway
LEAVE_S = 1.0
log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    """Last counts of the gateways for an RP, and the time of reading; `used`: the last publish there."""

    said: dict[str, Present]
    at: float
    used: float


class Audiences:
    """Audiences of one gateway."""

    def __init__(self, gateway: str, client: AsyncRedis, hub: Hub, clock: Callable[[], float]) -> None:
        self._gateway = gateway
        self._client = client
        self._hub = hub
        self._clock = clock
        self._tallies: dict[str, AudienceTally] = {}
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._dirty: set[str] = set()
        self._reporting: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None

    # Readers

    def attach(self, descriptor: Descriptor) -> None:
        """Start counting the readers of an RP with readers here, as its descriptor requires; or stop."""
        rp, tally = descriptor.id, self._tallies.get(descriptor.id)
        channel = self._hub.known(rp)
        if not descriptor.audience:
            if tally is not None:
                self._detach(rp)
            return
        if channel is None or (tally is not None and tally.needs == descriptor.audience and channel.audience is tally):
            return
        tally = self._tallies[rp] = AudienceTally(descriptor.audience, lambda: self._report_soon(rp))
        channel.audience = tally
        for follower in self._hub.readings(rp):
            tally.joined(follower.session)
        self._report_soon(rp)
        self._renew_from_now_on()

    def _detach(self, rp: str) -> None:
        """Remove the tally and the channel's reference; the published counts expire."""
        del self._tallies[rp]
        channel = self._hub.known(rp)
        if channel is not None:
            channel.audience = None

    # Publishers

    def missing(self, descriptor: Descriptor) -> tuple[MissingAudience, ...] | None:
        """Return the incomplete audiences that refuse publishes; None while unknown."""
        tally = self._tallies.get(descriptor.id)
        known = self._known.get(descriptor.id)
        elsewhere = said.total(known.said, self._clock(), without=self._gateway) if known is not None else {}
        found = []
        for need in descriptor.audience:
            if need.refuses:
                count = (tally.counts.get(need.label, 0) if tally is not None else 0) + elsewhere.get(need.label, 0)
                if count < need.at_least:
                    found.append(MissingAudience(need.label, need.at_least, count))
        return None if found and known is None else tuple(found)

    def require(self, descriptor: Descriptor) -> None:
        """Raise AudienceMissing while an audience lacks readers; Unavailable while that is unknown (see `check`)."""
        missing = self.missing(descriptor)
        if missing is None:
            raise Unavailable("The readers of this audience are not known yet. Try again in a moment.", retry_after_s=1)
        if missing:
            raise audience_missing(descriptor.id, missing)

    async def check(self, descriptor: Descriptor) -> None:
        """Read the other gateways' counts if the known ones do not suffice; to be awaited before `require`, where
        waiting is possible."""
        known = self._known.get(descriptor.id)
        if known is not None:
            known.used = self._clock()
            self._known.move_to_end(descriptor.id)
        if self.missing(descriptor) == ():
            return
        if known is None or self._clock() - known.at > FRESH_S:
            asking = self._asking.get(descriptor.id)
            if asking is None:
                asking = self._asking[descriptor.id] = asyncio.create_task(self._ask_one(descriptor.id))
                asking.add_done_callback(lambda _: self._asking.pop(descriptor.id, None))
            await asyncio.shield(asking)

    async def _ask_one(self, rp: str) -> None:
        try:
            (answer,) = await said.ask(self._client, [rp])
        except (RedisError, OSError):
            return  # the log does not answer either: the publish reports it
        now = self._clock()
        self._known[rp] = _Known(answer, now, now)
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        self._renew_from_now_on()

    # Publishing counts, and reading them again

    def _report_soon(self, rp: str) -> None:
        self._dirty.add(rp)
        if self._reporting is None or self._reporting.done():
            self._reporting = asyncio.get_running_loop().create_task(self._report())

    async def _report(self) -> None:
        while self._dirty:
            rps, self._dirty = self._dirty, set()
            counts = {rp: tally.counts for rp in rps if (tally := self._tallies.get(rp)) is not None}
            try:
                await said.presence_set(self._client, self._gateway, counts, self._clock())
            except (RedisError, OSError):
                return  # published again within a second

    def _renew_from_now_on(self) -> None:
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.get_running_loop().create_task(self._renew_forever())

    async def _renew_forever(self) -> None:
        """Renew the counts each second, while there are any."""
        while self._tallies or self._known:
            await asyncio.sleep(RENEW_S)
            try:
                await self._renew()
            except (RedisError, OSError):
                pass  # the counts expire, and publishes are refused until Redis is back
            except Exception:
                log.exception("Renewing the counts of audiences failed; trying again.")

    async def _renew(self) -> None:
        now = self._clock()
        for rp in [rp for rp, known in self._known.items() if now - known.used > USED_S]:
            del self._known[rp]
        for rp in [rp for rp in self._tallies if self._hub.known(rp) is None]:
            self._detach(rp)  # without readers for a while
        counts = {rp: tally.counts for rp, tally in self._tallies.items() if any(tally.counts.values())}
        if counts:
            await said.presence_set(self._client, self._gateway, counts, now)
        asked = list(self._known)
        if asked:
            for rp, answer in zip(asked, await said.ask(self._client, asked), strict=True):
                known = self._known.get(rp)
                if known is not None:
                    known.said, known.at = answer, now

    async def close(self) -> None:
        """Stop; the sessions are closed, so the counts are removed instead of left to expire."""
        for task in (self._reporting, self._renewing, *self._asking.values()):
            if task is not None:
                task.cancel()
        if self._tallies:
            try:
                async with asyncio.timeout(LEAVE_S):
                    await said.presence_set(
                        self._client, self._gateway, {rp: {} for rp in self._tallies}, self._clock()
                    )
            except (RedisError, OSError, TimeoutError):
                pass
