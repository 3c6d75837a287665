"""The contracts: columns of the input, and of every table that a report has, with unit and meaning. docs/reports.md is made of them.

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
"""In the metadata of a segment that compaction made: how many segments it was made of."""

REPORT_VERSION = 1
"""Of report.json, the manifest and all tables below."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, its type as Spark's SQL names it, its unit (empty: a name, or none) and its meaning."""

    name: str
    type: str
    unit: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a report: its name, what one row is, and its columns."""

    name: str
    about: str
    columns: tuple[Column, ...]


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
"""Columns of few different values, which are written with a dictionary."""


def record_schema() -> StructType:
    """What Spark is told about a segment, so that it need not look."""
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(", ".join(f"`{name}` {kind}" for name, kind in RECORD))
    assert isinstance(schema, StructType)  # noqa: S101 - DDL of columns is one
    return schema


def arrow_schema() -> Any:
    """The same for pyarrow; what is written carries the version."""
    import pyarrow as pa

    kinds = {"timestamp": pa.timestamp("us", tz="UTC"), "string": pa.string(), "bigint": pa.int64()}
    return pa.schema([pa.field(name, kinds[kind], nullable=False) for name, kind in RECORD])


def ddl(table: Table) -> str:
    """A table's columns as Spark's SQL declares them."""
    return ", ".join(f"`{column.name}` {column.type}" for column in table.columns)


def conform(frame: DataFrame, table: Table) -> DataFrame:
    """`frame` with exactly the columns of `table`, in its order and of its types; the contract at a transform's exit."""
    from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users give it

    return frame.select(*(F.col(column.name).cast(column.type).alias(column.name) for column in table.columns))


# Columns that many tables have.

RP = Column("rp", "string", "", "Id of the rendezvous point.")
HOUR = Column("hour", "timestamp", "UTC", "The hour's begin.")
DAY = Column("day", "date", "day of the period's zone", "The day that the hour begins in.")
PRINCIPAL = Column("principal", "string", "", "Who; empty for strangers.")
ISSUER = Column(
    "issuer", "string", "", "Who vouches for the principal: a domain or an OIDC issuer; empty for strangers."
)
PEER = Column("peer", "string", "", "The peer domain that asked; empty for clients.")
OPERATION = Column("operation", "string", "", "What was asked (records.md).")
OPERATIONS = Column("operations", "bigint", "operations", "All of them: ok, refused and failed. The sum of `count`.")
REFUSED = Column("refused", "bigint", "operations", "Refused: the client's doing (4xx).")
FAILED = Column("failed", "bigint", "operations", "Failed: ours (5xx).")
EVENTS = Column("events", "bigint", "events", "Published, read or delivered.")
BYTES_IN = Column("bytes_in", "bigint", "bytes", "Of events published, or of requests' bodies.")
BYTES_OUT = Column("bytes_out", "bigint", "bytes", "Of events read or delivered, or of answers' bodies.")
FIRST = Column("first_seen", "timestamp", "UTC", "Time of the first record in the period.")
LAST = Column("last_seen", "timestamp", "UTC", "Time of the last record in the period.")
COUNTS = (OPERATIONS, REFUSED, FAILED, EVENTS, BYTES_IN, BYTES_OUT)
SEEN = (FIRST, LAST)


def quantiles(*names: str, of: str) -> tuple[Column, ...]:
    """Columns of latencies by quantile; the value is the middle of its bucket, at most 6.25 % from the true one."""
    words = {"p50": "half", "p90": "90 %", "p95": "95 %", "p99": "99 %", "p999": "99.9 %"}
    return tuple(
        Column(
            f"{name}_us",
            "double",
            "microseconds",
            f"{words[name]} of {of} took no longer (±6.25 %); null if there are none.",
        )
        for name in names
    )


