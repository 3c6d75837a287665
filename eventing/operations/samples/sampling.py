"""Load samples: a gateway's activity, published once a second for watched RPs and while its sessions grow, else every ten seconds.

The life of a sample: the hot path counts in Totals and Flows, a few additions for a batch or a flush -> each second the
sampler renews the gateway's presence, reads which administrative RPs have readers anywhere (presence.py), and computes
differences of totals -> one round trip appends them to the administrative logs (publishing.py) and keeps the last of
each for snapshots.

One gateway leads: it also samples the domain as a whole (SQL, Redis), reports lost gateways, and the progress of
readers and replicas of the watched RPs.

No failure here stops the gateway: without Redis a turn's samples are dropped. Bounds: WATCHED_MAX RPs a second,
ROUND_RPS_MAX in a round of ten seconds, spread over its turns; an RP without activity costs nothing.
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

from eventing.audit.refusals import refusals
from eventing.conf import config
from eventing.core.errors import ApplicationError
from eventing.core.events.positions import LogState
from eventing.core.ids import ADMIN_SUFFIX, DOMAIN_ADMIN, DOMAIN_ADMINS, OVERLAY_ADMIN, admin_id
from eventing.core.timestamps import timestamp
from eventing.operations.samples.flow_samples import FlowSamples, Sample
from eventing.operations.samples.gateway_view import GatewayView
from eventing.operations.samples.progress_samples import ProgressSamples
from eventing.operations.samples.publishing import Sampled, SamplePublisher
from eventing.operations.selectors.holdings import held_in_domain
from eventing.outbox import administrative_events as events
from eventing.outbox.administrative_events import admin_history
from eventing.peering.traffic_samples import PeerTraffic
from eventing.rps.rules.descriptor import Descriptor
from eventing.sql.threads import in_database
from eventing.store import load
from eventing.store.cancellation import cancel_and_wait
from eventing.store.errors import RedisError
from eventing.store.presence import Around, GatewayPresence
from eventing.telemetry.totals import totals

PERIOD_S = 0.8
"""Seconds between two turns. Less than one, so that sessions and rates, which only samples report, reach a screen
within a second.
"""

ROUND_S = 10.0
GATEWAYS_A_SECOND = 4
"""Samples a second of all gateways of the domain together, so that its log holds an hour of them."""

LATE_TURNS = 2
"""Turns for which a late event loop is reported to the watcher, which reads once a second and must not miss one."""

# bound: unwatched RPs sampled in 10 s; the most active RPs are sampled; the counts of the others accumulate
ROUND_RPS_MAX = 500
"""Unwatched RPs sampled in a round: those with most activity; the counts of the others accumulate."""

GREW = 1.1
GREW_MIN = 20
"""A gateway whose sessions, or those of them that were redirected and are still here, grow by this factor and this many since its sample
takes the next one at once: a crowd must not be ten seconds old when the planner notices it, and a step of balancing counts who is leaving."""

COUNTS_S = 5.0
LEAVE_S = 2.0
"""Seconds for the last message of a gateway that ends; if Redis takes longer, other gateways notice the end."""

Refusals = dict[tuple[str, str, str], int]
"""Counts of refusals by action, reason and object."""

log = logging.getLogger(__name__)


class LoadSampler:
    """The sampler of one gateway process. `start` begins it; `close` ends it, before the gateway's connections are
    closed.
    """

    def __init__(self, gateway: GatewayView) -> None:
        self._gateway = gateway
        self._presence = GatewayPresence(gateway.id, gateway.redis)
        self._publisher = SamplePublisher(gateway.id, gateway.reader, gateway.config, self._make_logs)
        self._flows = FlowSamples(gateway.id)
        self._progress = ProgressSamples(gateway.id)
        self._peers = PeerTraffic(gateway.id)
        self._process = psutil.Process()
        self._task: asyncio.Task[None] | None = None
        self._watched: frozenset[str] = frozenset()
        self._due: deque[str] = deque()
        self._late_s = 0.0
        self._late_lately: deque[float] = deque(maxlen=LATE_TURNS)
        self._totals = _totals()
        self._cpu_s = time.process_time()
        self._sessions = self._leaving = 0  # in the last sample
        self._sampled_at = self._round_at = gateway.clock()
        self._counted_at = 0.0
        self._sampled = False
        self._uncounted: dict[str, Any] | None = None
        self._refused_at = 0.0
        self._refusals: Refusals = {}
        self._refusals_of: dict[str, Refusals] = {}
        self._first = True

    def start(self) -> None:
        """Start the sampler's task."""
        self._task = asyncio.get_running_loop().create_task(self._forever())

    async def close(self) -> None:
        """Stop, and publish the end of the gateway."""
        if self._task is None:
            return
        await cancel_and_wait([self._task])
        self._task = None
        try:
            async with asyncio.timeout(LEAVE_S):
                await self._presence.leave()
                await self._publisher.publish(self._lost(self._gateway.id, "stopped"), self._gateway.clock())
        except (RedisError, OSError, TimeoutError):
            pass  # other gateways notice

    async def _forever(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due = max(due + PERIOD_S, loop.time() + PERIOD_S / 2)
            late_s = max(await self._gateway.pause(due - loop.time()), totals().loop_lag_s)
            self._late_s = max(self._late_s, late_s)
            self._late_lately.append(late_s)
            try:
                await self.run_once()
            except (RedisError, OSError, ApplicationError):
                pass  # an old sample is worthless
            except Exception:
                log.exception("Sampling failed; the next turn is in %g s.", PERIOD_S)

    async def run_once(self) -> None:
        """Do one second's work. Raises redis.RedisError, ApplicationError when SQL does not answer."""
        now = self._gateway.clock()
        if self._first:
            await self._gateway.reader.create(
                DOMAIN_ADMIN, admin_history(DOMAIN_ADMIN)
            )  # logs keep the bounds they had
            self._first = False
        around = await self._presence.renew(now, self._reading(), self._late_ms())
        self._gateway.gateways_counted(around.gateways)
        samples_due: list[Sampled] = [one for gateway in around.lost for one in self._lost(gateway, "silent")]
        samples_due += self._refused(now, around)
        samples_due += await self._of_domain(now, around)
        samples_due += await self._of_rps(now, around)
        if around.leads:
            samples_due += await self._progress.sample(self._watched_rps(around))
        if around.leads and DOMAIN_ADMIN in around.watched:
            traffic = await self._peers.sample(now)
            if traffic is not None:
                samples_due.append(Sampled(DOMAIN_ADMIN, events.PEERS_TRAFFIC, traffic))
        self._watched = around.watched
        if self._uncounted is not None:
            # Last and once: the count in an event in between is newer, and would be overwritten.
            sample, self._uncounted = self._uncounted, None
            sample["counts"] = await in_database(counts)()
        if samples_due:
            await self._publisher.publish(samples_due, now)

    def _reading(self) -> list[str]:
        """Return the administrative RPs with readers at this gateway."""
        return [rp for rp, channel in self._gateway.hub.administrative.items() if channel.readers]

    def _late_ms(self) -> float:
        return round(max(self._late_lately, default=0.0) * 1000, 1)

    async def _make_logs(self, rps: Sequence[str]) -> list[str]:
        """Make the logs of those administrative RPs whose RPs exist: their descriptors are in memory, as they had
        activity.
        """
        wanted = [rp if rp in DOMAIN_ADMINS else rp.removesuffix(ADMIN_SUFFIX) for rp in rps]
        known = await asyncio.gather(*map(self._gateway.descriptors.get, wanted), return_exceptions=True)
        there = [rp for rp, one in zip(rps, known, strict=True) if isinstance(one, Descriptor)]
        await self._gateway.reader.create_all([(rp, admin_history(rp)) for rp in there])
        return there

    def _lost(self, gateway: str, reason: str) -> list[Sampled]:
        data = {"gateway": gateway, "reason": reason}
        return [
            Sampled(rp, events.GATEWAY_LOST, data) for rp in sorted({DOMAIN_ADMIN, *self._watched} - {OVERLAY_ADMIN})
        ]

    @staticmethod
    def _watched_rps(around: Around) -> list[str]:
        return sorted(one.removesuffix(ADMIN_SUFFIX) for one in around.watched if one not in DOMAIN_ADMINS)

    # The domain

    async def _of_domain(self, now: float, around: Around) -> list[Sampled]:
        """Return the gateway's own sample, if one is due."""
        watched = DOMAIN_ADMIN in around.watched
        pause_s = max(PERIOD_S, around.gateways / GATEWAYS_A_SECOND) if watched else ROUND_S
        begins = watched and DOMAIN_ADMIN not in self._watched
        # The difference is negative if the wall clock was set back: the sample is due then.
        early = self._sampled and not begins and 0 <= now - self._sampled_at < pause_s - PERIOD_S / 2
        if early and not self._grew():
            return []
        data = self._sample(now)
        if around.leads and (begins or not 0 <= now - self._counted_at < COUNTS_S):
            self._counted_at = now
            self._uncounted = data
        if around.leads:
            data["redis"] = await load.server_load_now(self._gateway.redis)
        self._sampled = True
        row = {name: value for name, value in data.items() if name not in ("counts", "redis")}
        await load.gateway_load_write(self._gateway.redis, self._gateway.id, json_encode(row))
        return [Sampled(DOMAIN_ADMIN, events.LOAD_SAMPLED, data)]

    def _grew(self) -> bool:
        """Return whether the sessions, or those that are leaving, have grown clearly since the last sample."""
        leaving = sum(self._gateway.reader_moves.leaving().values())
        counts = (len(self._gateway.hub.sessions), self._sessions), (leaving, self._leaving)
        return any(now >= max(GREW * before, before + GREW_MIN) for now, before in counts)

    def _sample(self, now: float) -> dict[str, Any]:
        """Return this process's activity since the last sample."""
        before, self._totals = self._totals, _totals()
        cpu_s, self._cpu_s = self._cpu_s, time.process_time()
        late_s, self._late_s = self._late_s, 0.0
        interval_s, self._sampled_at = now - self._sampled_at, now
        self._sessions = len(self._gateway.hub.sessions)
        leaving = self._gateway.reader_moves.leaving()
        self._leaving = sum(leaving.values())
        return {
            "gateway": self._gateway.id,
            "at": timestamp(datetime.fromtimestamp(now, UTC)),
            "interval_s": round(interval_s if interval_s > 0 else PERIOD_S, 3),
            **{name: value - before[name] for name, value in self._totals.items()},
            "sessions": self._sessions,
            "readings": totals().readings,
            "cpu_s": round(self._cpu_s - cpu_s, 4),
            "rss_bytes": self._process.memory_info().rss,
            "lag_ms": round(late_s * 1000, 1),
            "hot": self._flows.hot(now, leaving),
        }

    # The RPs

    async def _of_rps(self, now: float, around: Around) -> list[Sampled]:
        """Return samples of the watched RPs, and in a round of those with activity."""
        begun = around.watched - self._watched
        samples = [
            sample
            for rp in self._watched_rps(around)
            if (sample := self._flows.watched(rp, now, begins=admin_id(rp) in begun)) is not None
        ]
        self._flows.unwatch({one.removesuffix(ADMIN_SUFFIX) for one in self._watched - around.watched})
        if not 0 <= now - self._round_at < ROUND_S - PERIOD_S / 2:
            self._round_at = now
            self._due.extend(self._flows.round(now, ROUND_RPS_MAX - len(self._due)))
        for _ in range(min(len(self._due), -(-ROUND_RPS_MAX // int(ROUND_S / PERIOD_S)))):
            sample = self._flows.take(self._due.popleft(), now)
            if sample is not None:
                samples.append(sample)
        return await self._samples(samples) if samples else []

    async def _samples(self, samples: list[Sample]) -> list[Sampled]:
        """Return the events of samples, each with its log's extent; keep the rows for snapshots."""
        reader = self._gateway.reader
        logs = await reader.states([one.rp for one in samples])
        samples_due: list[Sampled] = []
        rows: dict[str, bytes] = {}
        for sample, state in zip(samples, logs, strict=True):
            at = admin_id(sample.rp)
            extent: Mapping[str, Any] = {"history": events.log_data(state)} if isinstance(state, LogState) else {}
            samples_due.append(Sampled(at, events.LOAD_SAMPLED, {**sample.row, **extent}))
            if sample.sessions is not None:
                samples_due.append(Sampled(at, events.SESSIONS_CHANGED, sample.sessions))
            rows[sample.rp] = json_encode(sample.row)
        await reader.ask(load.rp_load_commands(self._gateway.id, rows))
        return samples_due

    # Refusals

    def _refused(self, now: float, around: Around) -> list[Sampled]:
        """Return the refusals: one event for the domain, one for each RP that was recognised; without readers, in
        rounds, so that repeated refusals do not displace other events from the logs.
        """
        self._take_refusals()
        rounds = not 0 <= now - self._refused_at < ROUND_S - PERIOD_S / 2
        if rounds and (self._refusals or self._refusals_of):  # the first after a quiet time is reported at once
            self._refused_at = now
        samples_due = []
        if self._refusals and (rounds or DOMAIN_ADMIN in around.watched):
            samples_due.append(
                Sampled(DOMAIN_ADMIN, events.OPERATIONS_REFUSED, refused_data(self._gateway.id, self._refusals))
            )
            self._refusals = {}
        due = {rp: some for rp, some in self._refusals_of.items() if rounds or admin_id(rp) in around.watched}
        for rp, some in heapq.nlargest(REFUSED_RPS_MAX, due.items(), key=lambda pair: sum(pair[1].values())):
            samples_due.append(Sampled(admin_id(rp), events.OPERATIONS_REFUSED, refused_data(self._gateway.id, some)))
        for rp in due:
            del self._refusals_of[rp]
        return samples_due

    def _take_refusals(self) -> None:
        """Add the counts of the last turn; their kinds are bounded where they are counted."""
        for key, count in refusals().counted().items():
            self._refusals[key] = self._refusals.get(key, 0) + count
            descriptor = self._gateway.descriptors.peek(key[2]) if key[2] else None
            if descriptor is not None and not descriptor.id.endswith(ADMIN_SUFFIX):
                of_it = self._refusals_of.setdefault(descriptor.id, {})
                of_it[key] = of_it.get(key, 0) + count


REFUSED_RPS_MAX = 20
"""RPs with an event about refusals in a turn: those with most of them."""

REFUSED_KINDS_MAX = 20


def refused_data(gateway: str, counted: Refusals) -> dict[str, Any]:
    """Return the data of an `operations.refused`: the most frequent kinds, and the count of all."""
    most = heapq.nlargest(REFUSED_KINDS_MAX, counted.items(), key=lambda pair: (pair[1], pair[0]))
    kinds = [{"action": action, "reason": reason, "on": on, "count": count} for (action, reason, on), count in most]
    return {"gateway": gateway, "count": sum(counted.values()), "kinds": kinds}


def counts() -> dict[str, int]:
    """Return the numbers of the domain's objects, from SQL."""
    held = held_in_domain()
    return {
        "rps": held.rps,
        "subscriptions": held.subscriptions,
        "reserved_bytes": held.history_bytes,
        "quota_bytes": config().history_quota_bytes,
    }


def _totals() -> dict[str, int]:
    """Return the running totals of the process, by the names of their differences in a sample."""
    counted = totals()
    return {
        "publishes": counted.publishes,
        "events_in": counted.events_in,
        "bytes_in": counted.bytes_in,
        "deliveries": counted.deliveries,
        "bytes_out": counted.bytes_out,
        "refused": sum(counted.refused.values()),
        "accepts": counted.sessions_opened,
        "closes": counted.sessions_closed,
    }
