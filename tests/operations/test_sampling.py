"""What gateways tell of themselves: load, sessions, refusals, lags; against a real gateway's state and a real Redis, without
a server: the sampler's turns are taken by hand, so that nothing waits for a second to pass."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from redis.exceptions import ConnectionError

from eventing.audit.refusals import refusals
from eventing.conf import config
from eventing.core.errors import Forbidden
from eventing.core.events.cursors import Cursor
from eventing.core.ids import DOMAIN_ADMIN, admin_id
from eventing.gateway.gateway import Gateway
from eventing.log import control
from eventing.operations.samples import progress, sampling
from eventing.operations.samples.flow_samples import FlowSamples
from eventing.operations.samples.sampling import LoadSampler
from eventing.operations.services.leases import leases_reap
from eventing.outbox import administrative_events as events
from eventing.outbox.administrative_events import ADMIN_HISTORY
from eventing.replication.services.replica_links import links_offer
from eventing.rps.services import histories
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from eventing.store import keys, peer_state
from eventing.store.presence import SILENT_S, WATCHED_MAX, GatewayPresence
from eventing.subscriptions.services.subscriptions import subscription_create
from eventing.telemetry.totals import FLOWS_MAX, Flows, flows, totals
from tests.admin_rp.proving import Proof
from tests.cpu_time import cpu_time
from tests.peering.other_domain import OtherDomain
from tests.replication.homes import ANN, ROOT, Home, make, peer
from tests.replication.own_logs import publish

pytestmark = pytest.mark.usefixtures("planes")


class Looker:
    """A gateway whose sampler's turns are taken by hand, at a clock that is set by hand."""

    def __init__(self) -> None:
        self.gateway = Gateway(config())
        self.now = time.time()
        self.gateway.clock = lambda: self.now
        self.sampler = LoadSampler(self.gateway)

    async def run_once(self, seconds: float = 1.0) -> None:
        self.now += seconds
        await self.sampler.run_once()

    async def read(self, at: str) -> None:
        """Somebody reads an administrative RP at some gateway."""
        await self.gateway.redis.zadd(keys.WATCHED_KEY, {at: self.now + 3600})

    async def unread(self, at: str) -> None:
        await self.gateway.redis.zrem(keys.WATCHED_KEY, at)

    async def close(self) -> None:
        await self.gateway.appender.close()
        await self.gateway.redis.aclose()


@pytest.fixture
async def looker() -> AsyncIterator[Looker]:
    made = Looker()
    refusals().flushed = True
    yield made
    await made.close()


async def test_rates_are_shared_with_the_gateways_of_all_hosts_that_live(looker: Looker) -> None:
    limits, whole = looker.gateway.limits, config().publish_events_per_s
    await looker.run_once()
    assert limits.events.per_s == whole
    await looker.gateway.redis.zadd(keys.GATEWAYS_KEY, {"another": looker.now + 3})
    await looker.run_once()
    assert limits.events.per_s == whole / 2
    await looker.run_once(SILENT_S)
    assert limits.events.per_s == whole


def told(at: str, kind: str = events.LOAD_SAMPLED) -> list[dict[str, Any]]:
    """The data of all events of a type in an administrative log."""
    if control.log_state(at) is None:
        return []
    found = [json.loads(body) for body in control.read(at, 1, 5000, 1 << 24).events]
    return [event["data"] for event in found if event["type"] == kind]


told_at = sync_to_async(told)
new_rp = sync_to_async(lambda **asked: rendezvous_point_create(principal=ANN, **asked).id)


async def proved(proof: Proof, *turns: Any) -> list[str]:
    """Take turns within a proof."""
    await sync_to_async(proof.begin)()
    for one in turns:
        await one
    await sync_to_async(proof.end)()
    return proof.types


async def test_counts_are_told_when_they_were_taken_and_not_again_over_what_events_say(looker: Looker) -> None:
    await looker.run_once()
    await looker.read(DOMAIN_ADMIN)
    for _ in range(9):
        await looker.run_once()
    told_counts = ["counts" in sample for sample in (await told_at(DOMAIN_ADMIN))[-9:]]
    assert told_counts == [True, *[False] * 4, True, *[False] * 3]


