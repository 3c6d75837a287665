"""How a gateway leaves in time: when sessions are closed (pure), and what its clients notice (real processes)."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from typing import Any, cast

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.harness.servers import eventually
from eventing.gateway.delivery.draining import CLOSES_PER_S_MIN, RETURN_S_MAX, TICK_S, Departure, return_after_ms
from tests.gateway.client import Client
from tests.gateway.server import PLAIN, LiveGateway, event

Sessions = dict[Any, None]


def sessions(count: int) -> Sessions:
    """Sessions, of which only the identity matters here."""
    return cast(Sessions, dict.fromkeys(object() for _ in range(count)))


def closes(count: int, within_s: float, *, joining: int = 0) -> list[int]:
    """How many sessions are closed at each tick until all are; `joining` more open at the first tick."""
    held, now, found = sessions(count), 0.0, []
    departure = Departure(count, within_s, now)
    while not departure.is_over(held.keys()):
        due = departure.due(held, now)
        found.append(len(due))
        held |= sessions(joining)
        joining = 0
        now += TICK_S
        assert now < 1000
    return found


# ---- when ----


@pytest.mark.parametrize(("count", "within_s"), [(10_000, 20), (50_000, 20), (2_000, 20)])
def test_many_sessions_are_closed_evenly_over_the_time(count: int, within_s: float) -> None:
    found = closes(count, within_s)
    assert sum(found) == count
    assert max(found) - min(found[1:-1]) <= 2
    assert max(found) <= count / within_s * TICK_S + 1
    assert within_s - 2 * TICK_S <= len(found) * TICK_S <= within_s + 2 * TICK_S


def test_few_sessions_do_not_wait_for_the_end_of_the_time() -> None:
    assert len(closes(3, 3600)) * TICK_S < 0.5
    assert len(closes(200, 3600)) * TICK_S <= 200 / CLOSES_PER_S_MIN + 2 * TICK_S


def test_without_time_all_are_closed_at_once() -> None:
    assert closes(1000, 0, joining=5) == [1000, 5]


@given(st.integers(0, 500), st.floats(0, 60), st.integers(0, 50))
def test_each_session_is_closed_once_whatever_joins(count: int, within_s: float, joining: int) -> None:
    assert sum(closes(count, within_s, joining=joining)) == count + (joining if count else 0)


def test_clients_closed_together_return_a_thousand_a_second() -> None:
    drawn = [return_after_ms(2000) for _ in range(2000)]
    assert 0 <= min(drawn) < 100
    assert 1900 < max(drawn) <= 2000
    assert return_after_ms(1) <= 1
    assert max(return_after_ms(10**6) for _ in range(1000)) <= RETURN_S_MAX * 1000


# ---- what clients notice ----


async def _checks(gateway: LiveGateway) -> dict[str, str]:
    async with httpx.AsyncClient(**PLAIN) as http:
        answer = await http.get(f"{gateway.url()}/readyz")
        return dict(answer.json()["checks"])


@pytest.mark.processes
async def test_during_the_lead_only_readiness_says_that_a_gateway_stops(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    gateway = new_live_gateway(drain_lead_s=1)
    rp = gateway.create_rp()
    async with (
        Client(gateway) as before,
        gateway.ahttp() as http,
        http.stream("GET", f"/api/v1/rps/{rp}/stream") as stream,
    ):
        await before.ok("subscribe", rp=rp)
        lines = stream.aiter_lines()
        assert await anext(lines) == "retry: 1000"
        began = time.monotonic()
        gateway.terminate_gateway()
        await eventually(lambda: _is_stopping(gateway), about="the gateway is not ready")
        async with Client(gateway) as after:  # a balancer that has not noticed yet
            await after.ok("subscribe", rp=rp)
            assert (await after.ok("publish", rp=rp, event=event("e1")))["offset"] == 1
            for client in (before, after):
                assert [one["event"]["id"] for one in await client.events(1)] == ["e1"]
                closing = await client.frame()
                assert closing.pop("retry_after_ms") in range(4)  # there are three sessions
                assert closing == {"op": "closing", "reason": "server-restarting", "retry": True}
                assert await client.closed() == (4000, "server-restarting")
        assert time.monotonic() - began >= 1
        async with asyncio.timeout(60):
            said = [line async for line in lines if line]
        assert said[-1] in {f"retry: {number}" for number in range(4)}
        assert await asyncio.to_thread(gateway.wait_stopped) in (0, -signal.SIGTERM)


async def _is_stopping(gateway: LiveGateway) -> bool:
    return (await _checks(gateway)).get("gateway") == "is stopping"


@pytest.mark.long
@pytest.mark.processes
async def test_a_second_signal_ends_the_drain(new_live_gateway: Callable[..., LiveGateway]) -> None:
    gateway = new_live_gateway(drain_lead_s=300)
    async with Client(gateway) as client:
        gateway.terminate_gateway()
        await eventually(lambda: _is_stopping(gateway), about="the gateway is not ready")
        gateway.terminate_gateway()
        assert (await client.frame())["op"] == "closing"
        await asyncio.to_thread(gateway.wait_stopped)


@pytest.mark.long
@pytest.mark.processes
async def test_a_connection_accepted_before_a_gateway_is_exchanged_is_served(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    gateway = new_live_gateway()
    held = [await asyncio.open_connection("127.0.0.1", gateway.port()) for _ in range(2)]
    await asyncio.to_thread(gateway.wait_gateway)  # accepted in order: both have been by now
    gateway.gateway_process().send_signal(signal.SIGHUP)
    await asyncio.sleep(0.5)  # of drain: without sessions it would be over
    (one, write_one), (two, write_two) = held
    write_one.write(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    write_two.write(
        f"GET /ws?access_token={gateway.token()} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    assert (await one.read()).startswith(b"HTTP/1.1 200")
    answer = await asyncio.wait_for(two.read(), 60)
    assert answer.startswith(b"HTTP/1.1 101")
    assert b'"server-restarting"' in answer
    await asyncio.to_thread(gateway.wait_stopped)
    for _, writer in held:
        writer.close()
