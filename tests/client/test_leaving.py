"""Leaving a reader: what was dealt with is stored however the loop is left, and what was not is given out again."""

from __future__ import annotations

import asyncio
import copy
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import herald.sync
import pytest
from herald import Client, Event, FileCursorStore, Gap, HeraldError, Received, StateError
from herald.subscription import Subscription

from tests.client.fake_gateway import FakeGateway
from tests.client.test_client import take, until

HERALD = [sys.executable, "-c", "from herald.commands import main; main()"]
WAIT_S = 60.0


def offset_of(item: Received | Gap) -> int:
    """The offset of an event."""
    assert isinstance(item, Received)
    return item.offset


class Failed(Exception):
    """What a program's own handling of an event raises."""


@pytest.fixture
async def gateway() -> AsyncIterator[FakeGateway]:
    async with FakeGateway() as fake:
        await fake.append("r", 1, 2, 3, 4)
        yield fake


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def stored(state: Path, rp: str = "r") -> str | None:
    return FileCursorStore(state).load(rp)


# ---- the ways out of a loop, each with three events handed out ----


async def breaks(reading: Subscription) -> None:
    async for item in reading:
        if offset_of(item) == 3:
            break


async def breaks_through_finally(reading: Subscription) -> None:
    async for item in reading:
        try:
            if offset_of(item) == 3:
                break
        finally:
            await asyncio.sleep(0)


async def returns(reading: Subscription) -> int:
    async for item in reading:
        if offset_of(item) == 3:
            return offset_of(item)
    return 0


async def asks_one_by_one(reading: Subscription) -> None:
    for _ in range(3):
        await anext(reading)


async def breaks_after_an_error_that_it_handled(reading: Subscription) -> None:
    async for item in reading:
        try:
            raise Failed
        except Failed:
            if offset_of(item) == 3:
                break


async def raises(reading: Subscription) -> None:
    async for item in reading:
        if offset_of(item) == 3:
            raise Failed


async def raises_in_what_it_awaits(reading: Subscription) -> None:
    async def handle(item: Any) -> None:
        await asyncio.sleep(0)
        if offset_of(item) == 3:
            raise Failed

    async for item in reading:
        await handle(item)


async def raises_one_by_one(reading: Subscription) -> None:
    for _ in range(3):
        await anext(reading)
    raise Failed


async def is_cancelled(reading: Subscription) -> None:
    async for item in reading:
        if offset_of(item) == 3:
            asyncio.current_task().cancel()  # type: ignore[union-attr]
            try:
                await asyncio.sleep(WAIT_S)
            except asyncio.CancelledError:
                asyncio.current_task().uncancel()  # type: ignore[union-attr]
                raise Failed from None


async def runs_out_of_time(reading: Subscription) -> None:
    try:
        async with asyncio.timeout(None) as bound:
            async for item in reading:
                if offset_of(item) == 3:
                    bound.reschedule(asyncio.get_running_loop().time() + 0.05)
                    await asyncio.sleep(WAIT_S)
    except TimeoutError:
        raise Failed from None


IN_ORDER = [breaks, breaks_through_finally, returns, asks_one_by_one, breaks_after_an_error_that_it_handled]
WITH_AN_ERROR = [raises, raises_in_what_it_awaits, raises_one_by_one, is_cancelled, runs_out_of_time]
Leave = Callable[[Subscription], Awaitable[Any]]


@pytest.mark.parametrize("leave", IN_ORDER)
async def test_a_clean_exit_of_the_client_stores_the_last_event_handed_out(
    gateway: FakeGateway, state: Path, leave: Leave
) -> None:
    async with Client(gateway.url) as client:
        await leave(client.subscribe("r", from_="earliest", state=state))
    assert stored(state) == "a:3"
    async with Client(gateway.url) as client:
        (item,) = await take(client.subscribe("r", state=state), 1)
    assert item.data == 4


@pytest.mark.parametrize("leave", WITH_AN_ERROR)
async def test_an_event_whose_handling_failed_is_not_done_and_those_before_it_are(
    gateway: FakeGateway, state: Path, leave: Leave
) -> None:
    with pytest.raises(Failed):
        async with Client(gateway.url) as client:
            await leave(client.subscribe("r", from_="earliest", state=state))
    assert stored(state) == "a:2"


@pytest.mark.parametrize("leave", [raises, raises_in_what_it_awaits, is_cancelled, runs_out_of_time])
async def test_an_error_that_is_caught_outside_the_loop_leaves_the_event_undone(
    gateway: FakeGateway, state: Path, leave: Leave
) -> None:
    async with Client(gateway.url) as client:
        with suppress(Failed):
            await leave(client.subscribe("r", from_="earliest", state=state))
        assert stored(state) == "a:2", "stored as soon as the loop is left"
    assert stored(state) == "a:2"


