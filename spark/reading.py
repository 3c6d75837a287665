"""Reading of segments: which exist, which are readable, which records are in more than one of them.

Before Spark reads a segment, its footer is checked: length, schema and version, number of records, and the range of
`number` for each gateway. Unreadable segments are skipped and named in the report. The ranges show which segments may
have the same record: only those are compared record by record (records of different hours are never the same, as a
record is in the hour of its time). Footers are read by a bounded number of threads, a bounded number at a time.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from spark import schemas
from spark.locations import Location, StoredFile
from spark.periods import HOUR, Period
from spark.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATE_S = 15 * 60
"""Seconds after its hour's end from which a segment counts as late: gateways write one about every minute."""

THREADS = 8
AT_ONCE = 512
"""Footers checked before the next are requested: bounds memory."""

FOOTER_BYTES_MIN = 12
_MAGIC = b"PAR1"
_DATE = re.compile(r"date=([0-9]{4}-[0-9]{2}-[0-9]{2})")
_HOUR = re.compile(r"hour=([0-9]{2})")
_SUFFIX = ".parquet"


@dataclass(frozen=True, slots=True)
class Span:
    """The records of one gateway in a segment have numbers from `low` to `high`; None stands for any gateway."""

    gateway: str | None
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A readable segment."""

    path: str
    hour: datetime
    size: int
    records: int
    spans: tuple[Span, ...]
    late: bool
    joined: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """An unreadable segment, and the reason in words."""

    path: str
    reason: str
    kind: str
    """empty, truncated, corrupt, foreign, version, misplaced or unreadable."""


@dataclass(slots=True)
class Input:
    """The input of a job.

    Attributes:
        clean: segments without a record that another has.
        suspect: segments that may share records.
        skipped: what is not read.
        thorough: whether every page was checked, not only footers.
        staging: where Spark reads copies of the segments; None: in their place.
        digest: of the names and lengths of all segments listed; it differs when there are new ones.
    """

    place: Location
    period: Period
    clean: list[Segment] = field(default_factory=list)
    suspect: list[Segment] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    digest: str = ""
    thorough: bool = False
    staging: Staging | None = None
    opened: dict[bool, DataFrame] = field(default_factory=dict)
    """Segments as Spark has opened them, the suspect ones under True: it reads each file's name and length once."""

    @property
    def segments(self) -> list[Segment]:
        """Return all segments that are read."""
        return self.clean + self.suspect

    @property
    def records(self) -> int:
        """Return the number of records in all segments that are read, duplicates included."""
        return sum(segment.records for segment in self.segments)


class _Bad(Exception):
    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def listing(place: Location, period: Period) -> list[tuple[datetime, StoredFile]]:
    """Return the segments of the hours that `period` touches, with their hour. Other names, as `_spool`, are skipped."""
    found = []
    for day in place.entries(place.root):
        date = _DATE.fullmatch(day.name)
        begin = _day(date[1]) if date and not day.is_file else None
        if begin is None or not (begin < period.end and begin + timedelta(days=1) > period.begin):
            continue
        for folder in place.entries(day.path):
            match = _HOUR.fullmatch(folder.name)
            if match is None or folder.is_file or int(match[1]) > 23:
                continue
            hour = begin + timedelta(hours=int(match[1]))
            if period.touches(hour):
                found += [(hour, entry) for entry in place.entries(folder.path) if _is_segment(entry)]
    return found


def digest(found: Iterable[tuple[datetime, StoredFile]]) -> str:
    """Return the `Input.digest` of a listing: compare it with a report's to decide whether it must be made anew."""
    sha = hashlib.sha256()
    for hour, entry in found:
        sha.update(f"{hour:%Y%m%d%H}/{entry.name}/{entry.size}\n".encode())
    return sha.hexdigest()