@pytest.mark.parametrize("watched", [True, False])
async def test_a_wall_clock_that_is_set_back_stops_no_samples(looker: Looker, watched: bool) -> None:
    rp = await new_rp()
    await looker.run_once()
    if watched:
        await looker.read(DOMAIN_ADMIN)
    before = len(await told_at(DOMAIN_ADMIN))
    flows().published(rp, 1, 1, 100)
    await looker.run_once(-3600)
    assert len(await told_at(DOMAIN_ADMIN)) == before + 1
    assert [one["events_in"] for one in await told_at(admin_id(rp))] == [1], "the round of ten seconds goes on, too"
    await looker.run_once(10)
    samples = (await told_at(DOMAIN_ADMIN))[before:]
    assert len(samples) == 2
    assert all(one["interval_s"] > 0 for one in samples)


async def test_a_domain_sample_follows_from_the_state_before(looker: Looker) -> None:
    await looker.run_once()  # this gateway leads from here on
    await looker.read(DOMAIN_ADMIN)
    rp = await new_rp()
    flows().published(rp, 2, 5, 400)
    totals().publishes, totals().events_in = 2, 5
    assert await proved(Proof(), looker.run_once()) == ["load.sampled"]
    sample = (await told_at(DOMAIN_ADMIN))[-1]
    assert (sample["publishes"], sample["events_in"], sample["gateway"]) == (2, 5, looker.gateway.id)
    assert {"rp": rp, "events_in": 5, "deliveries": 0, "readings": 0, "leaving": 0} in sample["hot"]
    assert sample["counts"]["rps"] == 1
    assert sample["redis"]["used_bytes"] > 0
    await looker.run_once()
    assert (await told_at(DOMAIN_ADMIN))[-1]["publishes"] == 0, "differences"


async def test_traffic_with_peers_is_told_while_somebody_looks_and_once_more_when_it_stops(looker: Looker) -> None:
    for name in ("b.test", "c.test"):
        await sync_to_async(peer)(OtherDomain(name))
    await looker.run_once()
    await looker.read(DOMAIN_ADMIN)
    await looker.run_once()
    await sync_to_async(peer_state.request_noted)(
        "b.test", {"requests": 2, "runs": 3, "events": 40, "copies": 5}, supplied=True
    )
    await sync_to_async(peer_state.traffic_sent_count)("b.test", 7)
    assert set(await proved(Proof(), looker.run_once())) == {"load.sampled", "peers.traffic"}
    (found,) = await told_at(DOMAIN_ADMIN, events.PEERS_TRAFFIC)
    assert found["peers"] == [{"peer": "b.test", "sent": 7, "taken": 40, "copies": 5, "requests": 2}]
    await proved(Proof(), looker.run_once(), looker.run_once())
    assert [one["peers"] for one in await told_at(DOMAIN_ADMIN, events.PEERS_TRAFFIC)][1:] == [
        [{"peer": "b.test", "sent": 0, "taken": 0, "copies": 0, "requests": 0}]
    ]
    await looker.unread(DOMAIN_ADMIN)
    await sync_to_async(peer_state.traffic_sent_count)("b.test", 1)
    await looker.run_once()
    assert len(await told_at(DOMAIN_ADMIN, events.PEERS_TRAFFIC)) == 2, "nobody looks"


async def test_an_rp_with_a_crowd_is_listed_while_nothing_is_published(looker: Looker) -> None:
    crowded, small = await new_rp(), await new_rp()
    await looker.read(DOMAIN_ADMIN)
    flow, few = flows().hold(crowded), flows().hold(small)
    for number in range(150):
        flows().joined(flow, f"subject-{number}", "herald.v1")
    flows().joined(few, "ann", "herald.v1")
    flows().delivered(flow, 150, 3000)
    for deliveries in (150, 0, 0):
        await looker.run_once()
        (row,) = (await told_at(DOMAIN_ADMIN))[-1]["hot"]
        assert row == {"rp": crowded, "events_in": 0, "deliveries": deliveries, "readings": 150, "leaving": 0}
    for number in range(60):
        flows().left(flow, f"subject-{number}", "herald.v1")
    await looker.run_once()
    assert (await told_at(DOMAIN_ADMIN))[-1]["hot"] == []
    flows().release(flow)
    flows().release(few)


