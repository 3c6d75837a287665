"""Search in the history of an RP: backwards from the newest event, a bounded part of the log per request.

A log has no index by type or text, so a search reads events. A request reads at most SCAN_EVENTS events and SCAN_BYTES of them and states how
far back it reached; the page repeats it until it has enough, or the reader stops it. An export reads forwards, a run at a time.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from asgiref.sync import sync_to_async

from eventing.core.decoding import Undecodable, json_reader
from eventing.log import control
from eventing.log.ranges import ENTRIES_MAX, LogEntry, range_after, range_before
from eventing.log.scripts import NoLog

FILTER_CHARS_MAX = 256  # bound: characters of one filter; the request is refused
SCAN_EVENTS = 5_000  # bound: events that one request reads; the answer says how far back it came
SCAN_BYTES = 8 * 1024 * 1024  # bound: bytes of these events, with the last range of them; likewise
FOUND_MAX = 100  # bound: events in one answer; the next request continues before the oldest of them
EXPORT_EVENTS_MAX = 100_000  # bound: newest events that an export reads; older ones are not in it
EXPORT_BYTES_MAX = 256 * 1024 * 1024  # bound: bytes of these events; the last line says where to continue
INCOMPLETE = "io.herald.export.incomplete"


class _Envelope(msgspec.Struct):
    type: str
    source: str
    subject: str = ""


_envelope = json_reader(_Envelope)


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The events that are wanted; empty and None: any. Texts are parts, whatever their case.

    Attributes:
        text: part of the event as JSON, its data among it.
        since_ms, until_ms: stored at or after, before, Unix milliseconds.
    """

    type: str = ""
    source: str = ""
    subject: str = ""
    text: str = ""
    since_ms: int | None = None
    until_ms: int | None = None

    def matches(self, entry: LogEntry) -> bool:
        """Return whether an event is wanted."""
        if self.since_ms is not None and entry.stored_ms < self.since_ms:
            return False
        if self.until_ms is not None and entry.stored_ms >= self.until_ms:
            return False
        if self.text and not _has(entry.body, self.text.casefold()):
            return False
        if not (self.type or self.source or self.subject):
            return True
        try:
            about = _envelope(entry.body)
        except Undecodable:
            return False
        pairs = ((self.type, about.type), (self.source, about.source), (self.subject, about.subject))
        return all(part.casefold() in value.casefold() for part, value in pairs if part)


class EventSearchResult(NamedTuple):
    """Events that one request found, the newest first.

    Attributes:
        epoch, first, next: the log's extent: `first` to `next` - 1 are held.
        scanned: events that were read; back to `back_to`, an offset, which was stored at `back_to_ms`; None: nothing was read.
        done: whether nothing older can match.
    """

    epoch: str
    first: int
    next: int
    scanned: int
    back_to: int | None
    back_to_ms: int | None
    done: bool
    entries: list[LogEntry]


def search(rp: str, wanted: EventFilter, before: int | None) -> EventSearchResult:
    """Read a part of the log backwards, before the offset `before`; None for its end. Raises redis.RedisError."""
    if before is None and wanted.until_ms is not None:
        before = _first_from(rp, wanted.until_ms)
    found: list[LogEntry] = []
    epoch, first, next_, scanned, size, back_to_ms, done = "", 1, 1, 0, 0, None, False
    place = before
    while scanned < SCAN_EVENTS and size < SCAN_BYTES and len(found) < FOUND_MAX:
        try:
            some = range_before(rp, place, min(ENTRIES_MAX, SCAN_EVENTS - scanned))
        except NoLog:
            return EventSearchResult("", 1, 1, 0, None, None, True, [])
        epoch, first, next_ = some.epoch, some.first, some.next
        for entry in reversed(some.entries):
            scanned, size, place, back_to_ms = scanned + 1, size + len(entry.body), entry.offset, entry.stored_ms
            if wanted.since_ms is not None and entry.stored_ms < wanted.since_ms:
                done = True
                break
            if wanted.matches(entry):
                found.append(entry)
                if len(found) == FOUND_MAX:
                    break
        done = done or not some.entries or place is None or place <= first
        if done:
            break
    return EventSearchResult(epoch, first, next_, scanned, place if scanned else None, back_to_ms, done, found)


async def export(rp: str, wanted: EventFilter) -> AsyncIterator[bytes]:
    """Yield the wanted events of the newest EXPORT_EVENTS_MAX, the oldest first, each in one line, byte for byte.

    Beyond EXPORT_BYTES_MAX the last line is an event that states this, and where to continue: a part never passes for the whole.
    """
    log = await sync_to_async(control.log_state)(rp)
    if log is None:
        return
    end, size = log.next, 0
    place = max(log.first, end - EXPORT_EVENTS_MAX) - 1
    if wanted.since_ms is not None:
        place = max(place, await sync_to_async(_first_from)(rp, wanted.since_ms) - 1)
    read = sync_to_async(range_after)
    while place < end - 1:
        try:
            some = await read(rp, place, ENTRIES_MAX)
        except NoLog:
            return
        if not some.entries or some.epoch != log.epoch:
            return
        lines: list[bytes] = []
        for entry in some.entries:
            if entry.offset >= end or not wanted.matches(entry):
                continue
            size += len(entry.body) + 1
            if size > EXPORT_BYTES_MAX:
                yield b"".join([*lines, _incomplete(rp, entry)])
                return
            lines.append(entry.body + b"\n")
        if lines:
            yield b"".join(lines)
        place = some.entries[-1].offset
        if wanted.until_ms is not None and some.entries[-1].stored_ms >= wanted.until_ms:
            return


def _incomplete(rp: str, next_: LogEntry) -> bytes:
    """Return the last line of an export that ends before the event `next_`."""
    says = (
        f"A download has at most {EXPORT_BYTES_MAX // 1024**2} MiB. Continue with events stored at or after since_ms."
    )
    about = {
        "specversion": "1.0",
        "id": f"{rp}:{next_.offset}",
        "source": f"/console/rps/{rp}/export",
        "type": INCOMPLETE,
        "data": {"next_offset": next_.offset, "since_ms": next_.stored_ms, "detail": says},
    }
    return json.dumps(about).encode() + b"\n"


def document(found: EventSearchResult) -> dict[str, Any]:
    """Return the answer to the page."""
    return {
        "epoch": found.epoch,
        "first": found.first,
        "next": found.next,
        "scanned": found.scanned,
        "back_to": found.back_to,
        "back_to_ms": found.back_to_ms,
        "done": found.done,
        "events": [{"offset": one.offset, "at": one.stored_ms, "event": json.loads(one.body)} for one in found.entries],
    }


def _first_from(rp: str, moment_ms: int) -> int:
    """Return the offset of the first event that was stored at this time or later."""
    try:
        return control.offset_at(rp, moment_ms).offset
    except NoLog:
        return 1


def _has(body: bytes, text: str) -> bool:
    """Return whether the event has this text, in lower case: as it was written, or with its escapes resolved."""
    if text in body.decode(errors="replace").casefold():
        return True
    return b"\\" in body and text in json.dumps(json.loads(body), ensure_ascii=False).casefold()