@pytest.mark.parametrize("leave", IN_ORDER)
async def test_a_durable_subscription_is_acknowledged_by_a_clean_exit(gateway: FakeGateway, leave: Leave) -> None:
    gateway.acked["s"] = ("r", 0)
    async with Client(gateway.url) as client:
        await leave(client.attach("s", renew=False))
    assert gateway.acked["s"] == ("r", 3)


@pytest.mark.parametrize("leave", WITH_AN_ERROR)
async def test_a_durable_subscription_is_not_acknowledged_beyond_an_error(gateway: FakeGateway, leave: Leave) -> None:
    gateway.acked["s"] = ("r", 0)
    with pytest.raises(Failed):
        async with Client(gateway.url) as client:
            await leave(client.attach("s", renew=False))
    assert gateway.acked["s"] == ("r", 2)


async def test_an_acknowledgement_that_was_under_way_is_waited_for(gateway: FakeGateway) -> None:
    """The domain restarts while the acknowledgement is sent: the clean exit still leaves nothing to be repeated."""
    gateway.acked["s"] = ("r", 0)
    async with Client(gateway.url) as client:
        reading = client.attach("s", renew=False)
        await take(reading, 4)
        waiting = asyncio.ensure_future(anext(reading))  # the fourth counts as done, and its acknowledgement is sent
        gateway.cut()
        await asyncio.sleep(0)
        waiting.cancel()
    assert gateway.acked["s"] == ("r", 4)


# ---- closing, by hand and from elsewhere ----


async def test_closing_by_hand_while_an_error_is_under_way_leaves_the_event_undone(
    gateway: FakeGateway, state: Path
) -> None:
    async def read(close: Callable[[Client, Subscription], Awaitable[None]]) -> str | None:
        FileCursorStore(state).save("r", "a:0")
        client = Client(gateway.url)
        reading = client.subscribe("r", from_="earliest", state=state)
        with suppress(Failed):
            try:
                await raises_one_by_one(reading)
            finally:
                await close(client, reading)
        await client.aclose()
        return stored(state)

    assert await read(lambda client, _: client.aclose()) == "a:2"
    assert await read(lambda _, reading: reading.aclose()) == "a:2"
    assert await read(lambda client, _: asyncio.wait_for(client.aclose(), WAIT_S)) == "a:2"
    assert await read(lambda _, reading: asyncio.wait_for(reading.aclose(), WAIT_S)) == "a:2"


async def test_aclosing_knows_how_its_block_was_left(gateway: FakeGateway, state: Path) -> None:
    async with Client(gateway.url) as client:
        with suppress(Failed):
            async with aclosing(client.subscribe("r", from_="earliest", state=state)) as reading:
                await raises_one_by_one(reading)
        assert stored(state) == "a:2"
        async with aclosing(client.subscribe("r", state=state)) as reading:
            await anext(reading)
        assert stored(state) == "a:3"


async def test_closing_inside_the_loop_says_that_its_event_is_done(gateway: FakeGateway, state: Path) -> None:
    async with Client(gateway.url) as client:
        reading = client.subscribe("r", from_="earliest", state=state)
        async for item in reading:
            if offset_of(item) == 3:
                await reading.aclose()
                assert stored(state) == "a:3"
    gateway.acked["s"] = ("r", 0)
    client = Client(gateway.url)
    async for item in client.attach("s", renew=False):
        if offset_of(item) == 3:
            await client.aclose()
    assert gateway.acked["s"] == ("r", 3)


async def test_what_another_task_is_still_working_on_is_not_done(gateway: FakeGateway, state: Path) -> None:
    handling = asyncio.Event()

    async def read(reading: Subscription) -> None:
        async for item in reading:
            if offset_of(item) == 3:
                handling.set()
                await asyncio.sleep(WAIT_S)

    async with Client(gateway.url) as client:
        task = asyncio.create_task(read(client.subscribe("r", from_="earliest", state=state)))
        await handling.wait()
    assert stored(state) == "a:2"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert stored(state) == "a:2"


async def test_a_task_that_failed_unnoticed_leaves_its_event_undone(gateway: FakeGateway, state: Path) -> None:
    async with Client(gateway.url) as client:
        task = asyncio.create_task(raises(client.subscribe("r", from_="earliest", state=state)))
        await asyncio.wait([task])
    assert stored(state) == "a:2"
    assert isinstance(task.exception(), Failed)


@pytest.mark.parametrize("error", [False, True])
async def test_a_generator_in_between_repeats_its_last_event_rather_than_lose_it(
    gateway: FakeGateway, state: Path, error: bool
) -> None:
    """Who closes a generator does not say to it whether there was an error."""

    async def values(client: Client) -> AsyncIterator[Any]:
        async for item in client.subscribe("r", from_="earliest", state=state):
            if isinstance(item, Received):
                yield item.data

    async with Client(gateway.url) as client:
        with suppress(Failed):
            async for value in values(client):
                if value == 3:
                    if error:
                        raise Failed
                    break
    assert stored(state) == "a:2"


