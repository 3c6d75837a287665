"""Rows become columns and come back as they were, whatever text strangers put into names."""

from __future__ import annotations

from itertools import chain
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from eventing.records import encoding, schema
from eventing.records.rows import Who

NAMES = st.text(st.characters(), max_size=40)  # with lone surrogates, which JSON strings may hold
COUNTS = st.integers(0, 2**53)
WHOS = st.builds(Who, NAMES, NAMES, NAMES, NAMES, COUNTS)
ROWS = st.lists(
    st.tuples(
        st.integers(0, 4_000_000_000_000).map(lambda ms: ms / 1000),
        WHOS,
        NAMES,
        NAMES,
        st.sampled_from(["", "forbidden", "unavailable", "http-502", "http-404"]),
        COUNTS,
        COUNTS,
        COUNTS,
        st.floats(-10, 10_000),
        COUNTS,
        COUNTS,
    ),
    min_size=1,
    max_size=30,
)


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_rows_come_back_as_they_were(rows: list[tuple[Any, ...]]) -> None:
    found = encoding.load(encoding.dump(encoding.table(list(chain(*rows)), "g", 7)).to_pybytes())
    assert found.schema.equals(schema.arrow_schema())
    for number, (row, back) in enumerate(zip(rows, found.to_pylist(), strict=True), 7):
        time_s, who, operation, rp, reason, events, bytes_in, bytes_out, latency_s, sessions, count = row
        assert (back["gateway"], back["number"]) == ("g", number)
        assert abs(back["time"].timestamp() - time_s) < 2e-6
        for name, value in {"operation": operation, "rp": rp, "reason": reason}.items():
            assert back[name] == _clean(value)
        for name in ("principal", "issuer", "client", "peer"):
            assert back[name] == _clean(getattr(who, name))
        assert back["session"] == who.session
        assert (back["events"], back["bytes_in"], back["bytes_out"]) == (events, bytes_in, bytes_out)
        assert (back["sessions"], back["count"]) == (sessions, count)
        assert back["latency_us"] == max(0, round(latency_s * 1e6))
        assert back["outcome"] == {"": "ok", "forbidden": "refused", "http-404": "refused"}.get(reason, "failed")


def test_a_name_without_bound_is_cut_and_stays_text() -> None:
    who = Who("é" * 5000, "i", "http")
    found = encoding.load(encoding.dump(encoding.table([1.0, who, "publish", "", "", 1, 2, 0, 0.0, 0, 1], "g", 1)))
    assert found["principal"].to_pylist() == ["é" * (encoding.TEXT_BYTES_MAX // 2)]