async def test_a_gateway_whose_sessions_grow_is_sampled_at_once_and_a_steady_one_every_ten_seconds(
    looker: Looker,
) -> None:
    await looker.run_once()

    async def sampled(sessions: int) -> int:
        before = len(await told_at(DOMAIN_ADMIN))
        looker.gateway.hub.sessions.clear()
        looker.gateway.hub.sessions.update({object(): None for _ in range(sessions)})  # type: ignore[misc]
        await looker.run_once(1.0)
        return len(await told_at(DOMAIN_ADMIN)) - before

    grown = [await sampled(sessions) for sessions in (15, 40, 60, 65, 200, 210, 0, 15)]
    looker.gateway.hub.sessions.clear()
    assert grown == [0, 1, 1, 0, 1, 0, 0, 0]
    assert [one["sessions"] for one in (await told_at(DOMAIN_ADMIN))[-3:]] == [40, 60, 200]


async def test_a_gateway_from_which_many_are_to_leave_is_sampled_at_once(looker: Looker) -> None:
    sessions = [object() for _ in range(100)]
    looker.gateway.hub.sessions.update(dict.fromkeys(sessions))  # type: ignore[arg-type]
    await looker.run_once()

    async def sampled(leaving: int) -> int:
        before = len(await told_at(DOMAIN_ADMIN))
        until = looker.now + 60
        looker.gateway.reader_moves._leaving = dict.fromkeys(sessions[:leaving], ("rp", until))  # type: ignore[arg-type]
        await looker.run_once(1.0)
        return len(await told_at(DOMAIN_ADMIN)) - before

    assert [await sampled(leaving) for leaving in (15, 40, 45, 70, 10, 25)] == [0, 1, 0, 1, 0, 0]
    looker.gateway.hub.sessions.clear()


async def test_an_rps_sample_and_its_sessions_follow_from_the_state_before(looker: Looker) -> None:
    rp = await new_rp()
    await looker.read(admin_id(rp))
    await looker.run_once()
    await sync_to_async(publish)(rp, 3)
    flows().published(rp, 1, 3, 120)
    flow = flows().hold(rp)
    flows().joined(flow, "ann", "herald.v1")
    flows().joined(flow, "ben", "sse")
    flows().delivered(flow, 6, 240)
    assert await proved(Proof(rp), looker.run_once()) == ["load.sampled", "sessions.changed"]
    sample = (await told_at(admin_id(rp)))[-1]
    assert (sample["events_in"], sample["deliveries"], sample["readings"], sample["interval_s"]) == (3, 6, 2, 1.0)
    assert (sample["history"]["next"], sample["joined"], sample["left"]) == (4, 2, 0)
    who = (await told_at(admin_id(rp), events.SESSIONS_CHANGED))[-1]["who"]
    assert who == [
        {"principal": "ann", "client": "herald.v1", "joined": 1, "left": 0},
        {"principal": "ben", "client": "sse", "joined": 1, "left": 0},
    ]
    flows().left(flow, "ann", "herald.v1")
    assert await proved(Proof(rp), looker.run_once()) == ["load.sampled", "sessions.changed"]
    assert await proved(Proof(rp), looker.run_once(), looker.run_once()) == ["load.sampled"], (
        "that it has stopped, once"
    )
    flows().left(flow, "ben", "sse")
    flows().release(flow)
    for _ in range(12):
        await looker.run_once()
    assert flows().get(rp) is None


async def test_ten_thousand_joins_in_a_second_are_one_event_of_counts(looker: Looker) -> None:
    rp = await new_rp()
    await looker.read(admin_id(rp))
    flow = flows().hold(rp)
    for number in range(10_000):
        flows().joined(flow, f"subject-{number}", "herald.v1")
    assert len(flow.who) < 30, "bounded"
    await looker.run_once()
    (found,) = await told_at(admin_id(rp), events.SESSIONS_CHANGED)
    assert (found["joined"], found["readings"], found["who"]) == (10_000, 10_000, [])
    for number in range(10_000):
        flows().left(flow, f"subject-{number}", "herald.v1")
    flows().release(flow)
    await looker.run_once()


