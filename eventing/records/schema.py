"""Columns of a segment, version 1. Readers may rely on names, types, units and meaning; a change of any is a new
version.

The writer's thread imports pyarrow when it writes the first record, never at start: it takes 50 MiB of memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eventing.core import errors
from eventing.core.container import per_process

VERSION = 1
VERSION_KEY = "herald.schema_version"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: name, Arrow type, unit (empty: a name) and meaning."""

    name: str
    type: str
    unit: str
    about: str


COLUMNS = (
    Column("time", "timestamp", "UTC, microseconds", "Time of the answer; for `deliver` the start of the minute."),
    Column("gateway", "string", "", "Id of the gateway process that wrote the record; new with each start."),
    Column("number", "int64", "", "With `gateway`, the unique key of the record; increases in the order of writing."),
    Column("operation", "string", "", "The operation; see the table of operations below."),
    Column(
        "outcome", "string", "", "`ok`, `refused` (4xx: caused by the client) or `failed` (5xx: caused by the domain)."
    ),
    Column("reason", "string", "", "Code of the problem (protocol.md), empty when ok."),
    Column(
        "principal",
        "string",
        "",
        "The principal's identity: the subject, or ISSUER#SUBJECT for a foreign issuer; empty for a stranger.",
    ),
    Column("issuer", "string", "", "Issuer of the principal's token: this domain or another; empty for a stranger."),
    Column("peer", "string", "", "The requesting peer domain; empty for clients."),
    Column(
        "client",
        "string",
        "",
        "Kind of client: `http`, `pull`, `sse`, `herald.v1`, "
        "`cloudevents`, `hook`, `websub`, `push`, `console`, `gateway`, `domain`.",
    ),
    Column("session", "int64", "", "With `gateway`, the connection; 0 without a connection."),
    Column("rp", "string", "", "Id of the rendezvous point; empty if there is none or it was not found."),
    Column(
        "events", "int64", "events", "Events published, read or delivered; for `records.lost` the number of records."
    ),
    Column("bytes_in", "int64", "bytes", "Bytes of the events published, or of the request's body."),
    Column(
        "bytes_out",
        "int64",
        "bytes",
        "Bytes of the events read or delivered, without framing; else of the answer's body.",
    ),
    Column("latency_us", "int64", "microseconds", "From the request's arrival to its answer; 0 if there is none."),
    Column(
        "sessions",
        "int64",
        "sessions",
        "For `deliver`, the maximum of concurrent readings, or the subscriptions of `push`; else 0.",
    ),
    Column(
        "count",
        "int64",
        "operations",
        "Number of operations that the record stands for: 1, or the publishes that were answered together.",
    ),
)
ENCODED = ("gateway", "operation", "outcome", "reason", "principal", "issuer", "peer", "client", "rp")
"""Columns with few distinct values: dictionary-encoded."""


@per_process
def arrow() -> Any:
    """Import pyarrow with the system's allocator (its own keeps 25 MiB more) and without threads of its own."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    return pa


@per_process
def arrow_schema() -> Any:
    """Make the Arrow schema of a segment, with the version in its metadata."""
    pa = arrow()
    types = {"timestamp": pa.timestamp("us", tz="UTC"), "string": pa.string(), "int64": pa.int64()}
    fields = [pa.field(column.name, types[column.type], nullable=False) for column in COLUMNS]
    return pa.schema(fields, metadata={VERSION_KEY: str(VERSION)})


def _failures() -> frozenset[str]:
    kinds, found = [errors.ApplicationError], {errors.ApplicationError.code}
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if kind.status >= 500:
            found.add(kind.code)
    return frozenset(found)


FAILURES = _failures()
"""Codes of problems caused by the domain."""


def outcome(reason: str) -> str:
    """Return the outcome for a reason."""
    if not reason:
        return "ok"
    return "failed" if reason in FAILURES or reason.startswith("http-5") else "refused"
