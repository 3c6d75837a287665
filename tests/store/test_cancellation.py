"""Tasks are ended for certain."""

from __future__ import annotations

import asyncio

from eventing.store.cancellation import cancel_and_wait


async def test_a_task_ends_though_a_library_dropped_its_cancellation() -> None:
    sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def works_forever() -> None:
        while True:
            await asyncio.wait_for(sent, 1)  # as redis-py does
            await asyncio.Event().wait()

    task = asyncio.create_task(works_forever())
    await asyncio.sleep(0)  # it waits now
    await asyncio.sleep(0)
    sent.set_result(None)
    async with asyncio.timeout(20):
        await cancel_and_wait([task])
    assert task.cancelled()


async def test_tasks_that_fail_or_have_ended_are_no_matter() -> None:
    async def fails() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("on its way out")

    async def nothing() -> None:
        return

    tasks = [asyncio.create_task(fails()), asyncio.create_task(nothing())]
    await asyncio.sleep(0)
    await cancel_and_wait(tasks)
    assert all(task.done() for task in tasks)
    assert isinstance(tasks[0].exception(), ValueError)
    await cancel_and_wait([])
