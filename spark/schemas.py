"""The contracts: columns of the input, and of every table of a report, with unit and meaning. docs/reports.md is made
from them.

A change of a name, a type, a unit or a meaning is a new version. Input version 1 is docs/records.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

INPUT_VERSION = 1
INPUT_VERSION_KEY = b"herald.schema_version"
JOINED_KEY = b"herald.joined"
"""Metadata of a segment made by compaction: how many segments it was made from."""

REPORT_VERSION = 1
"""Version of report.json, the manifest and all tables below."""


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """A column: its name, its type as Spark's SQL names it, its unit (empty for a name, or for none) and its meaning."""

    name: str
    type: str
    unit: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table of a report: its name, what one row is, and its columns."""

    name: str
    about: str
    columns: tuple[ColumnSchema, ...]


RECORD = (
    ("time", "timestamp"),
    ("gateway", "string"),
    ("number", "bigint"),
    ("operation", "string"),
    ("outcome", "string"),
    ("reason", "string"),
    ("principal", "string"),
    ("issuer", "string"),
    ("peer", "string"),
    ("client", "string"),
    ("session", "bigint"),
    ("rp", "string"),
    ("events", "bigint"),
    ("bytes_in", "bigint"),
    ("bytes_out", "bigint"),
    ("latency_us", "bigint"),
    ("sessions", "bigint"),
    ("count", "bigint"),
)
"""The columns of an access record, version 1, as Spark reads them."""

ENCODED = ("gateway", "operation", "outcome", "reason", "principal", "issuer", "peer", "client", "rp")
"""Columns with few distinct values, which are written with a dictionary."""


def record_schema() -> StructType:
    """Return the schema of a segment for Spark, so that Spark does not infer it."""
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(", ".join(f"`{name}` {kind}" for name, kind in RECORD))
    assert isinstance(schema, StructType)  # noqa: S101 - DDL of columns is one
    return schema


def arrow_schema() -> Any:
    """Return the schema for pyarrow, with the version for written files."""
    import pyarrow as pa

    kinds = {"timestamp": pa.timestamp("us", tz="UTC"), "string": pa.string(), "bigint": pa.int64()}
    return pa.schema([pa.field(name, kinds[kind], nullable=False) for name, kind in RECORD])


def ddl(table: TableSchema) -> str:
    """Return a table's columns as Spark's SQL declares them."""
    return ", ".join(f"`{column.name}` {column.type}" for column in table.columns)


def conform(frame: DataFrame, table: TableSchema) -> DataFrame:
    """Return `frame` with exactly the columns of `table`, in its order and of its types; the contract at a transform's
    exit.
    """
    from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users give it

    return frame.select(*(F.col(column.name).cast(column.type).alias(column.name) for column in table.columns))


# Columns of several tables.

RP = ColumnSchema("rp", "string", "", "Id of the rendezvous point.")
HOUR = ColumnSchema("hour", "timestamp", "UTC", "Begin of the hour.")
DAY = ColumnSchema("day", "date", "day of the period's zone", "The day in which the hour begins.")
PRINCIPAL = ColumnSchema("principal", "string", "", "Identity; empty for strangers.")
ISSUER = ColumnSchema(
    "issuer", "string", "", "The domain or OIDC issuer that vouches for the principal; empty for strangers."
)
PEER = ColumnSchema("peer", "string", "", "The peer domain that made the request; empty for clients.")
OPERATION = ColumnSchema("operation", "string", "", "Operation (records.md).")
OPERATIONS = ColumnSchema(
    "operations", "bigint", "operations", "All operations: ok, refused and failed. The sum of `count`."
)
REFUSED = ColumnSchema("refused", "bigint", "operations", "Refused, a client error (4xx).")
FAILED = ColumnSchema("failed", "bigint", "operations", "Failed, a server error (5xx).")
EVENTS = ColumnSchema("events", "bigint", "events", "Published, read or delivered.")
BYTES_IN = ColumnSchema("bytes_in", "bigint", "bytes", "Bytes of published events, or of requests' bodies.")
BYTES_OUT = ColumnSchema("bytes_out", "bigint", "bytes", "Bytes of events read or delivered, or of answers' bodies.")
FIRST = ColumnSchema("first_seen", "timestamp", "UTC", "Time of the first record in the period.")
LAST = ColumnSchema("last_seen", "timestamp", "UTC", "Time of the last record in the period.")
COUNTS = (OPERATIONS, REFUSED, FAILED, EVENTS, BYTES_IN, BYTES_OUT)
SEEN = (FIRST, LAST)


def quantiles(*names: str, of: str) -> tuple[ColumnSchema, ...]:
    """Return columns of latencies by quantile; the value is the middle of its bucket, at most 6.25 % from the true one."""
    words = {"p50": "half", "p90": "90 %", "p95": "95 %", "p99": "99 %", "p999": "99.9 %"}
    return tuple(
        ColumnSchema(
            f"{name}_us",
            "double",
            "microseconds",
            f"{words[name]} of {of} took no longer (±6.25 %); null if there are none.",
        )
        for name in names
    )


ACCESS = (
    TableSchema(
        "usage",
        "Use: a row for every combination that occurs. The other tables but `hours`, `activity` and `anomalies` are "
        "sums of it.",
        (
            PRINCIPAL,
            ISSUER,
            PEER,
            ColumnSchema("client", "string", "", "Kind of client (records.md)."),
            OPERATION,
            RP,
            ColumnSchema("outcome", "string", "", "ok, refused or failed."),
            ColumnSchema("reason", "string", "", "Code of the problem; empty when ok."),
            OPERATIONS,
            EVENTS,
            BYTES_IN,
            BYTES_OUT,
            *SEEN,
        ),
    ),
    TableSchema(
        "activity",
        "Activity: a row for each hour, principal and peer.",
        (HOUR, DAY, PRINCIPAL, ISSUER, PEER, *COUNTS),
    ),
    TableSchema(
        "principals",
        "A row for each principal.",
        (
            PRINCIPAL,
            ISSUER,
            *COUNTS,
            ColumnSchema(
                "rps", "bigint", "rendezvous points", "Distinct rendezvous points named, with or without success."
            ),
            *SEEN,
        ),
    ),
    TableSchema(
        "issuers",
        "A row for each issuer.",
        (
            ISSUER,
            ColumnSchema("foreign", "boolean", "", "Whether it is neither this domain nor a stranger's empty issuer."),
            ColumnSchema("principals", "bigint", "principals", "Distinct principals."),
            *COUNTS,
            *SEEN,
        ),
    ),
    TableSchema("peers", "A row for each peer domain with requests.", (PEER, *COUNTS, *SEEN)),
    TableSchema(
        "operations",
        "A row for each operation and kind of client.",
        (OPERATION, ColumnSchema("client", "string", "", "Kind of client (records.md)."), *COUNTS, *SEEN),
    ),
    TableSchema(
        "rps",
        "A row for each rendezvous point; the empty one is for records without one.",
        (
            RP,
            ColumnSchema("principals", "bigint", "principals", "Distinct principals; all strangers count as one."),
            *COUNTS,
            *SEEN,
        ),
    ),
    TableSchema(
        "refusals",
        "Refusals and failures: a row for each reason, operation and principal.",
        (
            ColumnSchema("outcome", "string", "", "refused or failed."),
            ColumnSchema("reason", "string", "", "Code of the problem (protocol.md)."),
            OPERATION,
            PRINCIPAL,
            ISSUER,
            PEER,
            OPERATIONS,
            *SEEN,
        ),
    ),
    TableSchema("hours", "A row for each hour and operation.", (HOUR, DAY, OPERATION, *COUNTS)),
    TableSchema(
        "anomalies",
        "Anomalies, newest first.",
        (
            ColumnSchema(
                "kind",
                "string",
                "",
                "`new-foreign-issuer`, `new-peer`: not seen before (in the look-back; if that is empty, not within a "
                "day of the first record). "
                "`refusal-burst`: at least 100 refusals in an hour and ten times the mean of the 24 hours before. "
                "`dormant-awake`: active after 14 days of silence or more.",
            ),
            ColumnSchema("subject", "string", "", "The issuer, peer or principal."),
            ISSUER,
            ColumnSchema("at", "timestamp", "UTC", "The hour in which it began."),
            ColumnSchema(
                "value",
                "double",
                "by kind",
                "Operations in the period of a new one; refusals in the hour; days of silence.",
            ),
            ColumnSchema("usual", "double", "by kind", "Refusals an hour in the 24 hours before; else null."),
        ),
    ),
)

PUBLISHES = ColumnSchema("publishes", "bigint", "operations", "Successful publishes; a batch counts once.")
EVENTS_IN = ColumnSchema("events_in", "bigint", "events", "Published.")
DELIVERIES = ColumnSchema(
    "deliveries", "bigint", "events", "Events delivered to sessions or read from the history: `deliver` and `history`."
)
LOAD_BYTES_IN = ColumnSchema("bytes_in", "bigint", "bytes", "Bytes of published events.")
LOAD_BYTES_OUT = ColumnSchema("bytes_out", "bigint", "bytes", "Bytes of the deliveries.")
FAN_OUT = ColumnSchema(
    "fan_out", "double", "deliveries per event", "Deliveries by events published; null if none was published."
)
READING = ColumnSchema(
    "reading_minutes",
    "bigint",
    "session minutes",
    "Sum of `sessions` of `deliver`: minutes of sessions with deliveries.",
)
READERS = ColumnSchema(
    "readers_max", "bigint", "sessions", "The most sessions of one principal and kind of client in one minute."
)
JOINED = ColumnSchema("joined", "bigint", "sessions", "Readings begun.")
LEFT = ColumnSchema("left", "bigint", "sessions", "Readings ended; killed gateways record none.")
MOVED = ColumnSchema("moved", "bigint", "events", "Events published and delivered: events_in and deliveries.")
TRAFFIC = (
    PUBLISHES,
    EVENTS_IN,
    LOAD_BYTES_IN,
    DELIVERIES,
    LOAD_BYTES_OUT,
    MOVED,
    FAN_OUT,
    READING,
    READERS,
    JOINED,
    LEFT,
    REFUSED,
    FAILED,
)
RPS_MADE = ColumnSchema("rps_made", "bigint", "rendezvous points", "Created less deleted ones.")
BUCKET = ColumnSchema("bucket", "int", "", "Number of the bucket.")
IN_BUCKET = ColumnSchema("operations", "bigint", "operations", "Operations in the bucket.")

LOAD = (
    TableSchema(
        "rp_hours",
        "A row for each rendezvous point and hour; the empty one is for records without one.",
        (
            RP,
            HOUR,
            OPERATIONS,
            *TRAFFIC,
            RPS_MADE,
            ColumnSchema(
                "mean_us", "double", "microseconds", "Mean latency of successful publishes; null if there are none."
            ),
            ColumnSchema(
                "most_us", "bigint", "microseconds", "Highest latency of a successful publish; null if there are none."
            ),
        ),
    ),
    TableSchema(
        "rp_histogram",
        "Latencies of successful publishes: a row for each rendezvous point and bucket. Those of two periods may be "
        "added.",
        (RP, BUCKET, IN_BUCKET),
    ),
    TableSchema(
        "hour_histogram",
        "Latencies of all successful operations: a row for each hour, operation and bucket.",
        (HOUR, OPERATION, BUCKET, IN_BUCKET),
    ),
    TableSchema(
        "rps",
        "A row for each rendezvous point.",
        (
            RP,
            *TRAFFIC,
            *quantiles("p50", "p95", "p99", of="successful publishes"),
            ColumnSchema(
                "peak_hour",
                "timestamp",
                "UTC",
                "The hour with most events published and delivered; the first of several.",
            ),
            ColumnSchema("peak_events", "bigint", "events", "Events published and delivered in that hour."),
            ColumnSchema(
                "growth",
                "double",
                "ratio",
                "Events published and delivered in the second half of the period's hours, divided by those in the "
                "first; null if there were none in the first.",
            ),
            ColumnSchema(
                "growth_per_day",
                "double",
                "events per day, per day",
                "Slope of the line through the events of each day (least squares); null for one day.",
            ),
        ),
    ),
    TableSchema(
        "hours",
        "A row for each hour of the domain.",
        (
            HOUR,
            DAY,
            OPERATIONS,
            *TRAFFIC,
            RPS_MADE,
            ColumnSchema("active_rps", "bigint", "rendezvous points", "Rendezvous points with operations."),
            *quantiles("p50", "p95", "p99", of="successful publishes"),
        ),
    ),
    TableSchema(
        "days", "A row for each day of the period's zone, which may have 23 or 25 hours.", (DAY, OPERATIONS, *TRAFFIC)
    ),
    TableSchema(
        "latency",
        "A row for each operation that has a latency and succeeded.",
        (
            OPERATION,
            ColumnSchema("operations", "bigint", "operations", "Operations with a latency."),
            *quantiles("p50", "p90", "p95", "p99", "p999", of="them"),
            ColumnSchema("most_us", "bigint", "microseconds", "Upper bound of the highest bucket: all took less."),
        ),
    ),
    TableSchema(
        "histogram",
        "Latencies of all successful operations: a row for each operation and bucket.",
        (
            OPERATION,
            BUCKET,
            ColumnSchema("from_us", "bigint", "microseconds", "Lowest latency in the bucket."),
            ColumnSchema("to_us", "bigint", "microseconds", "Lowest latency above the bucket."),
            IN_BUCKET,
        ),
    ),
    TableSchema(
        "fame",
        "Sudden fame: hours of RPs with at least 1,000 events published and delivered, and five times the mean of the "
        "24 hours before.",
        (
            RP,
            HOUR,
            ColumnSchema("events", "bigint", "events", "Events published and delivered in the hour."),
            ColumnSchema(
                "usual", "double", "events per hour", "Mean of the 24 hours before, hours without events included."
            ),
            ColumnSchema("ratio", "double", "ratio", "Events divided by usual; null if usual is 0."),
        ),
    ),
    TableSchema(
        "forecast",
        "Forecast of reached limits, by the line through the daily peaks: a row for each limit given with --limits "
        "whose use grows.",
        (
            ColumnSchema("limit", "string", "", "Name of the limit (limits.md)."),
            ColumnSchema("subject", "string", "", "Id of the RP; empty for the domain."),
            ColumnSchema("unit", "string", "", "Unit of the three following columns."),
            ColumnSchema(
                "now",
                "double",
                "as unit says",
                "Value of the last day: the mean of its busiest hour for rates, the present number for counts.",
            ),
            ColumnSchema("per_day", "double", "unit per day", "Growth (least squares over the days)."),
            ColumnSchema("limit_value", "double", "as unit says", "The limit."),
            ColumnSchema(
                "days_left", "double", "days", "Days from the end of the last hour; 0 if it is reached already."
            ),
            ColumnSchema("exhausted_at", "timestamp", "UTC", "When it will be reached."),
        ),
    ),
)

PLACEMENT = (
    TableSchema(
        "advice",
        "A row for each RP and other domain (or issuer) whose principals read it here, greatest saving first.",
        (
            RP,
            ColumnSchema("domain", "string", "", "The readers' issuer, at which a replica would be placed."),
            ColumnSchema("readers", "bigint", "principals", "Distinct principals of that issuer that read."),
            DELIVERIES,
            ColumnSchema("bytes_now", "bigint", "bytes", "Bytes sent to these readers in the period."),
            ColumnSchema(
                "bytes_replica",
                "bigint",
                "bytes",
                "Bytes that a replica would have been sent: for each minute, the most that one principal's session or "
                "pulls read.",
            ),
            ColumnSchema("saved_bytes", "bigint", "bytes", "bytes_now less bytes_replica."),
            ColumnSchema(
                "recommended",
                "boolean",
                "",
                "Whether it saves at least 1 MiB and half of bytes_now, and there are at least two readers.",
            ),
        ),
    ),
    TableSchema(
        "domains",
        "A row for each other domain: the traffic of its readers here, and the saving by the recommendation.",
        (
            ColumnSchema("domain", "string", "", "The readers' issuer."),
            ColumnSchema("rps", "bigint", "rendezvous points", "Rendezvous points read by its principals."),
            ColumnSchema(
                "recommended", "bigint", "rendezvous points", "Rendezvous points of which a replica is recommended."
            ),
            ColumnSchema("bytes_now", "bigint", "bytes", "Bytes sent to its readers."),
            ColumnSchema("saved_bytes", "bigint", "bytes", "Bytes saved by following the recommendation."),
        ),
    ),
)

OVERLAP = (
    TableSchema(
        "regions",
        "Groups of RPs with nearly the same subscribers, greatest saving first.",
        (
            ColumnSchema("region", "string", "", "The smallest id of its RPs."),
            ColumnSchema("rps", "bigint", "rendezvous points", "Rendezvous points in the region."),
            ColumnSchema("subscribers", "bigint", "principals", "Distinct subscribers of all of them."),
            ColumnSchema("readings", "bigint", "readings", "(RP, subscriber) pairs, as gateways keep and flush now."),
            ColumnSchema(
                "saved_readings",
                "bigint",
                "readings",
                "Readings saved if each subscriber read the region as one: readings less subscribers.",
            ),
            ColumnSchema(
                "least_jaccard", "double", "ratio", "Lowest Jaccard index of the verified pairs that connect it."
            ),
        ),
    ),
    TableSchema(
        "members",
        "A row for each RP in a region.",
        (
            ColumnSchema("region", "string", "", "Id of the region."),
            RP,
            ColumnSchema("subscribers", "bigint", "principals", "Distinct subscribers of the RP."),
        ),
    ),
    TableSchema(
        "pairs",
        "Pairs of RPs that MinHash found, verified by their exact Jaccard index, 0.8 or more.",
        (
            ColumnSchema("rp_a", "string", "", "The smaller id."),
            ColumnSchema("rp_b", "string", "", "The greater id."),
            ColumnSchema("common", "bigint", "principals", "Subscribers of both."),
            ColumnSchema("either", "bigint", "principals", "Subscribers of one of them or both."),
            ColumnSchema("jaccard", "double", "ratio", "common divided by either."),
        ),
    ),
)

FEDERATION = (
    TableSchema(
        "peers",
        "A row for each peer: its requests to this domain.",
        (
            PEER,
            *COUNTS,
            ColumnSchema(
                "silence_s_max",
                "double",
                "seconds",
                "The longest time between two successful requests: events from the peer may have been as late.",
            ),
            ColumnSchema(
                "silent_s",
                "double",
                "seconds",
                "Time from its last successful request to the period's end (or the last record of all).",
            ),
            ColumnSchema("backlogs", "bigint", "times", "Returns after 60 s of silence or more."),
            ColumnSchema(
                "backlog_bytes_max",
                "bigint",
                "bytes",
                "Greatest amount received within 60 s after a silence: the backlog.",
            ),
            *quantiles("p50", "p99", of="its successful requests"),
            *SEEN,
        ),
    ),
    TableSchema("peer_hours", "A row for each peer and hour.", (PEER, HOUR, *COUNTS)),
    TableSchema(
        "failures",
        "Refusals and failures: a row for each peer, operation and reason.",
        (
            PEER,
            OPERATION,
            ColumnSchema("outcome", "string", "", "refused or failed."),
            ColumnSchema("reason", "string", "", "Code of the problem."),
            OPERATIONS,
            *SEEN,
        ),
    ),
)

COMPACTION = (
    TableSchema(
        "hours",
        "A row for each hour whose segments were joined.",
        (
            HOUR,
            ColumnSchema("segments", "bigint", "files", "Segments joined and removed."),
            ColumnSchema("records", "bigint", "records", "Records in the new segment."),
            ColumnSchema("duplicates", "bigint", "records", "Duplicate records."),
            ColumnSchema("bytes_before", "bigint", "bytes", "Bytes of the joined segments."),
            ColumnSchema("bytes_after", "bigint", "bytes", "Bytes of the new segment."),
        ),
    ),
)

REPORTS: dict[str, tuple[TableSchema, ...]] = {
    "access": ACCESS,
    "load": LOAD,
    "placement": PLACEMENT,
    "overlap": OVERLAP,
    "federation": FEDERATION,
    "compaction": COMPACTION,
}
"""Every report and its tables."""


def table(report: str, name: str) -> TableSchema:
    """Return one table's contract."""
    return next(one for one in REPORTS[report] if one.name == name)