ACCESS = (
    Table(
        "usage",
        "Who used what: a row for every combination that occurs. The other tables but `hours`, `activity` and `anomalies` are sums of it.",
        (
            PRINCIPAL,
            ISSUER,
            PEER,
            Column("client", "string", "", "Kind of client (records.md)."),
            OPERATION,
            RP,
            Column("outcome", "string", "", "ok, refused or failed."),
            Column("reason", "string", "", "Code of the problem; empty when ok."),
            OPERATIONS,
            EVENTS,
            BYTES_IN,
            BYTES_OUT,
            *SEEN,
        ),
    ),
    Table(
        "activity",
        "Who was active when: a row for each hour, principal and peer.",
        (HOUR, DAY, PRINCIPAL, ISSUER, PEER, *COUNTS),
    ),
    Table(
        "principals",
        "A row for each principal.",
        (
            PRINCIPAL,
            ISSUER,
            *COUNTS,
            Column("rps", "bigint", "rendezvous points", "Different ones that were named with success or without."),
            *SEEN,
        ),
    ),
    Table(
        "issuers",
        "A row for each issuer.",
        (
            ISSUER,
            Column("foreign", "boolean", "", "Neither this domain nor a stranger's empty issuer."),
            Column("principals", "bigint", "principals", "Different ones."),
            *COUNTS,
            *SEEN,
        ),
    ),
    Table("peers", "A row for each peer domain that asked.", (PEER, *COUNTS, *SEEN)),
    Table(
        "operations",
        "A row for each operation and kind of client.",
        (OPERATION, Column("client", "string", "", "Kind of client (records.md)."), *COUNTS, *SEEN),
    ),
    Table(
        "rps",
        "A row for each rendezvous point; the empty one stands for what named none.",
        (RP, Column("principals", "bigint", "principals", "Different ones, one for all strangers."), *COUNTS, *SEEN),
    ),
    Table(
        "refusals",
        "What did not succeed: a row for each reason, operation and principal.",
        (
            Column("outcome", "string", "", "refused or failed."),
            Column("reason", "string", "", "Code of the problem (protocol.md)."),
            OPERATION,
            PRINCIPAL,
            ISSUER,
            PEER,
            OPERATIONS,
            *SEEN,
        ),
    ),
    Table("hours", "A row for each hour and operation.", (HOUR, DAY, OPERATION, *COUNTS)),
    Table(
        "anomalies",
        "What stands out, newest first.",
        (
            Column(
                "kind",
                "string",
                "",
                "`new-foreign-issuer`, `new-peer`: not seen before (in the look-back; if that is empty, not within a day of the first record). "
                "`refusal-burst`: at least 100 refusals in an hour and ten times the mean of the 24 hours before. "
                "`dormant-awake`: active after 14 days of silence or more.",
            ),
            Column("subject", "string", "", "The issuer, peer or principal."),
            ISSUER,
            Column("at", "timestamp", "UTC", "The hour that it began in."),
            Column(
                "value",
                "double",
                "by kind",
                "Operations in the period of a new one; refusals in the hour; days of silence.",
            ),
            Column("usual", "double", "by kind", "Refusals an hour in the 24 hours before; else null."),
        ),
    ),
)

PUBLISHES = Column("publishes", "bigint", "operations", "Publishes that succeeded, a batch is one.")
EVENTS_IN = Column("events_in", "bigint", "events", "Published.")
DELIVERIES = Column(
    "deliveries", "bigint", "events", "Delivered to sessions or read from the history: `deliver` and `history`."
)
LOAD_BYTES_IN = Column("bytes_in", "bigint", "bytes", "Of the events published.")
LOAD_BYTES_OUT = Column("bytes_out", "bigint", "bytes", "Of the deliveries.")
FAN_OUT = Column(
    "fan_out", "double", "deliveries per event", "Deliveries by events published; null if none was published."
)
READING = Column(
    "reading_minutes",
    "bigint",
    "session minutes",
    "Sum of `sessions` of `deliver`: minutes of sessions that something was delivered to.",
)
READERS = Column(
    "readers_max", "bigint", "sessions", "The most sessions of one principal and kind of client in one minute."
)
JOINED = Column("joined", "bigint", "sessions", "Readings begun.")
LEFT = Column("left", "bigint", "sessions", "Readings ended; gateways that were killed say nothing.")
MOVED = Column("moved", "bigint", "events", "Published and delivered: events_in and deliveries.")
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
RPS_MADE = Column("rps_made", "bigint", "rendezvous points", "Created less those deleted.")
BUCKET = Column("bucket", "int", "", "The bucket's number.")
IN_BUCKET = Column("operations", "bigint", "operations", "In it.")