def inspect(
    place: Location,
    period: Period,
    say: Callable[[int, int], None] = lambda done, total: None,
    *,
    thorough: bool = False,
    refused: Collection[str] = (),
    staging: Staging | None = None,
) -> Input:
    """Inspect every segment of `period`.

    Args:
        say: called with how many are done, and how many there are.
        thorough: check every page of every segment, not only the footer; for use after Spark has met a damaged one.
        refused: paths of segments that Spark could not read; they are skipped.
        staging: as in Input.

    Raises:
        OSError: the folder cannot be listed.
    """
    found = listing(place, period)
    made = Input(place, period, digest=digest(found), thorough=thorough, staging=staging)
    hours: dict[datetime, list[Segment]] = defaultdict(list)
    rest, done = iter(found), 0
    with ThreadPoolExecutor(THREADS) as threads:
        while some := list(islice(rest, AT_ONCE)):
            for one in threads.map(lambda item: _segment_of(place, *item, thorough=thorough), some):
                if isinstance(one, Segment) and one.path in refused:
                    made.skipped.append(
                        Skipped(one.path, "Spark cannot read it: its footer or data are damaged", "corrupt")
                    )
                elif isinstance(one, Segment):
                    hours[one.hour].append(one)
                elif one is not None:
                    made.skipped.append(one)
            done += len(some)
            say(done, len(found))
    for _, segments in sorted(hours.items()):
        doubtful = overlapping(segments)
        made.clean += [segment for segment in segments if segment.path not in doubtful]
        made.suspect += [segment for segment in segments if segment.path in doubtful]
    return made


def frame(spark: SparkSession, given: Input, columns: Iterable[str] | None = None) -> DataFrame:
    """Return the records of `given` that are in its period, each once.

    Args:
        columns: those wanted; None: all.
    """
    from spark.transforms import records

    wanted = list(columns) if columns is not None else [name for name, _ in schemas.RECORD]
    clean = _open(spark, given, suspect=False) if given.clean or not given.suspect else None
    suspect = _open(spark, given, suspect=True) if given.suspect else None
    found = records.once(clean, suspect, list(dict.fromkeys([*wanted, "time"])))
    if given.period.bounded:
        found = records.within(found, given.period.begin, given.period.end)
    return found.select(*wanted)


def duplicates(spark: SparkSession, given: Input) -> int:
    """Return how many records were left out because another segment has them."""
    if not given.suspect:
        return 0
    return (
        sum(s.records for s in given.suspect)
        - _open(spark, given, suspect=True).select("gateway", "number").distinct().count()
    )


def _open(spark: SparkSession, given: Input, *, suspect: bool) -> DataFrame:
    if suspect not in given.opened:
        schema = schemas.record_schema()
        files = [segment.path for segment in (given.suspect if suspect else given.clean)]
        staging = given.staging if not given.place.is_local else None
        paths = staging.fetch(given.place, files) if staging else [given.place.spark(path) for path in files]
        given.opened[suspect] = (
            spark.read.schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)
        )
    return given.opened[suspect]


