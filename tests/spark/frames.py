"""Frames of a few literal rows, as jobs give them to a transform, and the rows that the transform makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from spark import schemas
from tests.spark.samples import HOME, utc

AT = utc(2027, 1, 15, 8)
"""The time of a row that names none: an hour's begin."""
Row = tuple[Any, ...]

_ARROW = {
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}
_DEFAULTS: dict[str, Any] = {
    "timestamp": AT,
    "date": AT.date(),
    "string": "",
    "bigint": 0,
    "int": 0,
    "boolean": False,
    "double": None,
}
_RECORD = {
    "gateway": "gw",
    "operation": "publish",
    "outcome": "ok",
    "principal": "p1",
    "issuer": HOME,
    "client": "http",
    "rp": "rp1",
    "count": 1,
}


class Frames:
    """Makes frames by the contracts of spark/schemas.py; a row names only what it is about."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def records(self, columns: Sequence[str], *rows: dict[str, Any]) -> Any:
        """Records with `columns` only, as `Work.records` gives them: a transform that needs others fails."""
        numbered = [_RECORD | {"number": number} | row for number, row in enumerate(rows)]
        return self.of(dict(schemas.RECORD), *numbered).select(*columns)

    def table(self, report: str, name: str, *rows: dict[str, Any]) -> Any:
        """A table of a report, as `Run.read` gives it."""
        return self.of({column.name: column.type for column in schemas.table(report, name).columns}, *rows)

    def of(self, columns: dict[str, str], *rows: dict[str, Any]) -> Any:
        """A frame of any columns, by name and type; all may be null, as in what is read from Parquet."""
        unknown = {name for row in rows for name in row} - columns.keys()
        assert not unknown, f"the contract has no {unknown}"
        whole = [{name: row.get(name, _DEFAULTS[kind]) for name, kind in columns.items()} for row in rows]
        schema = pa.schema([(name, _ARROW[kind]) for name, kind in columns.items()])
        return self._engine.createDataFrame(pa.Table.from_pylist(whole, schema))


def ordered(frame: Any, *columns: str, of: str | None = None) -> list[Row]:
    """The rows of a frame in its order.

    Args:
        columns: those that matter; none: all of the contract, or of the frame.
        of: REPORT.TABLE whose contract the frame must meet: every column, of its type before anything is cast.
    """
    if of is not None:
        report, _, name = of.partition(".")
        contract = schemas.table(report, name)
        types = dict(frame.dtypes)
        assert {column.name: types.get(column.name) for column in contract.columns} == {
            column.name: column.type for column in contract.columns
        }
        frame = schemas.conform(frame, contract)
    found = (frame.select(*columns) if columns else frame).toArrow().to_pylist()
    return [tuple(row.values()) for row in found]


def distinct(frame: Any, *columns: str, of: str | None = None) -> set[Row]:
    """The rows of a frame that has no order, none of them twice; see `ordered`."""
    found = ordered(frame, *columns, of=of)
    assert len(set(found)) == len(found), f"rows are doubled: {found}"
    return set(found)
