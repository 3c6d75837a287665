"""`herald bench`: how many events a rendezvous point takes and delivers, and how long that takes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import click

from herald.client import Client
from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.output import note
from herald.commands.progress import ProgressLine
from herald.commands.units import quantile, rate
from herald.errors import HeraldError
from herald.events import Confirmation, Gap, Received, event
from herald.subscription import Subscription

TYPE = "herald.bench"
SIZE_MAX = 256 * 1024  # bytes of data, beyond what a domain takes by default
DELAYS_MAX = 100_000  # bound: delays kept for the quantiles, the last ones
QUIET_S = 2.0  # after which reading ends
QUANTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))


@dataclass(slots=True)
class BenchTally:
    """Measurements so far; times are those of time.monotonic."""

    began: float = 0.0
    last: float = 0.0
    events: int = 0
    lost: int = 0
    delays_ms: deque[float] = field(default_factory=lambda: deque(maxlen=DELAYS_MAX))

    def count(self, events: int, delay_ms: float | None) -> None:
        """Count events at this moment."""
        self.last = time.monotonic()
        self.began = self.began or self.last
        self.events += events
        if delay_ms is not None:
            self.delays_ms.append(delay_ms)

    @property
    def seconds(self) -> float:
        return max(self.last - self.began, 0.001)

    def progress(self) -> str:
        """Return a line for people."""
        return f"{self.events:,} events, {rate(self.events / self.seconds)}/s"

    def document(self, delays: str) -> dict[str, Any]:
        """Return the result, with quantiles of the delays under this name; None: no delay was measured."""
        ordered = sorted(self.delays_ms)
        shown = {name: round(quantile(ordered, share), 2) for name, share in QUANTILES} if ordered else None
        per_s = round(self.events / self.seconds, 1)
        return {"events": self.events, "seconds": round(self.seconds, 3), "events_per_s": per_s, delays: shown}


@click.group(
    cls=CommandGroup, short_help="Measure publishing and reading.", aliases={"publish": "pub", "subscribe": "sub"}
)
def command() -> None:
    """Measure how many events a rendezvous point takes and delivers, and how long that takes.

    \b
    herald rp create bench --max-events 10000
    herald bench sub bench                    in one terminal
    herald bench pub bench --seconds 10       in another
    """


@command.command(cls=Command)
@click.argument("rp")
@click.option(
    "--seconds", type=click.FloatRange(0.1, 3600), default=10.0, show_default=True, help="Seconds to publish."
)
@click.option(
    "--size", type=click.IntRange(0, SIZE_MAX), default=128, show_default=True, help="Bytes of filling in each event."
)
@click.option("--batch", type=click.IntRange(1, 1000), default=1, show_default=True, help="Events of one frame.")
@click.option(
    "--rate", "rate_", type=click.FloatRange(min=0.1), help="Most events per second. Default: as many as are confirmed."
)
@domain_options
def pub(target: Target, rp: str, seconds: float, size: int, batch: int, rate_: float | None) -> None:
    """Publish to RP as fast as it confirms, and print the rate and the delays of the confirmations.

    The events are stored and delivered like any other; the rates of the domain and of your token apply.
    """

    async def work() -> None:
        tally = BenchTally()
        async with target.client() as client:
            with ProgressLine(shown=not target.json) as progress:
                await _publish(client, rp, tally, progress, seconds=seconds, size=size, batch=batch, per_s=rate_)
        found = {**tally.document("confirmed_ms"), "batch": batch, "size": size}
        target.show(found, lambda found: _lines("published", found, "confirmed_ms", "confirmed within"))

    run(work())


async def _publish(
    client: Client,
    rp: str,
    tally: BenchTally,
    progress: ProgressLine,
    *,
    seconds: float,
    size: int,
    batch: int,
    per_s: float | None,
) -> None:
    """Publish until the time is over. Raises the first refusal."""
    failed: list[HeraldError] = []
    filling, sent = "x" * size, 0
    tally.began = time.monotonic()
    end = tally.began + seconds
    while (now := time.monotonic()) < end and not failed:
        due = tally.began + sent / per_s if per_s else now
        if due > now:
            await asyncio.sleep(min(due, end) - now)
            continue
        data = [{"n": sent + index, "sent": time.time(), "filling": filling} for index in range(batch)]
        answer = await client.submit(rp, [event(one, type=TYPE, source="/herald/bench") for one in data])
        answer.add_done_callback(partial(_confirmed, tally, failed, now))
        sent += batch
        progress.show(tally.progress)
    if not failed:
        await client.flush()
    if failed:
        raise failed[0]


def _confirmed(
    tally: BenchTally, failed: list[HeraldError], sent: float, answer: asyncio.Future[list[Confirmation]]
) -> None:
    error = None if answer.cancelled() else answer.exception()
    if isinstance(error, HeraldError):
        failed.append(error)
    elif error is None and not answer.cancelled():
        tally.count(len(answer.result()), 1000 * (time.monotonic() - sent))


@command.command(cls=Command)
@click.argument("rp")
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 3600),
    help="Stop so many seconds after the first event. Default: 2 s after the last one.",
)
@click.option("--count", type=click.IntRange(min=1), help="Stop after this many events.")
@domain_options
def sub(target: Target, rp: str, seconds: float | None, count: int | None) -> None:
    """Read from RP, and print the rate, and the delays of events of `herald bench pub`.

    A delay is the time from publishing to arrival, by the clocks of both machines.
    """

    async def work() -> None:
        tally = BenchTally()
        async with target.client() as client, client.subscribe(rp) as items:
            note(f"reading {rp}; Ctrl-C ends it")
            with ProgressLine(shown=not target.json) as progress:
                await _read(items, tally, progress, seconds=seconds, count=count)
        found = {**tally.document("arrived_ms"), "lost": tally.lost}
        target.show(found, lambda found: _lines("read", found, "arrived_ms", "arrived within"))

    run(work())


async def _read(
    items: Subscription, tally: BenchTally, progress: ProgressLine, *, seconds: float | None, count: int | None
) -> None:
    """Read until so many events were read, or the time is over."""
    reading = aiter(items)
    while count is None or tally.events < count:
        left_s = QUIET_S if seconds is None else tally.began + seconds - time.monotonic()
        try:
            async with asyncio.timeout(left_s if tally.events else None):
                item = await anext(reading)
        except TimeoutError:
            return
        if isinstance(item, Gap):
            tally.lost += max(0, item.end - item.start + 1)
        elif isinstance(item, Received):
            tally.count(1, _delay_ms(item))
            progress.show(tally.progress)


def _delay_ms(item: Received) -> float | None:
    sent = item.data.get("sent") if isinstance(item.data, Mapping) else None
    return 1000 * (time.time() - sent) if item.event.get("type") == TYPE and isinstance(sent, int | float) else None


def _lines(verb: str, found: Mapping[str, Any], delays: str, words: str) -> list[str]:
    lost = f", {found['lost']:,} lost" if found.get("lost") else ""
    lines = [
        f"{verb} {found['events']:,} events in {found['seconds']:.1f} s: {rate(found['events_per_s'])} events/s{lost}"
    ]
    if found[delays] is not None:
        lines.append(f"{words} " + ", ".join(f"{value:,.1f} ms ({name})" for name, value in found[delays].items()))
    return lines
