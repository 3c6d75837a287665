"""The gate that a session's last words wait at while its client does not read."""

from __future__ import annotations

import asyncio

from eventing.gateway.server.websocket_protocol import _Gate


async def test_it_is_open_at_first_and_waits_for_being_opened_again() -> None:
    gate = _Gate()
    async with asyncio.timeout(20):
        await gate.wait()
    gate.clear()
    waiting = [asyncio.create_task(gate.wait()) for _ in range(2)]
    await asyncio.sleep(0)
    gate.clear()
    assert not any(task.done() for task in waiting)
    gate.set()
    gate.clear()  # closed again before they have run: they were let through all the same, as asyncio's event does
    async with asyncio.timeout(20):
        await asyncio.gather(*waiting)
    later = asyncio.create_task(gate.wait())
    await asyncio.sleep(0)
    assert not later.done()
    gate.set()
    async with asyncio.timeout(20):
        await later
