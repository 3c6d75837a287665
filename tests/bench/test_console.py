"""The console scenario's arithmetic, files and targets."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from bench import report
from bench.measure import BenchMeasurement, Options
from bench.scenarios.console_changes import ChangeKind, all_delays, quantile, slowest
from bench.scenarios.console_domain import _copy
from bench.targets import checks


def row(case: str, **values: float) -> BenchMeasurement:
    return BenchMeasurement("console", case, "herald", values)


@pytest.mark.parametrize(
    ("case", "values", "met"),
    [
        ("change: RP created", {"changes": 20, "p50_ms": 50, "p99_ms": 999, "max_ms": 1200}, True),
        ("change: RP created", {"changes": 20, "p50_ms": 50, "p99_ms": 1001, "max_ms": 1200}, False),
        ("page: overview", {"kib": 299, "warm_kib": 20, "cold_ms": 1999, "warm_ms": 500}, True),
        ("page: overview", {"kib": 301, "warm_kib": 20, "cold_ms": 1999, "warm_ms": 500}, False),
        ("page: overview", {"kib": 100, "warm_kib": 20, "cold_ms": 2001, "warm_ms": 500}, False),
        ("10 consoles", {"cost_percent": 4.9}, True),
        ("10 consoles", {"cost_percent": 5.1}, False),
        ("an hour of live updates", {"heap_mib": 3, "heap_growth_mib": 1.1}, False),
        ("100,000: leases", {"server_ms": 501, "warm_ms": 900}, False),
        ("100,000: export of names", {"server_ms": 9000, "growth_mib": 3}, True),
        ("100,000: export of names", {"server_ms": 900, "growth_mib": 17}, False),
    ],
)
def test_each_number_of_the_issue_is_a_target(case: str, values: dict[str, float], met: bool) -> None:
    assert all(check.passed for check in checks([row(case, **values)])) is met


def test_a_change_that_was_never_seen_misses_a_target_however_quick_the_others_were() -> None:
    lost = BenchMeasurement(
        "console", "change: RP created", "herald", {"changes": 2, "p99_ms": 9}, ("1 not seen on leases",)
    )
    assert [check.passed for check in checks([lost])] == [True, False]


def test_p99_is_the_slowest_of_few_and_the_second_slowest_of_a_hundred_and_one() -> None:
    assert quantile([0.1, 0.9, 0.5], 0.99) == 0.9
    assert quantile([0.1, 0.9, 0.5], 0.5) == 0.5
    assert quantile([number / 100 for number in range(200)], 0.99) == 1.97
    assert quantile([7.0], 0.5) == 7.0


def test_the_slowest_page_of_a_kind_is_named() -> None:
    kind = ChangeKind("RP created", [(0.2, "overview"), (0.7, "leases"), (0.1, "RP list")])
    assert slowest(kind) == "leases"
    assert list(all_delays({"RP created": kind})) == [0.2, 0.7, 0.1]


def test_results_have_files_and_a_plot_of_their_own(tmp_path: Path) -> None:
    rows = [
        row("change: RP created", changes=2, p50_ms=40, p99_ms=90, max_ms=90),
        row("an hour of live updates", heap_mib=2.0, heap_growth_mib=0.1, minute_00_mib=2.0, minute_01_mib=2.1),
    ]
    written = report.write(tmp_path, rows, Options(), 200.0, [], name="console")
    assert [path.name for path in written] == ["console.json", "console.md", "console.png"]
    assert "| change: RP created | Herald | 2 | 40 | 90 |" in written[1].read_text()


def test_copies_differ_in_what_was_given_and_in_nothing_else() -> None:
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (id TEXT PRIMARY KEY, name TEXT, kept INTEGER)")
        database.execute("INSERT INTO t VALUES ('first', 'one', 7)")
        _copy(database, "t", "first", iter([{"id": "b", "name": "two"}, {"id": "c", "name": "three"}]))
        assert database.execute("SELECT * FROM t ORDER BY id").fetchall() == [
            *(("b", "two", 7), ("c", "three", 7)),
            ("first", "one", 7),
        ]
