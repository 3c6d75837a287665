"""A start by time: in every binding the first event that was stored then or later, exact to the stored millisecond."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from demo.harness.servers import wait_for
from eventing.store import keys
from tests.gateway.client import Client
from tests.gateway.server import STRUCTURED, LiveGateway, event, ids_of
from tests.gateway.test_cloudevents_subprotocol import follow, from_, receive
from tests.gateway.test_replica_cursors import Replicas
from tests.gateway.test_stream import stream

FUTURE = "2999-01-01T00:00:00Z"


def text(ms: int) -> str:
    """A time by RFC 3339."""
    return (
        (datetime.fromtimestamp(ms // 1000, UTC) + timedelta(milliseconds=ms % 1000)).isoformat().replace("+00:00", "Z")
    )


class Timed:
    """An RP whose events were stored at several times; `times` are Unix milliseconds by offset from 1."""

    def __init__(self, live_gateway: LiveGateway, rp: str, count: int = 6) -> None:
        self.live_gateway = live_gateway
        self.rp = rp
        for number in range(1, count + 1):
            live_gateway.publish(rp, 1, begin=number)
            if number == count // 2:  # at least two times, however fast the machine is
                wait_for(self._later, about="a later millisecond")
        self.times = self.stored()
        assert len(set(self.times)) > 1

    def _later(self) -> bool:
        with self.live_gateway.redis as client:
            seconds, micros = client.time()
        return seconds * 1000 + micros // 1000 > self.stored()[-1]

    def stored(self) -> list[int]:
        with self.live_gateway.redis as client:
            return [int(name.split(b"-")[1]) for name, _ in client.xrange(keys.log_keys(self.rp)[0])]

    def expected(self, ms: int, first: int = 1) -> list[str]:
        """Ids of the events from a time on."""
        return [f"e-{offset}" for offset, at in enumerate(self.times, 1) if at >= ms and offset >= first]

    def moments(self) -> list[int]:
        """Times on, right before and right after each event."""
        return sorted({at + step for at in self.times for step in (-1, 0, 1)})


@pytest.fixture
def timed(live_gateway: LiveGateway, rp: str) -> Timed:
    return Timed(live_gateway, rp)


def pull(live_gateway: LiveGateway, rp: str, after: str) -> dict[str, Any]:
    answer = live_gateway.admin.get(f"/api/v1/rps/{rp}/events", params={"after": after})
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def test_pull_begins_at_the_stored_time_to_the_millisecond(live_gateway: LiveGateway, timed: Timed) -> None:
    for ms in timed.moments():
        document = pull(live_gateway, timed.rp, f"time:{text(ms)}")
        assert ids_of(document["events"]) == timed.expected(ms), ms - timed.times[0]
        assert document["recovered"] is True
    zoned = datetime.fromtimestamp(timed.times[-1] / 1000, UTC) + timedelta(hours=1, microseconds=-1)
    written = zoned.replace(tzinfo=None).isoformat() + "+01:00"
    assert ids_of(pull(live_gateway, timed.rp, f"time:{written}")["events"]) == timed.expected(timed.times[-1])


async def test_a_subscribe_begins_at_a_time_and_goes_on_live(
    live_gateway: LiveGateway, timed: Timed, client: Client
) -> None:
    ms = timed.times[-1]
    for begin in ({"time": text(ms)}, f"time:{text(ms)}"):
        expected = timed.expected(ms)
        answer = await client.ok("subscribe", rp=timed.rp, begin=begin)
        assert (answer["offset"], answer["recovered"]) == (len(timed.times) - len(expected), True)
        assert ids_of([frame["event"] for frame in await client.events(len(expected))]) == expected
        await client.ok("unsubscribe", rp=timed.rp)
    await client.ok("subscribe", rp=timed.rp, begin={"time": text(ms)})
    await client.events(len(timed.expected(ms)))
    live_gateway.publish(timed.rp, 1, prefix="next")
    assert ids_of([frame["event"] for frame in await client.events(1)]) == ["next-1"]


async def test_streams_begin_at_a_time(live_gateway: LiveGateway, timed: Timed) -> None:
    ms = timed.times[-1]
    expected = timed.expected(ms)
    async with stream(live_gateway, timed.rp, after=f"time:{text(ms)}") as reading:
        assert [message.json["id"] for message in await reading.events(len(expected))] == expected
    async with follow(live_gateway, rp=timed.rp, **from_(f"time:{text(ms)}")) as ws:
        assert ids_of(await receive(ws, len(expected))) == expected


def test_a_durable_subscription_begins_at_a_time(live_gateway: LiveGateway, timed: Timed) -> None:
    for ms in (timed.times[0], timed.times[-1], timed.times[-1] + 1):
        made = live_gateway.admin.post(
            f"/api/v1/rps/{timed.rp}/subscriptions", json={"from": f"time:{text(ms)}", "lease_s": 60}
        ).json()
        assert (made["lag"], made["lost"]) == (len(timed.expected(ms)), 0)
        pulled = live_gateway.admin.get(f"/api/v1/subscriptions/{made['id']}/events").json()
        assert ids_of(pulled["events"]) == timed.expected(ms)


def test_a_time_before_a_trimmed_history_is_its_oldest_event_and_a_gap(live_gateway: LiveGateway) -> None:
    timed = Timed(live_gateway, live_gateway.create_rp(history={"max_events": 3}), 6)
    timed.times = [0, 0, 0, *timed.stored()]
    for ms in (1000, timed.times[3]):
        document = pull(live_gateway, timed.rp, f"time:{text(ms)}")
        assert ids_of(document["events"]) == timed.expected(ms, first=4)
        assert document["recovered"] is False
        assert document["gap"] == {"epoch": document["epoch"], "from": 1, "to": 3}
    last = pull(live_gateway, timed.rp, f"time:{text(timed.times[5])}")
    assert ids_of(last["events"]) == timed.expected(timed.times[5], first=4)
    made = live_gateway.admin.post(f"/api/v1/rps/{timed.rp}/subscriptions", json={"from": f"time:{text(1000)}"}).json()
    assert (made["lag"], made["lost"]) == (3, 0), "what had gone before is no loss of the subscription"


def test_a_time_before_a_whole_history_is_no_gap(live_gateway: LiveGateway, timed: Timed) -> None:
    document = pull(live_gateway, timed.rp, "time:1969-01-01T00:00:00Z")
    assert ids_of(document["events"]) == timed.expected(0)
    assert (document["recovered"], "gap" in document) == (True, False)


async def test_a_time_in_the_future_is_now(live_gateway: LiveGateway, timed: Timed, client: Client) -> None:
    assert pull(live_gateway, timed.rp, f"time:{FUTURE}")["events"] == []
    answer = await client.ok("subscribe", rp=timed.rp, begin={"time": FUTURE})
    assert (answer["offset"], answer["recovered"]) == (len(timed.times), True)
    live_gateway.publish(timed.rp, 1, prefix="next")
    assert ids_of([frame["event"] for frame in await client.events(1)]) == ["next-1"]


async def test_a_pull_from_a_time_waits_for_events(live_gateway: LiveGateway, timed: Timed) -> None:
    async with live_gateway.ahttp("root", admin=True) as http:
        params = {"after": f"time:{text(timed.times[-1] + 1)}", "wait_s": "30"}
        waiting = asyncio.ensure_future(http.get(f"/api/v1/rps/{timed.rp}/events", params=params))
        await live_gateway.followed(timed.rp)
        await asyncio.to_thread(live_gateway.publish, timed.rp, 1, prefix="next")
        assert ids_of((await waiting).json()["events"]) == ["next-1"]


def test_an_empty_rendezvous_point_has_no_gap_at_any_time(live_gateway: LiveGateway, rp: str) -> None:
    for at in ("1970-01-01T00:00:00Z", FUTURE):
        document = pull(live_gateway, rp, f"time:{at}")
        assert (document["events"], document["recovered"]) == ([], True)


def test_a_start_by_time_needs_the_history(live_gateway: LiveGateway) -> None:
    policy = [{"issuer": "domain", "allow": ["describe", "subscribe"]}]
    rp = live_gateway.create_rp(policy=policy)
    with live_gateway.http("ann") as http:
        path = f"/api/v1/rps/{rp}/stream"
        assert http.get(path, params={"after": f"time:{FUTURE}"}).status_code == 403


@pytest.mark.parametrize(
    "begin", ["time:", "time:yesterday", "time:2026-11-24", "time:5", {"time": 5}, {"time": "now"}]
)
async def test_what_is_no_time_is_refused(rp: str, client: Client, begin: Any) -> None:
    refused = await client.ask("subscribe", rp=rp, begin=begin)
    assert refused["type"] == "urn:herald:problem:invalid-cursor"
    assert "RFC 3339" in refused["detail"]


def test_the_plus_of_a_zone_that_was_not_encoded_is_explained(live_gateway: LiveGateway, rp: str) -> None:
    refused = live_gateway.admin.get(f"/api/v1/rps/{rp}/events?after=time:2026-11-24T02:50:00+01:00")
    assert (refused.status_code, "%2B" in refused.json()["detail"]) == (400, True)


def test_at_a_replica_the_time_is_when_the_replica_stored_the_event(live_gateway: LiveGateway) -> None:
    """X publishes; what Y publishes comes later, whatever its own time was."""
    replicas = Replicas(live_gateway)
    replicas.publish(replicas.y, "y1")
    replicas.publish(replicas.x, "x1")
    at_x = Stored(live_gateway, replicas.x)
    wait_for(lambda: at_x.now() > at_x.last(), about="a later millisecond")
    replicas.carry(replicas.x, "y1")
    document = pull(live_gateway, replicas.x, f"time:{text(at_x.last())}")
    assert ids_of(document["events"]) == ["y1"], "stored here after x1, though published before it"
    assert "~" in document["cursor"]
    at_y = Stored(live_gateway, replicas.y)
    assert ids_of(pull(live_gateway, replicas.y, f"time:{text(at_y.last())}")["events"]) == ["y1"]


class Stored:
    """Times of one log, by Redis."""

    def __init__(self, live_gateway: LiveGateway, rp: str) -> None:
        self._live_gateway = live_gateway
        self._log = keys.log_keys(rp)[0]

    def last(self) -> int:
        with self._live_gateway.redis as client:
            return int(client.xrevrange(self._log, count=1)[0][0].split(b"-")[1])

    def now(self) -> int:
        with self._live_gateway.redis as client:
            seconds, micros = client.time()
        return seconds * 1000 + micros // 1000


def test_an_events_own_time_decides_nothing(live_gateway: LiveGateway, rp: str) -> None:
    made = event("old", time="1999-01-01T00:00:00Z")
    live_gateway.admin.post(f"/api/v1/rps/{rp}/events", content=json.dumps(made), headers=STRUCTURED).raise_for_status()
    assert ids_of(pull(live_gateway, rp, "time:2020-01-01T00:00:00Z")["events"]) == ["old"]