LOAD = (
    Table(
        "rp_hours",
        "A row for each rendezvous point and hour; the empty one stands for what named none.",
        (
            RP,
            HOUR,
            OPERATIONS,
            *TRAFFIC,
            RPS_MADE,
            Column("mean_us", "double", "microseconds", "Mean latency of good publishes; null if there are none."),
            Column("most_us", "bigint", "microseconds", "Highest latency of a good publish; null if there are none."),
        ),
    ),
    Table(
        "rp_histogram",
        "The latencies of good publishes: a row for each rendezvous point and bucket. Those of two periods may be added.",
        (RP, BUCKET, IN_BUCKET),
    ),
    Table(
        "hour_histogram",
        "The latencies of all good operations: a row for each hour, operation and bucket.",
        (HOUR, OPERATION, BUCKET, IN_BUCKET),
    ),
    Table(
        "rps",
        "A row for each rendezvous point.",
        (
            RP,
            *TRAFFIC,
            *quantiles("p50", "p95", "p99", of="good publishes"),
            Column(
                "peak_hour",
                "timestamp",
                "UTC",
                "The hour with most events published and delivered; the first of several.",
            ),
            Column("peak_events", "bigint", "events", "Published and delivered in that hour."),
            Column(
                "growth",
                "double",
                "ratio",
                "Events published and delivered in the second half of the period's hours by those in the first; null if those were none.",
            ),
            Column(
                "growth_per_day",
                "double",
                "events per day, per day",
                "Slope of the line through the events of each day (least squares); null for one day.",
            ),
        ),
    ),
    Table(
        "hours",
        "A row for each hour of the domain.",
        (
            HOUR,
            DAY,
            OPERATIONS,
            *TRAFFIC,
            RPS_MADE,
            Column("active_rps", "bigint", "rendezvous points", "Those that anything was asked of."),
            *quantiles("p50", "p95", "p99", of="good publishes"),
        ),
    ),
    Table(
        "days", "A row for each day of the period's zone, which may have 23 or 25 hours.", (DAY, OPERATIONS, *TRAFFIC)
    ),
    Table(
        "latency",
        "A row for each operation that has a latency and succeeded.",
        (
            OPERATION,
            Column("operations", "bigint", "operations", "Those that have a latency."),
            *quantiles("p50", "p90", "p95", "p99", "p999", of="them"),
            Column("most_us", "bigint", "microseconds", "Upper bound of the highest bucket: none took as long."),
        ),
    ),
    Table(
        "histogram",
        "The latencies of all good operations: a row for each operation and bucket.",
        (
            OPERATION,
            BUCKET,
            Column("from_us", "bigint", "microseconds", "Lowest latency in it."),
            Column("to_us", "bigint", "microseconds", "Lowest latency above it."),
            IN_BUCKET,
        ),
    ),
    Table(
        "fame",
        "Sudden fame: hours of RPs with at least 1,000 events published and delivered, and five times the mean of the 24 hours before.",
        (
            RP,
            HOUR,
            Column("events", "bigint", "events", "Published and delivered in the hour."),
            Column("usual", "double", "events per hour", "The mean of the 24 hours before, silent ones counted."),
            Column("ratio", "double", "ratio", "Events by usual; null if there were none."),
        ),
    ),
    Table(
        "forecast",
        "When limits will be reached, by the line through the daily peaks: a row for each limit given with --limits that grows towards its end.",
        (
            Column("limit", "string", "", "Name of the limit (limits.md)."),
            Column("subject", "string", "", "The RP, or empty for the domain."),
            Column("unit", "string", "", "Of the three that follow."),
            Column(
                "now",
                "double",
                "as unit says",
                "The last day's: the mean of its busiest hour for rates, what is there for counts.",
            ),
            Column("per_day", "double", "unit per day", "Growth (least squares over the days)."),
            Column("limit_value", "double", "as unit says", "The limit."),
            Column("days_left", "double", "days", "From the end of the last hour; 0 if it is reached already."),
            Column("exhausted_at", "timestamp", "UTC", "When it will be reached."),
        ),
    ),
)

