"""`herald pub`: publish data, files and lines, each confirmed."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click

from herald.client import Client
from herald.commands import reading_input
from herald.commands.common import Command, Target, domain_options, run
from herald.commands.output import complain, say
from herald.errors import InputError
from herald.events import TYPE_DEFAULT, Confirmation, JsonEvent, as_event, event

UNCONFIRMED_MAX = 1000  # kept in order for printing; the client bounds what is in flight


@click.command(cls=Command, short_help="Publish events.")
@click.argument("rp")
@click.argument("data", required=False)
@click.option(
    "--file", "path", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Publish a file's content."
)
@click.option("--lines", is_flag=True, help="Each line of the file (or of standard input) is one event.")
@click.option("--text", is_flag=True, help="The data is text, even if it looks like JSON.")
@click.option("--event", "is_event", is_flag=True, help="The data is a whole CloudEvent in JSON form.")
@click.option("--type", "type_", default=TYPE_DEFAULT, show_default=True, help="The events' type.")
@click.option("--source", help="The events' source. Default: this host.")
@click.option("--id", "id_", help="The event's id: publishing the same id and source again changes nothing.")
@click.option("--count", type=click.IntRange(min=1), default=1, help="Publish the data this many times.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="At most this many events per second.")
@domain_options
def command(
    target: Target,
    rp: str,
    data: str | None,
    path: Path | None,
    lines: bool,
    text: bool,
    is_event: bool,
    type_: str,
    source: str | None,
    id_: str | None,
    count: int,
    rate: float | None,
) -> None:
    """Publish an event to a rendezvous point (id or name), and wait until it is confirmed.

    DATA that is JSON is published as JSON, everything else as text; text that begins with { or [ and is not valid JSON
    causes a warning. Without DATA and --file, standard input is read.
    """
    if data is not None and (path is not None or lines):
        raise click.UsageError("Give DATA, or --file and --lines, but not both.")
    if lines and count != 1:
        raise click.UsageError("--lines and --count cannot be combined: each line is published once.")
    if id_ is not None and (lines or count != 1 or is_event):
        raise click.UsageError("--id names one event; it cannot be combined with --lines, --count or --event.")

    warned = False

    def made(raw: bytes) -> JsonEvent:
        nonlocal warned
        if is_event:
            return _whole_event(raw)
        value = parse(raw, text)
        if not text and not warned and (trouble := broken_json(raw)):
            warned = True  # once, however many lines are like it
            complain(
                f"The data begins like JSON but is not valid JSON ({trouble}); it is published as text. Use "
                "--text to publish text without this warning."
            )
        return event(value, type=type_, source=source, id=id_)

    async def events() -> AsyncIterator[JsonEvent]:
        if lines:
            async for raw in reading_input.lines(path):
                yield made(raw)
            return
        content = await reading_input.whole(path) if data is None else data.encode("utf-8", "surrogateescape")
        for _ in range(count):
            yield made(content)

    run(_publish(target, rp, events(), rate, many=lines or count > 1))


def parse(raw: bytes, as_text: bool) -> Any:
    """Return the data as intended: JSON if it is JSON (and not `as_text`), else text if it is UTF-8, else bytes."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return raw
    if as_text:
        return text
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def broken_json(raw: bytes) -> str:
    """Return where and why data that begins with { or [ is not JSON; empty for everything else, bytes that are no text
    included.
    """
    if not raw.lstrip().startswith((b"{", b"[")):
        return ""
    try:
        json.loads(raw.decode(), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    except UnicodeDecodeError:
        return ""
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _whole_event(raw: bytes) -> JsonEvent:
    value = parse(raw, as_text=False)
    if not isinstance(value, dict) or "specversion" not in value:
        raise InputError("--event needs a CloudEvent in JSON form: an object with specversion, id, source and type.")
    try:
        return as_event(value)
    except ValueError as error:
        raise InputError(str(error)) from error


async def _publish(
    target: Target, rp: str, events: AsyncIterator[JsonEvent], rate: float | None, *, many: bool
) -> None:
    unconfirmed: deque[asyncio.Future[list[Confirmation]]] = deque()
    begun = time.monotonic()
    sent = duplicates = 0

    async def confirm() -> None:
        nonlocal duplicates
        (confirmation,) = await unconfirmed.popleft()
        duplicates += confirmation.duplicate
        if target.json:
            place = {"epoch": confirmation.epoch, "offset": confirmation.offset, "duplicate": confirmation.duplicate}
            target.show({"rp": rp, **place, "id": confirmation.id, "source": confirmation.source}, "")
        elif not many:
            again = " (already stored)" if confirmation.duplicate else ""
            say(f"published {rp} offset {confirmation.offset}, id {confirmation.id}{again}")

    async with target.client() as client:
        async for one in events:
            if rate is not None:
                await asyncio.sleep(max(0.0, begun + sent / rate - time.monotonic()))
            unconfirmed.append(await _submitted(client, rp, one))
            sent += 1
            while unconfirmed and (unconfirmed[0].done() or len(unconfirmed) >= UNCONFIRMED_MAX):
                await confirm()
        while unconfirmed:
            await confirm()
    if many and not target.json:
        known = f" ({duplicates} already stored)" if duplicates else ""
        say(f"published {sent} events to {rp} in {time.monotonic() - begun:.1f} s{known}")


async def _submitted(client: Client, rp: str, one: JsonEvent) -> asyncio.Future[list[Confirmation]]:
    try:
        return await client.submit(rp, [one])
    except ValueError as error:
        raise InputError(f"The event cannot be sent as JSON: {error}") from error
