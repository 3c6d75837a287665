"""Load samples: what a gateway did, told once a second where somebody looks, else every ten seconds.

The life of a sample: the hot path counts in TOTALS and FLOWS, a few additions for a batch or a flush -> each second the
sampler says that it is there, learns which administrative RPs are read anywhere (presence.py), and takes differences of
totals -> one round trip appends them to the administrative logs (publishing.py) and leaves the last of each for snapshots.

One gateway leads: it also counts what is the domain's and no gateway's (SQL, Redis), tells of gateways that are lost, and
how far readers and replicas of the RPs that are looked at have come.

Nothing here can fail the gateway: without Redis a turn's samples are dropped. Bounds: WATCHED_MAX RPs a second,
ROUND_RPS_MAX in a round of ten seconds, spread over its turns; an RP that nothing moved at costs nothing.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import psutil
from msgspec.json import encode as json_encode
from redis.exceptions import RedisError

from eventing.audit.refusals import refusals
from eventing.conf import config
from eventing.core.errors import HeraldError
from eventing.core.events.positions import LogState
from eventing.core.ids import ADMIN_SUFFIX, DOMAIN_ADMIN, admin_id
from eventing.core.timestamps import timestamp
from eventing.operations.samples.flow_samples import FlowSamples, Sample
from eventing.operations.samples.gateway_view import GatewayView
from eventing.operations.samples.peer_traffic import PeerTraffic
from eventing.operations.samples.presence import Around, Presence
from eventing.operations.samples.progress_samples import Following
from eventing.operations.samples.publishing import Publisher, Told
from eventing.operations.selectors.holdings import held_in_domain
from eventing.outbox import administrative_events as events
from eventing.outbox.administrative_events import admin_history
from eventing.rps.rules.descriptor import Descriptor
from eventing.sql.threads import in_database
from eventing.store import keys
from eventing.store.bulk_connection import Command
from eventing.store.cancellation import cancel_and_wait
from eventing.telemetry.totals import TOTALS

TURN_S = 0.8
"""Between two looks. Less than a second: what only samples tell, as sessions and rates, is on a screen within one."""

ROUND_S = 10.0
GATEWAYS_A_SECOND = 4
"""Samples of the domain a second, of all gateways together, so that its log holds an hour of them."""

LATE_TURNS = 2
"""Turns for which a late event loop is told to the watcher: it looks once a second and must not miss one of them."""

ROUND_RPS_MAX = 500
"""RPs that nobody looks at, sampled in a round: those that moved most; the others gather on for the next one."""

COUNTS_S = 5.0
LOAD_KEPT_S = 60
"""How long a gateway's last sample is left for snapshots; it makes the next one long before."""

RP_LOAD_KEPT_S = 86_400
LEAVE_S = 2.0
"""For the last words of a gateway that ends; a Redis that takes longer does without, and others notice."""

Refusals = dict[tuple[str, str, str], int]
"""How often each kind was refused: action, reason, what on."""

log = logging.getLogger(__name__)


