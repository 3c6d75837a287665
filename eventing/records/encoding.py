"""Conversion of records into Arrow columns, and of the spool's bytes back.

Every column is built through buffers: `pa.array` would take three times as long and hold the interpreter's lock during
that time. So are constants: pyarrow imports pandas, where installed, to examine any Python value (measured: 43 MiB and
0.6 s).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from eventing.records import plain, schema
from eventing.records.rows import WIDTH, Cells

TEXT_BYTES_MAX = 1024  # bytes of one name in a record; longer ones are cut: subjects of foreign tokens may be any text


def preload() -> None:
    """Import the modules that the functions below use: 50 MiB and some time, at the start of a gateway rather than with
    its first record."""
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401


def table(cells: Cells, gateway: str, first_number: int) -> Any:
    """Make the Arrow table of the records in `cells`, with names dictionary-encoded. At least one record."""
    pa = schema.arrow()
    import pyarrow.compute as pc

    count = len(cells) // WIDTH
    columns_of = [cells[place::WIDTH] for place in range(WIDTH)]
    times, whos, operations, rps, reasons, events, bytes_in, bytes_out, latencies, sessions, counts = columns_of
    people, person = _distinct(whos)
    kinds, kind = _distinct(reasons)
    columns = {
        "time": pc.cast(_microseconds(times), pa.timestamp("us", tz="UTC")),
        "gateway": _encoded([gateway], _int32(array("i", bytes(4 * count)))),
        "number": _int64(range(first_number, first_number + count)),
        "operation": _encoded(*_distinct(operations)),
        "outcome": _encoded(*_mapped([schema.outcome(reason) for reason in kinds], kind)),
        "reason": _encoded(kinds, kind),
        **{
            name: _encoded(*_mapped([getattr(who, name) for who in people], person))
            for name in ("principal", "issuer", "peer", "client")
        },
        "session": _int64([who.session for who in people]).take(person),
        "rp": _encoded(*_distinct(rps)),
        "events": _int64(events),
        "bytes_in": _int64(bytes_in),
        "bytes_out": _int64(bytes_out),
        "latency_us": pc.max_element_wise(
            _microseconds(latencies), integer(0)
        ),  # the clock may have been set back in between
        "sessions": _int64(sessions),
        "count": _int64(counts),
    }
    names = [column.name for column in schema.COLUMNS]
    metadata = {schema.VERSION_KEY: str(schema.VERSION)}
    return pa.Table.from_arrays([columns[name] for name in names], names=names, metadata=metadata)


def dump(encoded: Any) -> Any:
    """Encode the table as one Arrow IPC stream (a buffer)."""
    import pyarrow as pa

    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, encoded.schema) as stream:
        stream.write_table(encoded)
    return out.getvalue()


def load(data: bytes | memoryview) -> Any:
    """Decode the table that `dump` wrote, or the records of plain.py, names decoded, in the segment's schema.

    Raises ValueError for malformed bytes and for another version of the schema.
    """
    if plain.is_plain(data):
        return table(*plain.load(data)).cast(schema.arrow_schema())
    pa = schema.arrow()
    with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
        found = stream.read_all()
    version = (found.schema.metadata or {}).get(schema.VERSION_KEY.encode())
    if version != str(schema.VERSION).encode():
        raise ValueError(f"The records are of schema version {version!r}; this program writes {schema.VERSION}.")
    return found.cast(schema.arrow_schema())


def integer(value: int) -> Any:
    """Make an Arrow constant."""
    return _int64([value])[0]


def text(value: str) -> Any:
    """Make an Arrow constant."""
    return _strings([value])[0]


def _distinct(values: Sequence[Any]) -> tuple[list[Any], Any]:
    """Return the distinct values, and for each value the index of its distinct one. All loops run inside the interpreter."""
    found = list(dict.fromkeys(values))
    if len(found) == 1:
        return found, _int32(array("i", bytes(4 * len(values))))
    place = dict(zip(found, range(len(found)), strict=True))
    return found, _int32(array("i", map(place.__getitem__, values)))


def _mapped(texts: list[str], which: Any) -> tuple[list[str], Any]:
    """Return as `_distinct`, for values that are given per thing, where `which` is the thing of each row."""
    found, place = _distinct(texts)
    return found, place.take(which)


def _encoded(values: Iterable[str], which: Any) -> Any:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(which, _strings(values))


def _strings(values: Iterable[str]) -> Any:
    import pyarrow as pa

    texts = [_bytes(value) for value in values]
    offsets = array("i", accumulate(map(len, texts), initial=0))
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(texts)))


def _bytes(name: str) -> bytes:
    """Encode as UTF-8 of at most TEXT_BYTES_MAX; a lone surrogate, possible in a JSON string, becomes a question mark."""
    data = name.encode("utf-8", "replace")
    return data if len(data) <= TEXT_BYTES_MAX else data[:TEXT_BYTES_MAX].decode("utf-8", "ignore").encode()


def _int32(values: array[int]) -> Any:
    import pyarrow as pa

    return pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(values)])


def _int64(values: Iterable[int]) -> Any:
    import pyarrow as pa

    numbers = array("q", values)
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def _float64(values: Iterable[float]) -> Any:
    import pyarrow as pa

    numbers = array("d", values)
    return pa.Array.from_buffers(pa.float64(), len(numbers), [None, pa.py_buffer(numbers)])


def _microseconds(seconds: Sequence[float]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    exact = _float64(seconds)
    return pc.cast(pc.round(pc.multiply(exact, _float64([1e6])[0])), pa.int64())
