"""`herald report`: request reports of a domain's access records, show their progress, download their tables."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from herald.client import Client
from herald.commands.common import Command, CommandGroup, Target, domain_options, run
from herald.commands.listing import ListColumn, ListPrinter, list_options
from herald.commands.moments import moment
from herald.commands.output import flush, note, on_terminal, stream
from herald.errors import InputError, Problem

PAGE = 100
POLL_S = 1.0
OPEN = ("queued", "running")
JOBS = ("access", "load", "placement", "overlap", "federation", "compaction")


@click.group(cls=CommandGroup, short_help="Request and read reports of use and load.")
def command() -> None:
    """Reports of a domain's access records. Reading them requires a viewer's token, requesting one an operator's."""


@command.command(name="run", cls=Command)
@click.argument("job", type=click.Choice(JOBS))
@click.option(
    "--from",
    "begin",
    callback=moment,
    metavar="WHEN",
    help="Begin: 2026-11-20, or 30m, 2h, 7d ago. Default: a day before the end.",
)
@click.option("--to", "end", callback=moment, metavar="WHEN", help="End, exclusive. Default: now.")
@click.option("--wait", is_flag=True, help="Wait until the report is done, with progress; then print it.")
@domain_options
def run_(target: Target, job: str, begin: str | None, end: str | None, wait: bool) -> None:
    """Queue a report. They are made one at a time."""

    async def work() -> None:
        async with target.client() as client:
            made = await client.reports.run(job, begin=begin, end=end)
            if not wait:
                target.show(
                    made, lambda made: f"run {made['id']} is {made['state']}; show it: herald report show {made['id']}"
                )
                return
            target.show(await _followed(client, made), _described)

    run(work())


_STATES = {"failed": "red", "running": "green"}
_COLUMNS = (
    ListColumn("run", lambda one: str(one["id"])),
    ListColumn("job", lambda one: one["job"]),
    ListColumn("from", lambda one: f"{one['from'][:16]}Z"),
    ListColumn("to", lambda one: f"{one['to'][:16]}Z"),
    ListColumn("cadence", lambda one: one["cadence"]),
    ListColumn("state", lambda one: _state(one), lambda one: _STATES.get(one["state"])),
)


@command.command(name="list", cls=Command)
@click.option("--job", type=click.Choice(JOBS), help="Only runs of this kind.")
@click.option("--state", help="Only runs in this state: queued, running, done, failed, superseded.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Number of newest runs to list."
)
@list_options(_COLUMNS)
def list_(target: Target, job: str | None, state: str | None, limit: int, columns: tuple[ListColumn, ...]) -> None:
    """List runs, newest first."""

    async def work() -> None:
        cursor, left = None, limit
        empty = "There are no runs. Start one: herald report run JOB"
        with ListPrinter(target, columns, empty=empty) as rows:
            async with target.client() as client:
                while left > 0:
                    page = await client.reports.page(job=job, state=state, cursor=cursor, limit=min(PAGE, left))
                    for item in page["items"]:
                        rows.add(item)
                    left -= len(page["items"])
                    cursor = page["next"]
                    if cursor is None:
                        break
        if page["engine"]["state"] == "off":
            note(str(page["engine"]["detail"]))

    run(work())


@command.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@domain_options
def show(target: Target, run_id: str) -> None:
    """Show a run: its progress, or its report; --json prints all of the report."""

    async def work() -> None:
        async with target.client() as client:
            target.show(await client.reports.get(run_id), _described)

    run(work())


@command.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.argument("table")
@click.option("--format", "form", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True)
@click.option("-o", "--output", metavar="FILE", help="Output file. Default: standard output.")
@domain_options
def download(target: Target, run_id: str, table: str, form: str, output: str | None) -> None:
    """Download a whole table of a report. The names of its tables: herald report show RUN."""
    if output is None and form == "parquet" and on_terminal():
        raise click.UsageError("Parquet is not for a terminal. Give a file with -o FILE.")

    async def work() -> None:
        async with target.client() as client:
            chunks = client.reports.download(run_id, table, form)
            with _written(output) as write:
                async for chunk in chunks:
                    write(chunk)

    run(work())


@command.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@domain_options
def cancel(target: Target, run_id: str) -> None:
    """End a run that is queued or running."""

    async def work() -> None:
        async with target.client() as client:
            ended = await client.reports.cancel(run_id)
        target.show(ended, lambda ended: f"run {ended['id']} is cancelled")

    run(work())


@contextmanager
def _written(output: str | None) -> Iterator[Callable[[bytes], Any]]:
    """Yield a function that writes to a file that appears when it is complete; to standard output for None."""
    if output is None:
        yield stream()
        flush()
        return
    part = Path(f"{output}.part")
    try:
        with part.open("wb") as file:
            yield file.write
        part.replace(output)
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}.") from error
    finally:
        part.unlink(missing_ok=True)


async def _followed(client: Client, made: dict[str, Any]) -> dict[str, Any]:
    """Return the run when it has ended; meanwhile print its progress on standard error."""
    said = ""
    while True:
        found = await client.reports.get(made["id"])
        if found["state"] not in OPEN:
            if found["state"] == "failed":
                raise Problem(title="The report could not be made", detail=found["reason"])
            return found
        text = _state(found)
        if text != said:
            said = text
            note(text)
        await asyncio.sleep(POLL_S)


def _state(item: dict[str, Any]) -> str:
    if item["state"] == "running":
        count = f" {item['done']}/{item['total']}" if item["total"] else ""
        return f"running: {item['stage']}{count}"
    return f"{item['state']}: {item['reason']}" if item["reason"] else str(item["state"])


def _line(item: dict[str, Any]) -> str:
    return f"{item['id']:>6}  {item['job']:10}  {item['from'][:16]}Z  {item['to'][:16]}Z  {item['cadence']:6}  {_state(item)}"


def _described(found: dict[str, Any]) -> list[str]:
    lines = [_line(found)]
    report = found["report"]
    if report is not None:
        given = report["input"]
        skipped = f", {given['skipped_segments']} skipped" if given["skipped_segments"] else ""
        lines.append(f"{given['records']:,} records in {given['segments']:,} segments{skipped}, {report['took_s']} s")
        lines += [_number(name, number) for name, number in report["headline"].items()]
        lines.append("tables: " + ", ".join(f"{name} ({one['rows']:,})" for name, one in report["tables"].items()))
    return lines


def _number(name: str, number: dict[str, Any]) -> str:
    value = number["value"]
    text = f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    unit = "" if value is None or number["unit"] == "UTC" else f" {number['unit']}"
    return f"  {name.replace('_', ' '):22} {text}{unit}"