async def test_who_is_refused_all_the_time_does_not_crowd_out_what_an_rp_remembers(looker: Looker) -> None:
    rp = await new_rp()
    await looker.gateway.descriptors.get(rp)
    refused = events.OPERATIONS_REFUSED

    async def turns(seconds: int) -> tuple[list[int], list[int]]:
        before = [len(await told_at(at, refused)) for at in (DOMAIN_ADMIN, admin_id(rp))]
        for _ in range(seconds):
            refusals().note(action="publish", error=Forbidden("No."), on=("rp", rp))
            await looker.run_once()
        now = [await told_at(at, refused) for at in (DOMAIN_ADMIN, admin_id(rp))]
        return [one["count"] for one in now[0][before[0] :]], [one["count"] for one in now[1][before[1] :]]

    assert await turns(1) == ([1], [1]), "the first is told at once"
    assert await turns(20) == ([10, 10], [10, 10])
    await looker.read(admin_id(rp))
    domains, of_it = await turns(5)
    assert of_it == [1] * 5, "to who looks"
    assert len(domains) == 0


async def test_the_domain_counts_as_read_however_many_others_are(looker: Looker) -> None:
    """Its name sorts behind those of most RPs."""
    for number in range(WATCHED_MAX):
        await looker.gateway.redis.zadd(keys.WATCHED_KEY, {f"{number:026}.admin": looker.now + 60})
    await looker.gateway.redis.zadd(keys.WATCHED_KEY, {DOMAIN_ADMIN: looker.now + 60})
    for _ in range(2):  # the second turn leads
        looker.now += 1
        assert DOMAIN_ADMIN in (await looker.sampler._presence.renew(looker.now, [])).watched
    looker.now += 61
    assert DOMAIN_ADMIN not in (await looker.sampler._presence.renew(looker.now, [])).watched


async def test_refusals_of_a_second_are_one_event(looker: Looker) -> None:
    rp = await new_rp()
    await looker.gateway.descriptors.get(rp)
    await looker.run_once()
    for number in range(3000):
        refusals().note(action="publish", error=Forbidden("No."), on=("rp", rp if number % 3 else f"junk-{number}"))
    assert await proved(Proof(rp), looker.run_once()) == ["operations.refused", "operations.refused"]
    (of_domain,) = await told_at(DOMAIN_ADMIN, events.OPERATIONS_REFUSED)
    assert of_domain["count"] == 3000
    assert len(of_domain["kinds"]) == 20
    assert of_domain["kinds"][0] == {"action": "publish", "reason": "forbidden", "on": rp, "count": 2000}
    (of_rp,) = await told_at(admin_id(rp), events.OPERATIONS_REFUSED)
    assert (of_rp["count"], len(of_rp["kinds"])) == (2000, 1)
    await looker.run_once()
    assert len(await told_at(DOMAIN_ADMIN, events.OPERATIONS_REFUSED)) == 1


async def test_lags_of_durable_subscriptions_follow_while_somebody_looks(looker: Looker) -> None:
    rp = await new_rp()
    subscription = (await sync_to_async(subscription_create)(reference=rp, principal=ANN)).id
    await looker.run_once()
    await looker.run_once()
    await sync_to_async(publish)(rp, 5)
    assert await told_at(admin_id(rp), events.SUBSCRIPTION_LAGGED) == [], "nobody looks"
    await looker.read(admin_id(rp))
    assert "subscription.lagged" in await proved(Proof(rp), looker.run_once())
    (lag,) = (await told_at(admin_id(rp), events.SUBSCRIPTION_LAGGED))[-1]["lags"]
    assert (lag["subscription"], lag["events"]) == (subscription, 5)
    assert lag["oldest_at"] is not None
    state = await sync_to_async(control.log_state)(rp)
    assert state is not None
    await sync_to_async(control.subscription_cursor_set)(rp, subscription, Cursor(state.epoch, 3))
    assert "subscription.lagged" in await proved(Proof(rp), looker.run_once())
    await looker.run_once()
    found = await told_at(admin_id(rp), events.SUBSCRIPTION_LAGGED)
    assert [one["lags"][0]["events"] for one in found] == [5, 2], "told when it moves"


