"""The columns of a segment, version 1. Readers may rely on names, types, units and meaning; a change of any is a new version.

pyarrow is imported by the writer's thread when the first record is written, never at start: it is 50 MiB of memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from eventing.core import errors

VERSION = 1
VERSION_KEY = "herald.schema_version"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, Arrow type, unit (empty: a name) and meaning."""

    name: str
    type: str
    unit: str
    about: str


COLUMNS = (
    Column(
        "time", "timestamp", "UTC, microseconds", "When the operation was answered; for `deliver` the minute's begin."
    ),
    Column("gateway", "string", "", "The gateway's life that wrote it; new with each start of the process."),
    Column("number", "int64", "", "With `gateway`, what makes the record unique; grows in the order of writing."),
    Column("operation", "string", "", "What was asked; the table of operations below."),
    Column("outcome", "string", "", "`ok`, `refused` (the client's doing: 4xx) or `failed` (ours: 5xx)."),
    Column("reason", "string", "", "Code of the problem (protocol.md), empty when ok."),
    Column("principal", "string", "", "Who: the subject, or ISSUER#SUBJECT from elsewhere; empty for a stranger."),
    Column(
        "issuer", "string", "", "Who vouches for the principal: this domain or another issuer; empty for a stranger."
    ),
    Column("peer", "string", "", "The peer domain that asked; empty for clients."),
    Column(
        "client",
        "string",
        "",
        "Kind of client: `http`, `pull`, `sse`, `herald.v1`, `cloudevents`, `console`, `gateway`, `domain`.",
    ),
    Column("session", "int64", "", "With `gateway`, the connection; 0 where there is none."),
    Column("rp", "string", "", "Id of the rendezvous point; empty if there is none or it could not be found."),
    Column("events", "int64", "events", "Published, read or delivered; for `records.lost` how many records."),
    Column("bytes_in", "int64", "bytes", "Of the events published, or of the request's body."),
    Column(
        "bytes_out", "int64", "bytes", "Of the events read or delivered, without framing; else of the answer's body."
    ),
    Column("latency_us", "int64", "microseconds", "From the request's arrival to its answer; 0 for what has none."),
    Column("sessions", "int64", "sessions", "Readings that the counts of `deliver` are of, at most at once; else 0."),
    Column(
        "count", "int64", "operations", "What the record stands for: 1, or the publishes that were answered together."
    ),
)
ENCODED = ("gateway", "operation", "outcome", "reason", "principal", "issuer", "peer", "client", "rp")
"""Columns of few different values: dictionary-encoded."""


@cache
def arrow() -> Any:
    """pyarrow, made modest: the system's allocator (its own keeps 25 MiB more) and no threads of its own."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    return pa


@cache
def arrow_schema() -> Any:
    """The Arrow schema of a segment, version in its metadata."""
    pa = arrow()
    types = {"timestamp": pa.timestamp("us", tz="UTC"), "string": pa.string(), "int64": pa.int64()}
    fields = [pa.field(column.name, types[column.type], nullable=False) for column in COLUMNS]
    return pa.schema(fields, metadata={VERSION_KEY: str(VERSION)})


def _failures() -> frozenset[str]:
    kinds, found = [errors.HeraldError], {errors.HeraldError.code}
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if kind.status >= 500:
            found.add(kind.code)
    return frozenset(found)


FAILURES = _failures()
"""Codes of the problems that are ours."""


def outcome(reason: str) -> str:
    """The outcome that a reason means."""
    if not reason:
        return "ok"
    return "failed" if reason in FAILURES or reason.startswith("http-5") else "refused"