async def test_a_second_loop_over_a_subscription_goes_on_behind_the_first(gateway: FakeGateway, state: Path) -> None:
    async with Client(gateway.url) as client:
        reading = client.subscribe("r", from_="earliest", state=state)
        with suppress(Failed):
            await raises(reading)
        async for item in reading:
            assert offset_of(item) == 4
            break
    assert stored(state) == "a:4"


async def test_a_subscription_made_anew_in_the_same_client_goes_on_from_the_state(
    gateway: FakeGateway, state: Path
) -> None:
    async with Client(gateway.url) as client:
        with suppress(Failed):
            await raises(client.subscribe("r", from_="earliest", state=state))
        assert [offset_of(item) for item in await take(client.subscribe("r", state=state), 2)] == [3, 4]
    assert stored(state) == "a:4", "the older subscription does not put its own place over it"
    FileCursorStore(state).save("r", "a:0")
    client = Client(gateway.url)
    await take(client.subscribe("r", state=state), 3)
    assert [offset_of(item) for item in await take(client.subscribe("r", state=str(state)), 2)] == [3, 4]
    await client.aclose()
    assert stored(state) == "a:4"


async def test_two_subscriptions_may_keep_their_places_in_one_file(gateway: FakeGateway, state: Path) -> None:
    await gateway.append("q", 1)
    async with Client(gateway.url) as client:
        await take(client.subscribe("r", from_="earliest", state=state), 2)
        await take(client.subscribe("q", from_="earliest", state=str(state)), 1)
    assert (stored(state, "r"), stored(state, "q")) == ("a:2", "a:1")