async def test_the_progress_of_replicas_follows_while_somebody_looks(looker: Looker) -> None:
    def replica() -> str:
        home = Home()
        peer(home)
        make(home)
        links_offer()
        return home.rp

    rp = await sync_to_async(replica)()
    await looker.read(admin_id(rp))
    await looker.run_once()
    await sync_to_async(publish)(rp, 4)
    assert "replica.progressed" in await proved(Proof(rp), looker.run_once(), looker.run_once())
    rows = (await told_at(admin_id(rp), events.REPLICA_PROGRESSED))[-1]["replicas"]
    (own,) = [row for row in rows if row["domain"] == "localhost"]
    assert list(own["vector"].values()) == [4]
    assert own["behind"] == 0


async def test_a_gateway_that_is_killed_leaves_nothing_behind(looker: Looker) -> None:
    other = Looker()
    other.now = looker.now
    rp = await new_rp()
    await looker.read(admin_id(rp))
    await looker.read(DOMAIN_ADMIN)
    await other.run_once()
    await looker.run_once()
    flow = flows().hold(rp)
    flows().joined(flow, "ann", "herald.v1")
    await other.run_once()
    assert other.gateway.id in (await told_at(admin_id(rp)))[-1]["gateway"]
    looker.now = other.now + SILENT_S + 1  # and `other` says nothing more
    await looker.gateway.redis.delete(keys.SAMPLING_TURN_KEY)  # as its expiry does
    await looker.run_once(0)  # takes the turn
    kinds = await proved(Proof(rp), looker.run_once(0))
    assert "gateway.lost" in kinds
    assert await told_at(DOMAIN_ADMIN, events.GATEWAY_LOST) == [{"gateway": other.gateway.id, "reason": "silent"}]
    flows().left(flow, "ann", "herald.v1")
    flows().release(flow)
    await other.close()


async def test_a_gateway_that_ends_says_so(looker: Looker) -> None:
    other = Looker()
    other.now = looker.now
    await other.run_once()
    await looker.run_once()
    other.sampler._task = asyncio.create_task(asyncio.sleep(60))
    assert await proved(Proof(), other.sampler.close()) == ["gateway.lost"]
    assert (await told_at(DOMAIN_ADMIN, events.GATEWAY_LOST))[-1]["reason"] == "stopped"
    await other.close()


async def test_unwatched_rps_are_sampled_every_ten_seconds_and_only_where_something_moved(looker: Looker) -> None:
    moved, idle = await new_rp(), await new_rp()
    flows().published(moved, 1, 1, 40)
    for _ in range(8):
        await looker.run_once()
    assert await told_at(admin_id(moved)) == []
    for _ in range(4):
        await looker.run_once()
    assert [sample["events_in"] for sample in await told_at(admin_id(moved))] == [1]
    for _ in range(12):
        await looker.run_once()
    assert len(await told_at(admin_id(moved))) == 1
    assert await told_at(admin_id(idle)) == []
    assert len(await told_at(DOMAIN_ADMIN)) == 3, "the domain's: at first, then each ten seconds"


async def test_a_round_takes_the_most_active_and_the_others_gather_on(looker: Looker, monkeypatch: Any) -> None:
    monkeypatch.setattr(sampling, "ROUND_RPS_MAX", 2)
    rps = [await new_rp() for _ in range(3)]
    for events_in, rp in enumerate(rps, 1):
        flows().published(rp, 1, events_in, 40)
    for _ in range(14):
        await looker.run_once()
    assert [len(await told_at(admin_id(rp))) for rp in rps] == [0, 1, 1]
    flows().published(rps[0], 1, 1, 40)
    for _ in range(12):
        await looker.run_once()
    assert [sample["events_in"] for sample in await told_at(admin_id(rps[0]))] == [2]


async def test_more_than_four_gateways_sample_less_often_so_that_the_history_holds_an_hour(looker: Looker) -> None:
    await looker.read(DOMAIN_ADMIN)
    await looker.gateway.redis.zadd(keys.GATEWAYS_KEY, {f"g{n}": looker.now + 3600 for n in range(7)})
    for _ in range(9):
        await looker.run_once()
    assert len(await told_at(DOMAIN_ADMIN)) == 5, "eight gateways: each two seconds"


