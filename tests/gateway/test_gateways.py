"""Several gateway processes on one Redis, and how one of them says goodbye."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.gateway.client import Client, ResumingReader
from tests.gateway.publisher import HttpPublisher, SocketPublisher
from tests.gateway.server import LiveGateway, event
from tests.gateway.test_websocket import ids

pytestmark = pytest.mark.processes


async def test_two_gateways_see_each_others_events_and_changes(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway(gateways=2)
    rp = live_gateway.create_rp()
    async with Client(live_gateway, gateway=0) as one, Client(live_gateway, gateway=1) as two:
        assert (await one.ok("subscribe", rp=rp))["epoch"] == (await two.ok("subscribe", rp=rp))["epoch"]
        for number in range(1, 51):
            publisher = one if number % 2 else two
            assert (await publisher.ok("publish", rp=rp, event=event(f"e{number}")))["offset"] == number
        expected = [f"e{number}" for number in range(1, 51)]
        assert ids(await one.events(50)) == expected
        assert ids(await two.events(50)) == expected
        again = await two.ok("publish", rp=rp, event=event("e1"))
        assert (again["offset"], again["duplicate"]) == (1, True)

        live_gateway.admin.patch(f"/api/v1/rps/{rp}", json={"policy": []}).raise_for_status()  # by the first gateway
        assert (await two.frame())["type"] == "urn:herald:problem:forbidden"
        assert await two.refused("publish", rp=rp, event=event("x")) == "forbidden"


async def test_two_gateways_under_load_keep_one_order_for_everyone(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway(gateways=2)
    rp = live_gateway.create_rp(history={"max_events": 1_000_000, "max_bytes": 1 << 28})
    async with ResumingReader(live_gateway, rp, gateway=0) as one, ResumingReader(live_gateway, rp, gateway=1) as two:
        async with (
            HttpPublisher(live_gateway, rp, "http-0", gateway=0) as http_0,
            HttpPublisher(live_gateway, rp, "http-1", gateway=1) as http_1,
            SocketPublisher(live_gateway, rp, "socket-0", gateway=0, pause_s=0.001) as socket_0,
            SocketPublisher(live_gateway, rp, "socket-1", gateway=1, pause_s=0.001) as socket_1,
        ):
            await asyncio.sleep(2)  # of load
        acknowledged = set.union(*(each.acknowledged for each in (http_0, http_1, socket_0, socket_1)))
        for reader in (one, two):
            await reader.wait_until_has(acknowledged)
        assert one.ids == two.ids


async def test_a_gateway_asked_to_stop_says_goodbye_to_every_binding_and_comes_back(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway()
    rp, polled = live_gateway.create_rp(), live_gateway.create_rp()
    async with (
        Client(live_gateway) as herald,
        connect(
            live_gateway.ws_url(access_token=live_gateway.token(), rp=rp),
            subprotocols=["cloudevents.json"],  # type: ignore[list-item]
            proxy=None,
        ) as cloudevents,
        live_gateway.ahttp() as http,
        http.stream("GET", f"/api/v1/rps/{rp}/stream") as stream,
    ):
        await herald.ok("subscribe", rp=rp)
        polling = asyncio.create_task(http.get(f"/api/v1/rps/{polled}/events?after=now&wait_s=30"))
        await live_gateway.followed(polled)
        live_gateway.terminate_gateway()
        closing = await herald.frame()
        assert closing.pop("retry_after_ms") in range(4)  # there are three sessions
        assert closing == {"op": "closing", "reason": "server-restarting", "retry": True}
        assert await herald.closed() == (4000, "server-restarting")
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(cloudevents.recv(), 60)
        assert cloudevents.close_code == 4000
        async with asyncio.timeout(60):
            lines = [line async for line in stream.aiter_lines()]
        assert not any(line.startswith("data") for line in lines)
        assert (await asyncio.wait_for(polling, 60)).json()["events"] == []
        code = await asyncio.to_thread(live_gateway.wait_stopped)
        assert code in (0, -15, 143)
    live_gateway.start_gateway()
    async with Client(live_gateway) as herald:
        await herald.ok("subscribe", rp=rp)


async def test_publishes_in_flight_when_a_gateway_stops_are_answered_or_safe_to_repeat(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway()
    rp = live_gateway.create_rp(history={"max_events": 1_000_000, "max_bytes": 1 << 28})
    async with ResumingReader(live_gateway, rp) as reader:
        async with (
            HttpPublisher(live_gateway, rp, "http") as http,
            SocketPublisher(live_gateway, rp, "socket", pause_s=0.001) as socket,
        ):
            for _ in range(2):
                await asyncio.sleep(0.5)  # of load
                live_gateway.terminate_gateway()
                await asyncio.to_thread(live_gateway.wait_stopped)
                live_gateway.spawn_gateway()
                await asyncio.to_thread(live_gateway.wait_gateway)
            await asyncio.sleep(0.3)  # of load
        await reader.wait_until_has(http.acknowledged | socket.acknowledged)


async def test_a_client_that_keeps_its_connection_does_not_keep_the_gateway(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway()
    rp = live_gateway.create_rp()
    reader, writer = await asyncio.open_connection("127.0.0.1", live_gateway.port())
    head = (
        f"GET /ws?access_token={live_gateway.token()} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    writer.write(head.encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
    live_gateway.publish(rp, 1)
    live_gateway.terminate_gateway()  # this client never answers the close
    await asyncio.wait_for(asyncio.to_thread(live_gateway.wait_stopped), 40)
    writer.close()