PLACEMENT = (
    Table(
        "advice",
        "A row for each RP and domain (or issuer) elsewhere whose principals read it here, best saving first.",
        (
            RP,
            Column("domain", "string", "", "The readers' issuer: where a replica would stand."),
            Column("readers", "bigint", "principals", "Different ones from there that read."),
            DELIVERIES,
            Column("bytes_now", "bigint", "bytes", "Sent to these readers in the period."),
            Column(
                "bytes_replica",
                "bigint",
                "bytes",
                "What a replica would have been sent: of each minute the greatest that one principal's session or pulls took.",
            ),
            Column("saved_bytes", "bigint", "bytes", "bytes_now less bytes_replica."),
            Column(
                "recommended",
                "boolean",
                "",
                "It saves at least 1 MiB and half of bytes_now, and there are at least two readers.",
            ),
        ),
    ),
    Table(
        "domains",
        "A row for each domain elsewhere: what its readers take here, and what the advice saves.",
        (
            Column("domain", "string", "", "The readers' issuer."),
            Column("rps", "bigint", "rendezvous points", "Read from there."),
            Column("recommended", "bigint", "rendezvous points", "Of which a replica is advised."),
            Column("bytes_now", "bigint", "bytes", "Sent to its readers."),
            Column("saved_bytes", "bigint", "bytes", "Saved by following the advice."),
        ),
    ),
)

OVERLAP = (
    Table(
        "regions",
        "Groups of RPs with nearly the same subscribers, best saving first.",
        (
            Column("region", "string", "", "The smallest id of its RPs."),
            Column("rps", "bigint", "rendezvous points", "In it."),
            Column("subscribers", "bigint", "principals", "Different ones over all of them."),
            Column("readings", "bigint", "readings", "(RP, subscriber) pairs: what gateways keep and flush now."),
            Column(
                "saved_readings",
                "bigint",
                "readings",
                "If each subscriber read the region as one: readings less subscribers.",
            ),
            Column("least_jaccard", "double", "ratio", "Of the verified pairs that hold it together, the least alike."),
        ),
    ),
    Table(
        "members",
        "A row for each RP in a region.",
        (
            Column("region", "string", "", "The region's id."),
            RP,
            Column("subscribers", "bigint", "principals", "Its different ones."),
        ),
    ),
    Table(
        "pairs",
        "Pairs of RPs that MinHash found, verified by their exact Jaccard index, 0.8 or more.",
        (
            Column("rp_a", "string", "", "The smaller id."),
            Column("rp_b", "string", "", "The greater id."),
            Column("common", "bigint", "principals", "Who read both."),
            Column("either", "bigint", "principals", "Who read one of them or both."),
            Column("jaccard", "double", "ratio", "common by either."),
        ),
    ),
)

FEDERATION = (
    Table(
        "peers",
        "A row for each peer: what it asked of us.",
        (
            PEER,
            *COUNTS,
            Column(
                "silence_s_max",
                "double",
                "seconds",
                "The longest time between two good requests: what comes from it may have been as late.",
            ),
            Column(
                "silent_s",
                "double",
                "seconds",
                "From its last good request to the period's end (or the last record of all).",
            ),
            Column("backlogs", "bigint", "times", "It came back after 60 s of silence or more."),
            Column(
                "backlog_bytes_max", "bigint", "bytes", "The most that it then brought within 60 s: what had waited."
            ),
            *quantiles("p50", "p99", of="its good requests"),
            *SEEN,
        ),
    ),
    Table("peer_hours", "A row for each peer and hour.", (PEER, HOUR, *COUNTS)),
    Table(
        "failures",
        "What did not succeed: a row for each peer, operation and reason.",
        (
            PEER,
            OPERATION,
            Column("outcome", "string", "", "refused or failed."),
            Column("reason", "string", "", "Code of the problem."),
            OPERATIONS,
            *SEEN,
        ),
    ),
)

COMPACTION = (
    Table(
        "hours",
        "A row for each hour whose segments were joined.",
        (
            HOUR,
            Column("segments", "bigint", "files", "Joined and removed."),
            Column("records", "bigint", "records", "In the segment made of them."),
            Column("duplicates", "bigint", "records", "That were in more than one of them."),
            Column("bytes_before", "bigint", "bytes", "Of the segments joined."),
            Column("bytes_after", "bigint", "bytes", "Of the one made."),
        ),
    ),
)

REPORTS: dict[str, tuple[Table, ...]] = {
    "access": ACCESS,
    "load": LOAD,
    "placement": PLACEMENT,
    "overlap": OVERLAP,
    "federation": FEDERATION,
    "compaction": COMPACTION,
}
"""Every report and its tables."""


def table(report: str, name: str) -> Table:
    """One table's contract."""
    return next(one for one in REPORTS[report] if one.name == name)
