"""The notification channel is only the fast path: rings that get lost, and a connection that is cut again and again, lose no event."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from eventing.core.events.cloudevents import parse_structured
from eventing.log import scripts
from tests.gateway.client import Client, ResumingReader
from tests.gateway.publisher import HttpPublisher, SocketPublisher
from tests.gateway.server import LiveGateway, event
from tests.gateway.test_websocket import ids
from tests.store.homes import notifications_cut

WIDE = {"max_events": 1_000_000, "max_bytes": 1 << 28}


def append_silently(live_gateway: LiveGateway, rp: str, *event_ids: str) -> None:
    """Put events into the log as a gateway does, but let the notification channel's rings get lost."""
    silent = scripts.APPEND.text.replace("redis.call('PUBLISH'", "tostring('PUBLISH'")
    assert silent != scripts.APPEND.text
    events = [parse_structured(json.dumps(event(event_id)).encode(), bytes_max=1000) for event_id in event_ids]
    with live_gateway.redis as client:
        answer: Any = client.eval(silent, *scripts.append_args(rp, events, 600, 100_000))
    assert answer[2] == len(event_ids)


async def test_a_hole_is_filled_before_anything_after_it_is_passed_on(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    await client.ok("subscribe", rp=rp)
    took_s = []
    for turn in range(5):
        append_silently(live_gateway, rp, f"lost-{turn}-1", f"lost-{turn}-2")
        live_gateway.publish(rp, 1, prefix=f"rung-{turn}")
        began = time.monotonic()
        frames = await client.events(3)
        took_s.append(time.monotonic() - began)
        assert ids(frames) == [f"lost-{turn}-1", f"lost-{turn}-2", f"rung-{turn}-1"]
        assert [frame["offset"] for frame in frames] == [3 * turn + 1, 3 * turn + 2, 3 * turn + 3]
    assert min(took_s) < 1.0, "by the notification, not by the look at the end of the log"


async def test_events_that_nothing_rings_for_are_found_within_seconds(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    await client.ok("subscribe", rp=rp)
    append_silently(live_gateway, rp, "a", "b")
    assert ids(await client.events(2)) == ["a", "b"]


async def test_a_hole_that_the_log_has_lost_too_is_told_to_those_who_are_live(
    live_gateway: LiveGateway, client: Client
) -> None:
    rp = live_gateway.create_rp(history={"max_events": 2})
    epoch = (await client.ok("subscribe", rp=rp))["epoch"]
    live_gateway.publish(rp, 1)
    await client.events(1)
    append_silently(live_gateway, rp, *(f"lost-{number}" for number in range(10)))
    live_gateway.publish(rp, 1, prefix="rung")
    assert await client.frame() == {"op": "gap", "rp": rp, "epoch": epoch, "from": 2, "to": 10}
    assert [frame["offset"] for frame in await client.events(2)] == [11, 12]


async def test_a_subscriber_that_comes_after_a_lost_ring_misses_nothing(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    await client.ok("subscribe", rp=rp)
    append_silently(live_gateway, rp, "lost")
    async with Client(live_gateway) as late:
        assert (await late.ok("subscribe", rp=rp, begin="earliest"))["offset"] == 0
        assert ids(await late.events(1)) == ["lost"]
    async with Client(live_gateway) as later:
        assert (await later.ok("subscribe", rp=rp))["offset"] == 1, "now is after what is in the log"
    assert ids(await client.events(1)) == ["lost"]


async def test_a_descriptor_change_that_nobody_heard_is_found_when_the_bell_is_back(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway()
    rp = live_gateway.create_rp()
    async with Client(live_gateway) as client:
        await client.ok("subscribe", rp=rp)
        with live_gateway.redis as redis:
            until = time.monotonic() + 30
            while notifications_cut(redis) == 0:  # the change below falls into the gap
                assert time.monotonic() < until
        live_gateway.admin.patch(f"/api/v1/rps/{rp}", json={"policy": []}).raise_for_status()
        frame = await client.frame()
        assert (frame["op"], frame["type"]) == ("error", "urn:herald:problem:forbidden")


@pytest.mark.processes
async def test_a_bell_that_is_cut_again_and_again_under_load_loses_nothing(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway()
    rp = live_gateway.create_rp(history=WIDE)
    async with ResumingReader(live_gateway, rp) as one, ResumingReader(live_gateway, rp) as two:
        async with (
            HttpPublisher(live_gateway, rp, "http") as http,
            SocketPublisher(live_gateway, rp, "socket", pause_s=0.001) as socket,
        ):
            with live_gateway.redis as redis:
                cuts, until = 0, time.monotonic() + 60
                while cuts < 40 or len(http.acknowledged | socket.acknowledged) <= 500:
                    assert time.monotonic() < until
                    cuts += notifications_cut(redis) > 0
                    await asyncio.sleep(0.07)  # between two cuts
        acknowledged = http.acknowledged | socket.acknowledged
        for reader in (one, two):
            await reader.wait_until_has(acknowledged)
            assert reader.connections == 1