def _day(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None


def _is_segment(entry: StoredFile) -> bool:
    return entry.name.endswith(_SUFFIX) and not entry.name.startswith(("_", "."))


def _segment_of(place: Location, hour: datetime, entry: StoredFile, *, thorough: bool) -> Segment | Skipped | None:
    """Return the segment, or why it is skipped; None if it was removed meanwhile (retention, compaction)."""
    import pyarrow as pa

    try:
        metadata = _footer(place, entry)
        _check_schema(metadata)
        spans = _check_groups(metadata, hour)
        if thorough:
            _read_all(place, entry)
        keys = metadata.metadata or {}
        joined = schemas.JOINED_KEY in keys
        written_late = entry.modified_at > (hour + HOUR).timestamp() + LATE_S
        return Segment(entry.path, hour, entry.size, metadata.num_rows, spans, written_late and not joined, joined)
    except _Bad as bad:
        return Skipped(entry.path, str(bad), bad.kind)
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        return Skipped(entry.path, f"it cannot be read: {_first_line(error)}", "unreadable")


def _footer(place: Location, entry: StoredFile) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not entry.is_file:
        raise _Bad("foreign", "it is a folder")
    with place.filesystem.open_input_file(entry.path) as stream:
        size = stream.size()
        if size == 0:
            raise _Bad("empty", "it is empty")
        if size < FOOTER_BYTES_MIN or stream.read_at(4, 0) != _MAGIC:
            raise _Bad("foreign", "it is not a Parquet file")
        if stream.read_at(4, size - 4) != _MAGIC:
            raise _Bad("truncated", "it is truncated or incomplete: its end is missing")
        try:
            return pq.ParquetFile(stream, page_checksum_verification=True).metadata
        except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
            raise _Bad("corrupt", f"its footer is damaged: {_first_line(error)}") from None


def _check_schema(metadata: Any) -> None:
    version = (metadata.metadata or {}).get(schemas.INPUT_VERSION_KEY)
    if version is None:
        raise _Bad("foreign", "it does not contain access records: it names no version of their schema")
    if version != str(schemas.INPUT_VERSION).encode():
        raise _Bad(
            "version",
            f"its schema is version {version.decode(errors='replace')[:20]}, but only version {schemas.INPUT_VERSION} "
            "can be read",
        )
    schema = metadata.schema.to_arrow_schema()
    for wanted in schemas.arrow_schema():
        index = schema.get_field_index(wanted.name)
        if index < 0:
            raise _Bad("foreign", f"it has no column `{wanted.name}`")
        found = schema.field(index).type
        if found != wanted.type:
            raise _Bad("foreign", f"its column `{wanted.name}` is {found}, not {wanted.type}")


def _check_groups(metadata: Any, hour: datetime) -> tuple[Span, ...]:
    """Return the spans of its row groups. Raises _Bad if a record is not of the hour of its folder."""
    places = {metadata.schema.column(index).name: index for index in range(metadata.num_columns)}
    low_at, high_at = hour, hour + HOUR
    spans = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if not group.num_rows:
            continue
        times, gateways, numbers = (_range(group.column(places[name])) for name in ("time", "gateway", "number"))
        if times is not None and not (low_at <= _utc(times[0]) and _utc(times[1]) < high_at):
            raise _Bad(
                "misplaced",
                f"it holds records of {_utc(times[0]):%Y-%m-%d %H:%M} to {_utc(times[1]):%Y-%m-%d %H:%M}, which are "
                "not of its folder's hour",
            )
        one = gateways[0] if gateways is not None and gateways[0] == gateways[1] else None
        low, high = numbers if numbers is not None else (-(2**63), 2**63 - 1)
        spans.append(Span(one, low, high))
    return tuple(spans)


def _range(column: Any) -> tuple[Any, Any] | None:
    found = column.statistics
    return (found.min, found.max) if found is not None and found.has_min_max else None


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _read_all(place: Location, entry: StoredFile) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with place.filesystem.open_input_file(entry.path) as stream:
        try:
            for _ in pq.ParquetFile(stream, page_checksum_verification=True).iter_batches(use_threads=False):
                pass
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _Bad("corrupt", f"its data are damaged: {_first_line(error)}") from None


def overlapping(segments: list[Segment]) -> set[str]:
    """Return the paths of the segments of one hour that may share records: a gateway's numbers overlap."""
    by_gateway: dict[str | None, list[tuple[int, int, str]]] = defaultdict(list)
    for segment in segments:
        for span in segment.spans:
            by_gateway[span.gateway].append((span.low, span.high, segment.path))
    anybody = by_gateway.pop(None, [])
    if anybody and not by_gateway:
        by_gateway[""] = []
    found: set[str] = set()
    for spans in by_gateway.values():
        found |= _meeting(spans + anybody)
    return found


def _meeting(spans: list[tuple[int, int, str]]) -> set[str]:
    """Return the paths of spans that overlap another, of the same segment or of others."""
    found: set[str] = set()
    reach, owner = -(2**63) - 1, ""
    for low, high, path in sorted(spans):
        if low <= reach:
            found |= {path, owner}
        if high > reach:
            reach, owner = high, path
    return found


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
