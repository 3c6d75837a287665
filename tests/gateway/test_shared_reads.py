"""Readers that resume at the same place of a log share a read of it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from eventing.gateway.delivery.channel import Channel
from eventing.log.reader import LogReader
from eventing.log.scripts import NoLog


class SlowReader:
    """A log whose reads end when the test says so."""

    def __init__(self) -> None:
        self.reads: list[int] = []
        self.answers: list[asyncio.Future[Any]] = []

    async def read(self, rp: str, first: int) -> Any:
        self.reads.append(first)
        self.answers.append(asyncio.get_running_loop().create_future())
        return await self.answers[-1]


@pytest.fixture
def log() -> SlowReader:
    return SlowReader()


@pytest.fixture
def channel(log: SlowReader) -> Channel:
    made = Channel("r" * 26, cast(LogReader, log), lambda channel: None)
    made.epoch = "e"
    return made


def readers(channel: Channel, count: int, first: int) -> list[asyncio.Task[Any]]:
    return [asyncio.ensure_future(channel.read(first)) for _ in range(count)]


async def begun() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_readers_at_one_place_share_a_read_and_others_have_theirs(channel: Channel, log: SlowReader) -> None:
    together, others = readers(channel, 100, 1), readers(channel, 1, 2)
    await begun()
    assert log.reads == [1, 2]
    log.answers[0].set_result("run from 1")
    log.answers[1].set_result("run from 2")
    assert await asyncio.gather(*together, *others) == ["run from 1"] * 100 + ["run from 2"]
    again = readers(channel, 1, 1)
    await begun()
    assert log.reads == [1, 2, 1], "a later reader sees what came since"
    log.answers[2].set_result("more")
    assert await again[0] == "more"


async def test_a_reader_that_goes_away_ends_the_read_for_nobody_else(channel: Channel, log: SlowReader) -> None:
    gone, stays = readers(channel, 2, 1)
    await begun()
    gone.cancel()
    await begun()
    log.answers[0].set_result("run")
    assert await stays == "run"
    assert gone.cancelled()


async def test_an_error_reaches_everybody_and_nobody_after(channel: Channel, log: SlowReader) -> None:
    together = readers(channel, 3, 1)
    await begun()
    log.answers[0].set_exception(NoLog("r"))
    outcomes = await asyncio.gather(*together, return_exceptions=True)
    assert [type(one) for one in outcomes] == [NoLog] * 3
    again = readers(channel, 1, 1)
    await begun()
    log.answers[1].set_result("made anew")
    assert await again[0] == "made anew"


async def test_a_read_of_an_earlier_epoch_is_not_shared(channel: Channel, log: SlowReader) -> None:
    before = readers(channel, 1, 1)
    await begun()
    channel.epoch = "f"
    after = readers(channel, 1, 1)
    await begun()
    assert log.reads == [1, 1]
    log.answers[0].set_result("of e")
    log.answers[1].set_result("of f")
    assert await asyncio.gather(*before, *after) == ["of e", "of f"]
