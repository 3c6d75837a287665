"""Audiences at a gateway: who of those that must be reading does, here and at the other gateways.

An RP that declares an audience has a tally in each gateway that has readers of it: counted at each join and leave, told to
the others through Redis then and once a second (eventing/store/audience.py). A publish there looks at the tally and at what
the others said last; should that not suffice it is asked for anew before the publish is refused. An RP without audience
costs one look at an empty tuple.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import redis.asyncio
from redis.exceptions import RedisError

from eventing.core.errors import Unavailable
from eventing.gateway.delivery.hub import Hub
from eventing.gateway.delivery.tally import Tally
from eventing.rps.rules.audience import Missing, audience_missing
from eventing.rps.rules.descriptor import Descriptor
from eventing.store import audience as said
from eventing.store.audience import Present

RENEW_S = 1.0
FRESH_S = 0.05  # what the others said is asked for anew after this, before a publish is refused
USED_S = 30.0  # since the last publish: for so long is it asked for each second
KNOWN_MAX = 10_000  # RPs with an audience that were published to lately, of a gateway
LEAVE_S = 1.0
log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    """What the gateways said of an RP when they were asked last, and when that was; `used`: the last publish there."""

    said: dict[str, Present]
    at: float
    used: float


class Audiences:
    """Of one gateway.

    Args:
        gateway: its id.
        clock: Unix seconds.
    """

    def __init__(self, gateway: str, client: redis.asyncio.Redis, hub: Hub, clock: Callable[[], float]) -> None:
        self._gateway = gateway
        self._client = client
        self._hub = hub
        self._clock = clock
        self._tallies: dict[str, Tally] = {}
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._dirty: set[str] = set()
        self._telling: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None

    # Readers

    def attach(self, descriptor: Descriptor) -> None:
        """Count the readers of an RP that has readers here from now on, as its descriptor says; or no longer."""
        rp, tally = descriptor.id, self._tallies.get(descriptor.id)
        channel = self._hub.known(rp)
        if not descriptor.audience:
            if tally is not None:
                self._detach(rp)
            return
        if channel is None or (tally is not None and tally.needs == descriptor.audience and channel.audience is tally):
            return
        tally = self._tallies[rp] = Tally(descriptor.audience, lambda: self._tell_soon(rp))
        channel.audience = tally
        for follower in self._hub.readings(rp):
            tally.joined(follower.session)
        self._tell_soon(rp)
        self._renew_from_now_on()

    def _detach(self, rp: str) -> None:
        """What was said of it expires; the tally goes, and the channel's with it."""
        del self._tallies[rp]
        channel = self._hub.known(rp)
        if channel is not None:
            channel.audience = None

    # Publishers

    def missing(self, descriptor: Descriptor) -> tuple[Missing, ...] | None:
        """The audiences that lack readers and refuse publishes meanwhile; None while that is not known."""
        tally = self._tallies.get(descriptor.id)
        known = self._known.get(descriptor.id)
        elsewhere = said.total(known.said, self._clock(), without=self._gateway) if known is not None else {}
        found = []
        for need in descriptor.audience:
            if need.refuses:
                count = (tally.counts.get(need.label, 0) if tally is not None else 0) + elsewhere.get(need.label, 0)
                if count < need.at_least:
                    found.append(Missing(need.label, need.at_least, count))
        return None if found and known is None else tuple(found)

    def require(self, descriptor: Descriptor) -> None:
        """Raises AudienceMissing while an audience lacks readers; Unavailable while it is not known (see `look`)."""
        missing = self.missing(descriptor)
        if missing is None:
            raise Unavailable("Who reads here is not known yet. Try again in a moment.", retry_after_s=1)
        if missing:
            raise audience_missing(descriptor.id, missing)

    async def look(self, descriptor: Descriptor) -> None:
        """Before `require`, where that may wait: ask the others, should what is known not suffice."""
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
            return  # the log does not answer either: the publish says so
        now = self._clock()
        self._known[rp] = _Known(answer, now, now)
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        self._renew_from_now_on()

    # Telling, and asking again

    def _tell_soon(self, rp: str) -> None:
        self._dirty.add(rp)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        while self._dirty:
            rps, self._dirty = self._dirty, set()
            counts = {rp: tally.counts for rp in rps if (tally := self._tallies.get(rp)) is not None}
            try:
                await said.tell(self._client, self._gateway, counts, self._clock())
            except (RedisError, OSError):
                return  # said again within a second

    def _renew_from_now_on(self) -> None:
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.get_running_loop().create_task(self._renew_forever())

    async def _renew_forever(self) -> None:
        """Each second, while there is anything to renew."""
        while self._tallies or self._known:
            await asyncio.sleep(RENEW_S)
            try:
                await self._renew()
            except (RedisError, OSError):
                pass  # what was said expires, and publishes are refused until Redis is back
            except Exception:
                log.exception("Renewing what is known of audiences failed; trying again.")

    async def _renew(self) -> None:
        now = self._clock()
        for rp in [rp for rp, known in self._known.items() if now - known.used > USED_S]:
            del self._known[rp]
        for rp in [rp for rp in self._tallies if self._hub.known(rp) is None]:
            self._detach(rp)  # nobody has read it for a while
        counts = {rp: tally.counts for rp, tally in self._tallies.items() if any(tally.counts.values())}
        if counts:
            await said.tell(self._client, self._gateway, counts, now)
        asked = list(self._known)
        if asked:
            for rp, answer in zip(asked, await said.ask(self._client, asked), strict=True):
                known = self._known.get(rp)
                if known is not None:
                    known.said, known.at = answer, now

    async def close(self) -> None:
        """End; the sessions are closed, so the others need not wait for what was said to expire."""
        for task in (self._telling, self._renewing, *self._asking.values()):
            if task is not None:
                task.cancel()
        if self._tallies:
            try:
                async with asyncio.timeout(LEAVE_S):
                    await said.tell(self._client, self._gateway, {rp: {} for rp in self._tallies}, self._clock())
            except (RedisError, OSError, TimeoutError):
                pass