async def test_a_state_that_cannot_be_written_is_said_once_everything_is_closed(
    gateway: FakeGateway, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    client = Client(gateway.url)
    await take(client.subscribe("r", from_="earliest", state=tmp_path / "folder" / "state"), 3)
    (tmp_path / "folder" / "state").unlink(missing_ok=True)
    (tmp_path / "folder").rmdir()
    with pytest.raises(StateError):
        await client.aclose()
    await until(lambda: not gateway.connections)


# ---- saying it ----


async def test_an_acknowledged_item_is_done_whatever_follows(gateway: FakeGateway, state: Path) -> None:
    async def read() -> None:
        async with Client(gateway.url) as client:
            async for item in client.subscribe("r", from_="earliest", state=state):
                if offset_of(item) == 3:
                    await item.ack()
                    assert stored(state) == "a:3"
                    raise Failed

    with pytest.raises(Failed):
        await read()
    assert stored(state) == "a:3"


async def test_acknowledging_an_older_item_takes_nothing_back(gateway: FakeGateway, state: Path) -> None:
    async with Client(gateway.url) as client:
        first, _, third = await take(client.subscribe("r", from_="earliest", state=state), 3)
        await third.ack()
        await first.ack()
        assert stored(state) == "a:3"


async def test_an_item_of_a_durable_subscription_is_acknowledged_at_the_domain(gateway: FakeGateway) -> None:
    gateway.acked["s"] = ("r", 0)
    async with Client(gateway.url) as client:
        reading = client.attach("s", auto_ack=False, renew=False)
        first, second, _ = await take(reading, 3)
        await second.ack()
        assert gateway.acked["s"] == ("r", 2)
        await first.ack()
    assert gateway.acked["s"] == ("r", 2), "what was not acknowledged is not, and nothing is taken back"


async def test_a_gap_is_acknowledged_as_an_event_is(gateway: FakeGateway, state: Path) -> None:
    gateway.log("r").first = 3

    async def read() -> None:
        async with Client(gateway.url) as client:
            async for item in client.subscribe("r", from_="a:0", state=state):
                assert isinstance(item, Gap)
                await item.ack()
                raise Failed

    with pytest.raises(Failed):
        await read()
    assert stored(state) == "a:2"


async def test_without_a_store_an_acknowledgement_changes_nothing(gateway: FakeGateway) -> None:
    async with Client(gateway.url) as client:
        (item,) = await take(client.subscribe("r", from_="earliest"), 1)
        await item.ack()
    with pytest.raises(HeraldError, match="not received from a subscription"):
        await Received(Event(), "r", "a", 1, "a:1").ack()


async def test_an_item_is_still_plain_data(gateway: FakeGateway) -> None:
    async with Client(gateway.url) as client:
        (item,) = await take(client.subscribe("r", from_="earliest"), 1)
    assert pickle.loads(pickle.dumps(item)) == item == copy.deepcopy(item)
    assert item == Received(item.event, "r", "a", 1, "a:1")


# ---- without asyncio ----


def sync_read(gateway: FakeGateway, state: Path, leave: Callable[[Any], None]) -> str | None:
    state.unlink(missing_ok=True)
    with suppress(Failed), herald.sync.Client(gateway.url) as client:
        leave(client.subscribe("r", from_="earliest", state=state))
    return stored(state)


def filled(gateway: FakeGateway) -> None:
    for number in (1, 2, 3, 4):
        event = {"specversion": "1.0", "id": str(number), "source": "/s", "type": "t", "data": number}
        gateway.log("r").events.append(event)


def test_a_program_without_asyncio_is_told_nothing_twice_either(threaded_gateway: FakeGateway, state: Path) -> None:
    filled(threaded_gateway)

    def leaves_in_order(reading: Any) -> None:
        for item in reading:
            if offset_of(item) == 3:
                break

    def takes(reading: Any) -> None:
        for _ in range(3):
            next(reading)

    def fails(reading: Any) -> None:
        for item in reading:
            if offset_of(item) == 3:
                raise Failed

    def fails_and_goes_on(reading: Any) -> None:
        with suppress(Failed):
            fails(reading)

    def acknowledges(reading: Any) -> None:
        for item in reading:
            if offset_of(item) == 3:
                item.ack()
                raise Failed

    def acknowledges_there(reading: Any) -> None:
        for item in reading:
            if offset_of(item) == 3:
                reading.ack(item)
                raise Failed

    def closes(reading: Any) -> None:
        for item in reading:
            if offset_of(item) == 3:
                reading.close()

    def closes_in_trouble(reading: Any) -> None:
        try:
            fails(reading)
        finally:
            reading.close()

    done = (leaves_in_order, takes, acknowledges, acknowledges_there, closes)
    assert [sync_read(threaded_gateway, state, leave) for leave in done] == ["a:3"] * len(done)
    undone = (fails, fails_and_goes_on, closes_in_trouble)
    assert [sync_read(threaded_gateway, state, leave) for leave in undone] == ["a:2"] * len(undone)


def test_closing_a_client_without_asyncio_in_trouble_leaves_the_event_undone(
    threaded_gateway: FakeGateway, state: Path
) -> None:
    filled(threaded_gateway)
    client = herald.sync.Client(threaded_gateway.url)
    with suppress(Failed):
        try:
            reading = client.subscribe("r", from_="earliest", state=state)
            for _ in range(3):
                next(reading)
            raise Failed
        finally:
            client.close()
    assert stored(state) == "a:2"


def test_an_interrupted_wait_loses_no_event(threaded_gateway: FakeGateway, state: Path) -> None:
    """Ctrl-C comes while a program waits; the event that arrives then was never handed out."""
    filled(threaded_gateway)
    script = (
        "import sys, signal, threading, os, time\n"
        "from herald.sync import Client\n"
        "with Client(sys.argv[1]) as client:\n"
        "    reading = client.subscribe('r', from_='earliest', state=sys.argv[2])\n"
        "    seen = [next(reading).offset for _ in range(4)]\n"
        "    try:\n"
        "        print('waiting', flush=True)\n"
        "        next(reading)\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted', flush=True)\n"
        "    sys.stdin.readline()\n"
        "    seen.append(next(reading).offset)\n"
        "    print(seen, flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, threaded_gateway.url, str(state)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        with herald.sync.Client(threaded_gateway.url) as publisher:
            publisher.publish("r", 5)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "[1, 2, 3, 4, 5]\n"
        assert process.wait(WAIT_S) == 0
    assert stored(state) == "a:5"


# ---- the command ----


def interrupted(arguments: list[str], lines: int, number: int) -> str:
    """What the command says on stderr when it is sent a signal after `lines` lines."""
    with subprocess.Popen(
        [*HERALD, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        for _ in range(lines):
            process.stdout.readline()
        process.send_signal(number)
        _, stderr = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130
    return stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_sub_stores_all_that_was_printed(threaded_gateway: FakeGateway, state: Path, number: int) -> None:
    filled(threaded_gateway)
    command = ["sub", "r", "--from", "earliest", "--state", str(state), "--url", threaded_gateway.url]
    assert "stopped at a:4" in interrupted(command, 4, number)
    assert stored(state) == "a:4"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_attach_acknowledges_all_that_was_printed(threaded_gateway: FakeGateway, number: int) -> None:
    filled(threaded_gateway)
    threaded_gateway.acked["s"] = ("r", 0)
    interrupted(["sub-durable", "attach", "s", "--url", threaded_gateway.url], 4, number)
    deadline = time.monotonic() + WAIT_S
    while threaded_gateway.acked["s"] != ("r", 4):
        assert time.monotonic() < deadline
        time.sleep(0.01)
