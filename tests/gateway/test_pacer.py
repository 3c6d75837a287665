"""The pacer: at once when quiet, once per tick under load, less often where writing is dear. No sockets; a loop in virtual time."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from eventing.gateway.delivery import pacer
from eventing.gateway.delivery.pacer import Pacer
from tests.gateway.virtual_time import in_virtual_time

TICK_S, LONGEST_S = 0.01, 0.06


class Clock:
    """Advances only while a channel writes."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Channel:
    """What the pacer sees of a channel: pending events, and writing that takes `cost_s` per flush."""

    def __init__(self, clock: Clock, cost_s: float = 0.0) -> None:
        self.dirty = False
        self.ready_at = 0.0
        self.flushes: list[tuple[float, int]] = []
        self.pending = 0
        self.sinks: list[Any] = []
        self.twice = asyncio.Event()
        self._clock = clock
        self._cost_s = cost_s

    def flush(self, gathered: dict[Any, list[bytes]] | None = None) -> None:
        self.dirty = False
        self._clock.now += self._cost_s
        self.flushes.append((asyncio.get_running_loop().time(), self.pending))
        self.pending = 0
        for sink in self.sinks:
            if gathered is None:
                sink.write(b".")
            else:
                gathered.setdefault(sink, []).append(b".")
        if len(self.flushes) == 2:
            self.twice.set()


def make(cost_s: float = 0.0) -> tuple[Any, Any]:
    clock = Clock()
    return Pacer(TICK_S, LONGEST_S, clock), Channel(clock, cost_s)


def ring(paced: Any, channel: Any) -> None:
    channel.pending += 1
    paced.soon(channel)


def pauses(channel: Channel) -> list[float]:
    times = [when for when, _ in channel.flushes]
    return [after - before for before, after in itertools.pairwise(times)]


async def ring_for(seconds: float, paced: Any, *channels: Any) -> int:
    rung = 0
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while loop.time() < until:
        for channel in channels:
            ring(paced, channel)
        rung += 1
        await asyncio.sleep(0.001)
    await asyncio.sleep(LONGEST_S + 0.02)
    return rung


@in_virtual_time
async def test_a_quiet_channel_is_written_at_once() -> None:
    paced, channel = make()
    ring(paced, channel)
    assert [count for _, count in channel.flushes] == [1]


@in_virtual_time
async def test_a_busy_channel_is_written_once_per_tick_and_nothing_is_forgotten() -> None:
    paced, channel = make()
    rung = await ring_for(0.2, paced, channel)
    assert sum(count for _, count in channel.flushes) == rung
    assert min(pauses(channel)) >= TICK_S - pacer.SLACK_S - 0.001


@in_virtual_time
async def test_a_dear_channel_pauses_in_proportion_to_its_cost() -> None:
    cost_s = 0.006
    paced, channel = make(cost_s)
    rung = await ring_for(0.3, paced, channel)
    assert sum(count for _, count in channel.flushes) == rung
    assert min(pauses(channel)) >= pacer.GATHERED_FLUSHES * cost_s - pacer.SLACK_S - 0.001


@in_virtual_time
async def test_the_pause_has_a_bound() -> None:
    paced, channel = make(cost_s=10.0)
    ring(paced, channel)
    ring(paced, channel)
    async with asyncio.timeout(LONGEST_S + 1):
        await channel.twice.wait()
    assert pauses(channel)[0] >= LONGEST_S - pacer.SLACK_S - 0.001


@in_virtual_time
async def test_a_cheap_channel_does_not_wait_for_a_dear_one() -> None:
    clock = Clock()
    paced = Pacer(TICK_S, LONGEST_S, clock)
    dear: Any = Channel(clock, cost_s=0.012)
    cheap: Any = Channel(clock)
    await ring_for(0.3, paced, dear, cheap)
    assert len(cheap.flushes) > 1.5 * len(dear.flushes)


@in_virtual_time
async def test_many_quiet_channels_are_gathered_after_the_first_few() -> None:
    clock = Clock()
    paced = Pacer(TICK_S, LONGEST_S, clock)
    channels: list[Any] = [Channel(clock) for _ in range(100)]
    for channel in channels:
        ring(paced, channel)
    await asyncio.sleep(0)
    assert sum(len(channel.flushes) for channel in channels) == pacer.AT_ONCE_MAX
    await asyncio.sleep(TICK_S * 3)
    assert all(sum(count for _, count in channel.flushes) == 1 for channel in channels)


class Sink:
    """A reader of several channels."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)


@in_virtual_time
async def test_a_reader_of_several_quiet_channels_gets_one_write_for_those_of_one_turn() -> None:
    clock = Clock()
    paced = Pacer(TICK_S, LONGEST_S, clock)
    channels: list[Any] = [Channel(clock) for _ in range(4)]
    sink = Sink()
    for channel in channels:
        channel.sinks = [sink]
        ring(paced, channel)
    assert sink.written == [b"."]
    await asyncio.sleep(0)
    assert sink.written == [b".", b"..."]
    assert asyncio.get_running_loop().time() < TICK_S
    assert all(len(channel.flushes) == 1 for channel in channels)