async def test_without_redis_samples_are_dropped_and_nobody_notices(
    looker: Looker, monkeypatch: Any, caplog: Any
) -> None:
    monkeypatch.setattr(sampling, "PERIOD_S", 0.01)

    async def away(*_: Any) -> None:
        away.called += 1  # type: ignore[attr-defined]
        raise ConnectionError("away")

    away.called = 0  # type: ignore[attr-defined]
    monkeypatch.setattr(GatewayPresence, "renew", away)
    looker.sampler.start()
    async with asyncio.timeout(20):
        while away.called < 3:  # type: ignore[attr-defined]  # noqa: ASYNC110 - the sampler has no event for it
            await asyncio.sleep(0.005)
    assert not caplog.records
    await looker.sampler.close()


async def test_samples_of_an_rp_that_went_meanwhile_are_dropped(looker: Looker) -> None:
    rp = await new_rp(lease_s=5)
    flows().published(rp, 1, 1, 40)

    def gone() -> None:
        leases_reap(now=datetime.now(UTC) + timedelta(seconds=60))
        histories.logs_sweep()

    await sync_to_async(gone)()
    for _ in range(12):
        await looker.run_once()
    assert await sync_to_async(control.log_state)(admin_id(rp)) is None, "no log is made for what is no more"


async def test_what_is_watched_is_bounded(looker: Looker) -> None:
    await looker.gateway.redis.zadd(keys.WATCHED_KEY, {f"rp{n}.admin": looker.now + 60 for n in range(WATCHED_MAX + 5)})
    around = await GatewayPresence("g", looker.gateway.redis).renew(looker.now, [])
    assert len(around.watched) == WATCHED_MAX


async def test_a_log_of_the_domain_from_before_gets_the_larger_bounds(looker: Looker) -> None:
    await sync_to_async(control.ensure_log)(DOMAIN_ADMIN, ADMIN_HISTORY)
    await looker.run_once()
    found = await looker.gateway.redis.hmget(keys.meta_key(DOMAIN_ADMIN), "m", "b")
    assert [int(value) for value in found if value] == [20_000, 16 * 1024 * 1024]


def test_flows_of_strangers_are_bounded() -> None:
    flows = Flows()
    for number in range(FLOWS_MAX + 10):
        flows.published(f"rp{number}", 1, 1, 1)
    assert len(flows.moved()) == FLOWS_MAX + 1
    held = flows.hold("held")
    assert held.rp == "held", "what has readers is always counted by itself"


def test_flows_that_were_sampled_and_have_no_readers_are_forgotten() -> None:
    flows = Flows()
    samples = FlowSamples("g", flows)
    flows.published("a", 1, 1, 1)
    assert samples.round(10.0, 500) == ["a"]
    assert samples.take("a", 10.0) is not None
    assert flows.get("a") is None
    assert samples.round(20.0, 500) == []


def test_sampling_eight_thousand_active_rps_costs_little() -> None:
    """What a second's look and a round cost the event loop, Redis left out. The bound is wide: machines differ, and share."""
    flows = Flows()
    samples = FlowSamples("g", flows)
    rps = [f"{number:026d}" for number in range(8000)]

    def second(now: float) -> float:
        for rp in rps:
            flows.published(rp, 1, 1, 100)
        with cpu_time() as took:
            samples.hot(now, {})
        return took.seconds

    second(1.0)
    looks_s = min(second(2.0 + n) for n in range(5))
    with cpu_time() as round_took:
        for rp in samples.round(10.0, 500):
            samples.take(rp, 10.0)
    assert looks_s + round_took.seconds / 10 < 0.05, "of a second's processor time"


def test_a_cursor_of_an_epoch_that_ended_lags_by_everything() -> None:
    row = rendezvous_point_create(principal=ROOT)
    subscription = subscription_create(reference=row.id, principal=ROOT).id
    publish(row.id, 3)
    control.subscription_cursor_set(row.id, subscription, Cursor("aaaaaaaa", 2))
    assert progress.lags([row.id])[row.id][subscription]["events"] == 3