class Sampler:
    """Of one gateway process. Begin it by `start`; `close` ends it, before the gateway's connections are closed."""

    def __init__(self, gateway: GatewayView) -> None:
        self._gateway = gateway
        self._presence = Presence(gateway.id, gateway.redis)
        self._publisher = Publisher(gateway.id, gateway.reader, gateway.config, self._make_logs)
        self._flows = FlowSamples(gateway.id)
        self._following = Following(gateway.id)
        self._peers = PeerTraffic(gateway.id)
        self._process = psutil.Process()
        self._task: asyncio.Task[None] | None = None
        self._watched: frozenset[str] = frozenset()
        self._due: deque[str] = deque()
        self._late_s = 0.0
        self._late_lately: deque[float] = deque(maxlen=LATE_TURNS)
        self._totals = _totals()
        self._cpu_s = time.process_time()
        self._sampled_at = self._round_at = gateway.clock()
        self._counted_at = 0.0
        self._sampled = False
        self._uncounted: dict[str, Any] | None = None
        self._refused_at = 0.0
        self._refusals: Refusals = {}
        self._refusals_of: dict[str, Refusals] = {}
        self._first = True

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._forever())

    async def close(self) -> None:
        """End, and say so to who looks."""
        if self._task is None:
            return
        await cancel_and_wait([self._task])
        self._task = None
        try:
            async with asyncio.timeout(LEAVE_S):
                await self._presence.leave()
                await self._publisher.publish(self._lost(self._gateway.id, "stopped"), self._gateway.clock())
        except (RedisError, OSError, TimeoutError):
            pass  # the others will notice

    async def _forever(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due = max(due + TURN_S, loop.time() + TURN_S / 2)
            await asyncio.sleep(due - loop.time())
            late_s = max(loop.time() - due, TOTALS.loop_lag_s)
            self._late_s = max(self._late_s, late_s)
            self._late_lately.append(late_s)
            try:
                await self.turn()
            except (RedisError, OSError, HeraldError):
                pass  # a sample is worth nothing later
            except Exception:
                log.exception("Sampling failed; the next turn comes in %g s.", TURN_S)

    async def turn(self) -> None:
        """One second's work. Raises redis' errors, HeraldError when SQL is away."""
        now = self._gateway.clock()
        if self._first:
            await self._gateway.reader.create(
                DOMAIN_ADMIN, admin_history(DOMAIN_ADMIN)
            )  # logs keep the bounds they had
            self._first = False
        around = await self._presence.renew(now, self._reading(), self._late_ms())
        told: list[Told] = [one for gateway in around.lost for one in self._lost(gateway, "silent")]
        told += self._refused(now, around)
        told += await self._of_domain(now, around)
        told += await self._of_rps(now, around)
        if around.leads:
            told += await self._following.look(self._watched_rps(around))
        if around.leads and DOMAIN_ADMIN in around.watched:
            told += await self._peers.look(now)
        self._watched = around.watched
        if self._uncounted is not None:
            # Last, and told once: what an event says of a count in between is newer, and would be overwritten.
            sample, self._uncounted = self._uncounted, None
            sample["counts"] = await in_database(counts)()
        if told:
            await self._publisher.publish(told, now)

    def _reading(self) -> list[str]:
        """The administrative RPs that have readers at this gateway."""
        return [rp for rp, channel in self._gateway.hub.administrative.items() if channel.readers]

    def _late_ms(self) -> float:
        return round(max(self._late_lately, default=0.0) * 1000, 1)

    async def _make_logs(self, rps: Sequence[str]) -> list[str]:
        """Make the logs of these administrative RPs, where their RPs are there: those are known here, as something moved."""
        wanted = [rp if rp == DOMAIN_ADMIN else rp.removesuffix(ADMIN_SUFFIX) for rp in rps]
        known = await asyncio.gather(*map(self._gateway.descriptors.get, wanted), return_exceptions=True)
        there = [rp for rp, one in zip(rps, known, strict=True) if isinstance(one, Descriptor)]
        await self._gateway.reader.create_all([(rp, admin_history(rp)) for rp in there])
        return there

    def _lost(self, gateway: str, reason: str) -> list[Told]:
        data = {"gateway": gateway, "reason": reason}
        return [Told(rp, events.GATEWAY_LOST, data) for rp in sorted({DOMAIN_ADMIN, *self._watched})]

    @staticmethod
    def _watched_rps(around: Around) -> list[str]:
        return sorted(one.removesuffix(ADMIN_SUFFIX) for one in around.watched if one != DOMAIN_ADMIN)

    # The domain

    async def _of_domain(self, now: float, around: Around) -> list[Told]:
        """The gateway's own sample, if one is due."""
        watched = DOMAIN_ADMIN in around.watched
        pause_s = max(TURN_S, around.gateways / GATEWAYS_A_SECOND) if watched else ROUND_S
        begins = watched and DOMAIN_ADMIN not in self._watched
        # A negative difference is of a wall clock that was set back: then it is due.
        if self._sampled and not begins and 0 <= now - self._sampled_at < pause_s - TURN_S / 2:
            return []
        data = self._sample(now)
        if around.leads and (begins or not 0 <= now - self._counted_at < COUNTS_S):
            self._counted_at = now
            self._uncounted = data
        if around.leads:
            data["redis"] = await self._redis()
        self._sampled = True
        row = {name: value for name, value in data.items() if name not in ("counts", "redis")}
        await self._gateway.redis.set(keys.gateway_load_key(self._gateway.id), json_encode(row), ex=LOAD_KEPT_S)
        return [Told(DOMAIN_ADMIN, events.LOAD_SAMPLED, data)]

    def _sample(self, now: float) -> dict[str, Any]:
        """What this process did since the last sample."""
        before, self._totals = self._totals, _totals()
        cpu_s, self._cpu_s = self._cpu_s, time.process_time()
        late_s, self._late_s = self._late_s, 0.0
        interval_s, self._sampled_at = now - self._sampled_at, now
        return {
            "gateway": self._gateway.id,
            "at": timestamp(datetime.fromtimestamp(now, UTC)),
            "interval_s": round(interval_s if interval_s > 0 else TURN_S, 3),
            **{name: value - before[name] for name, value in self._totals.items()},
            "sessions": len(self._gateway.hub.sessions),
            "readings": TOTALS.readings,
            "cpu_s": round(self._cpu_s - cpu_s, 4),
            "rss_bytes": self._process.memory_info().rss,
            "lag_ms": round(late_s * 1000, 1),
            "hot": self._flows.hot(now),
        }

    async def _redis(self) -> dict[str, int]:
        found = await self._gateway.redis.info()
        return {"used_bytes": int(found["used_memory"]), "ops_s": int(found["instantaneous_ops_per_sec"])}

    # The RPs

    async def _of_rps(self, now: float, around: Around) -> list[Told]:
        """Samples of the RPs that are looked at, and in a round of those that moved."""
        begun = around.watched - self._watched
        samples = [
            sample
            for rp in self._watched_rps(around)
            if (sample := self._flows.watched(rp, now, begins=admin_id(rp) in begun)) is not None
        ]
        self._flows.unwatch({one.removesuffix(ADMIN_SUFFIX) for one in self._watched - around.watched})
        if not 0 <= now - self._round_at < ROUND_S - TURN_S / 2:
            self._round_at = now
            self._due.extend(self._flows.round(now, ROUND_RPS_MAX - len(self._due)))
        for _ in range(min(len(self._due), -(-ROUND_RPS_MAX // int(ROUND_S / TURN_S)))):
            sample = self._flows.take(self._due.popleft(), now)
            if sample is not None:
                samples.append(sample)
        return await self._told(samples) if samples else []

    async def _told(self, samples: list[Sample]) -> list[Told]:
        """The events of samples, each with its log's extent; leaves the rows for snapshots."""
        reader = self._gateway.reader
        logs = await reader.states([one.rp for one in samples])
        told: list[Told] = []
        rows: list[Command] = []
        for sample, state in zip(samples, logs, strict=True):
            at = admin_id(sample.rp)
            extent: Mapping[str, Any] = {"history": events.log_data(state)} if isinstance(state, LogState) else {}
            told.append(Told(at, events.LOAD_SAMPLED, {**sample.row, **extent}))
            if sample.sessions is not None:
                told.append(Told(at, events.SESSIONS_CHANGED, sample.sessions))
            key = keys.rp_load_key(sample.rp)
            rows += [("HSET", key, self._gateway.id, json_encode(sample.row)), ("EXPIRE", key, RP_LOAD_KEPT_S)]
        await reader.ask(rows)
        return told

    # Refusals

    def _refused(self, now: float, around: Around) -> list[Told]:
        """What was refused here: one event on the domain's, one on each RP's that could be told; where nobody looks, in
        rounds, so that who is refused again and again does not crowd out what else the logs remember."""
        self._take_refusals()
        rounds = not 0 <= now - self._refused_at < ROUND_S - TURN_S / 2
        if rounds and (self._refusals or self._refusals_of):  # the first after a quiet time is told at once
            self._refused_at = now
        told = []
        if self._refusals and (rounds or DOMAIN_ADMIN in around.watched):
            told.append(Told(DOMAIN_ADMIN, events.OPERATIONS_REFUSED, refused_data(self._gateway.id, self._refusals)))
            self._refusals = {}
        due = {rp: some for rp, some in self._refusals_of.items() if rounds or admin_id(rp) in around.watched}
        for rp, some in heapq.nlargest(REFUSED_RPS_MAX, due.items(), key=lambda pair: sum(pair[1].values())):
            told.append(Told(admin_id(rp), events.OPERATIONS_REFUSED, refused_data(self._gateway.id, some)))
        for rp in due:
            del self._refusals_of[rp]
        return told

    def _take_refusals(self) -> None:
        """Gather what was counted since the last turn; its kinds are bounded where they are counted."""
        for key, count in refusals().counted().items():
            self._refusals[key] = self._refusals.get(key, 0) + count
            descriptor = self._gateway.descriptors.peek(key[2]) if key[2] else None
            if descriptor is not None and not descriptor.id.endswith(ADMIN_SUFFIX):
                of_it = self._refusals_of.setdefault(descriptor.id, {})
                of_it[key] = of_it.get(key, 0) + count


REFUSED_RPS_MAX = 20
"""RPs that are told of refusals in a turn: those with most of them."""

REFUSED_KINDS_MAX = 20


def refused_data(gateway: str, counted: Refusals) -> dict[str, Any]:
    """The data of an `operations.refused`: the most frequent kinds, and how many there were in all."""
    most = heapq.nlargest(REFUSED_KINDS_MAX, counted.items(), key=lambda pair: (pair[1], pair[0]))
    kinds = [{"action": action, "reason": reason, "on": on, "count": count} for (action, reason, on), count in most]
    return {"gateway": gateway, "count": sum(counted.values()), "kinds": kinds}


def counts() -> dict[str, int]:
    """What the domain holds, from SQL."""
    held = held_in_domain()
    return {
        "rps": held.rps,
        "subscriptions": held.subscriptions,
        "reserved_bytes": held.history_bytes,
        "quota_bytes": config().history_quota_bytes,
    }


def _totals() -> dict[str, int]:
    """Running totals of the process, by the names that a sample has for their differences."""
    return {
        "publishes": TOTALS.publishes,
        "events_in": TOTALS.events_in,
        "bytes_in": TOTALS.bytes_in,
        "deliveries": TOTALS.deliveries,
        "bytes_out": TOTALS.bytes_out,
        "refused": sum(TOTALS.refused.values()),
        "accepts": TOTALS.sessions_opened,
        "closes": TOTALS.sessions_closed,
    }
