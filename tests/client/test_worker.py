"""A durable worker handles every event in order; what fails is handled again, and what keeps failing is put aside."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from herald import Client, Event, Gap, Nack, Received, sync, work
from herald.events import Item

from demo.harness.servers import Domain

WITHIN_S = 60.0


async def given(*data: Any) -> AsyncIterator[Item]:
    for offset, one in enumerate(data, 1):
        yield (
            one
            if isinstance(one, Gap)
            else Received(Event(id=str(offset), source="/s", data=one), "r", "e", offset, f"e:{offset}")
        )


async def test_an_event_that_fails_is_handled_again_before_those_behind_it() -> None:
    seen: list[Any] = []

    async def handle(item: Received) -> None:
        seen.append(item.data)
        if item.data == 2 and seen.count(2) < 3:
            raise RuntimeError("not yet")

    await work(given(1, 2, 3), handle, delay_s=0)
    assert seen == [1, 2, 2, 2, 3]


async def test_an_event_that_keeps_failing_is_put_aside_with_its_error(caplog: pytest.LogCaptureFixture) -> None:
    dead: list[tuple[Any, str]] = []

    async def handle(item: Received) -> None:
        if item.data == "poison":
            raise RuntimeError("cannot be read")

    async def put_aside(item: Received, error: Exception) -> None:
        dead.append((item.data, str(error)))

    await work(given(1, "poison", 2), handle, max_deliveries=2, delay_s=0, on_dead=put_aside)
    assert dead == [("poison", "cannot be read")]
    with caplog.at_level(logging.WARNING, "herald"):
        await work(given("poison", Gap("r", "e", 2, 3, None, "e:3")), handle, max_deliveries=1)
    assert "failed 1 times and is skipped" in caplog.text
    assert "offsets 2 to 3 are missing" in caplog.text


async def test_delays_double_up_to_a_bound_and_a_handler_may_state_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(delay_s: float) -> None:
        slept.append(delay_s)

    monkeypatch.setattr("herald.worker.asyncio.sleep", sleep)

    async def handle(item: Received) -> None:
        raise Nack(7.5) if len(slept) == 2 else RuntimeError

    await work(given(1), handle, max_deliveries=6, delay_s=1, delay_s_max=4)
    assert slept == [1, 2, 7.5, 4, 4]


async def test_an_error_that_no_delivery_cures_ends_the_worker() -> None:
    seen: list[Any] = []

    async def handle(item: Received) -> None:
        seen.append(item.data)
        raise KeyError if item.data == 1 else Nack

    with pytest.raises(KeyError):
        await work(given(1, 2), handle, retry_on=OSError, delay_s=0)
    assert seen == [1]
    await work(given(2), handle, retry_on=OSError, delay_s=0, max_deliveries=2)
    assert seen == [1, 2, 2], "a Nack always asks for another delivery"
    with pytest.raises(ValueError, match="max_deliveries"):
        await work(given(1), handle, max_deliveries=0)


def test_without_asyncio_an_event_that_fails_is_handled_again_and_then_put_aside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Any] = []
    dead: list[Any] = []
    slept: list[float] = []
    monkeypatch.setattr("herald.blocking_worker.time.sleep", slept.append)

    def handle(item: Received) -> None:
        seen.append(item.data)
        if item.data == "poison":
            raise Nack(7.5) if len(slept) == 1 else RuntimeError("cannot be read")

    items = [
        Received(Event(id=str(n), source="/s", data=one), "r", "e", n, f"e:{n}")
        for n, one in enumerate((1, "poison", 2))
    ]
    sync.work(
        items, handle, max_deliveries=3, delay_s=1, on_dead=lambda item, error: dead.append((item.data, str(error)))
    )
    assert seen == [1, "poison", "poison", "poison", 2]
    assert (dead, slept) == ([("poison", "cannot be read")], [1, 7.5])
    with caplog.at_level(logging.WARNING, "herald"):
        sync.work([Gap("r", "e", 2, 3, None, "e:3"), items[1]], handle, max_deliveries=1)
    assert "offsets 2 to 3 are missing" in caplog.text
    assert "failed 1 times and is skipped" in caplog.text
    with pytest.raises(RuntimeError):
        sync.work([items[1]], handle, retry_on=OSError)
    with pytest.raises(ValueError, match="max_deliveries"):
        sync.work([], handle, max_deliveries=0)


@pytest.mark.processes
def test_without_asyncio_an_event_whose_handler_failed_is_not_acknowledged(domain: Domain) -> None:
    with sync.Client(domain.url, token=domain.token()) as client:
        rp = client.rps.create(name=f"/localhost/worker/{uuid.uuid4().hex[:12]}/").id
        durable = client.subscriptions.create(rp, from_="earliest")
        client.publish_many(rp, [1, 2, 3])

        def handle(item: Received) -> None:
            if item.data == 3:
                raise KeyError

        with pytest.raises(KeyError), client.attach(durable.id) as items:
            sync.work(items, handle, retry_on=OSError)
        place = client.subscriptions.get(durable.id).document["cursor"]
        assert str(place).endswith(":2"), "the last event was not handled"


@pytest.mark.processes
async def test_a_worker_that_is_stopped_within_an_event_gets_it_again(domain: Domain) -> None:
    async with Client(domain.url, token=domain.token()) as client:
        rp = (await client.rps.create(name=f"/localhost/worker/{uuid.uuid4().hex[:12]}/")).id
        durable = await client.subscriptions.create(rp, from_="earliest")
        await client.publish_many(rp, [1, 2, 3])
        done: list[Any] = []
        begun = asyncio.Event()

        async def stuck(item: Received) -> None:
            if item.data == 2:
                begun.set()
                await asyncio.Event().wait()
            done.append(item.data)

        async def run() -> None:
            async with client.attach(durable.id) as items:
                await work(items, stuck)

        worker = asyncio.create_task(run())
        async with asyncio.timeout(WITHIN_S):
            await begun.wait()
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)

        async def handle(item: Received) -> None:
            done.append(item.data)
            if item.data == 3:
                raise KeyError

        async with asyncio.timeout(WITHIN_S):
            with pytest.raises(KeyError):
                async with client.attach(durable.id) as items:
                    await work(items, handle, retry_on=OSError)
        assert done == [1, 2, 3]
        place = (await client.subscriptions.get(durable.id)).document["cursor"]
        assert str(place).endswith(":2"), "the last event was not handled"
