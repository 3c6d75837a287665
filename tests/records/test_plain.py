"""Plain records: a spool without Arrow becomes the same segments, made by a process that ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.harness.servers import wait_for
from eventing.records import encoding, plain, segments
from eventing.records.rows import WIDTH, Cells, Who
from eventing.records.sealing import TREE, SealingProcess
from eventing.records.spool import FOLDER, Leftover
from eventing.records.writer import Writer
from tests.records.reading import read_records

NOW = 1_800_000_000.0
ANN, BOB = Who("ann", "localhost", "http"), Who("bob", "https://issuer.example", "herald.v1", "", 7)
RP = "a" * 26


def _row(number: int, who: Who = ANN, time_s: float = NOW) -> Cells:
    return [time_s, who, "publish", RP, "", 1, number, 0, 0.001, 0, 1]


def _gateway(random: str = "b") -> str:
    return segments.gateway_id("host", NOW, random * 8)


@given(st.lists(st.tuples(st.integers(0, 2**40), st.text(max_size=20), st.text(max_size=20)), min_size=1, max_size=5))
def test_a_frame_decodes_to_the_records_that_arrow_holds(rows: list[tuple[int, str, str]]) -> None:
    cells = [cell for number, principal, issuer in rows for cell in _row(number, Who(principal, issuer, "http"))]
    by_arrow = encoding.load(encoding.dump(encoding.table(cells, _gateway(), 3)))
    assert encoding.load(plain.dump(cells, _gateway(), 3)).equals(by_arrow)


def test_a_lone_surrogate_in_a_name_is_a_question_mark_as_in_a_segment() -> None:
    frame = plain.dump(_row(1, Who("a\ud800b", "localhost", "http")), _gateway(), 1)
    assert encoding.load(frame)["principal"].to_pylist() == ["a?b"]


@pytest.mark.parametrize("frame", [b"[", b"[]", b'[9,"g",1,[],[]]', b'[1,"g",1,[["a"]],[]]', b'[1,"g",1,[],[0.0,5]]'])
def test_a_malformed_frame_is_a_value_error(frame: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        plain.load(frame)


def test_the_spool_of_a_small_domain_becomes_segments_by_a_process_of_its_own(tmp_path: Path) -> None:
    root = tmp_path / "records"
    writer = Writer(root, _gateway(), 1, SealingProcess(root))
    writer.start()
    writer.take(_row(1) + _row(2, BOB))
    writer.mark(NOW)

    def sealed() -> bool:
        writer.mark(NOW + 5)
        return not writer.busy

    wait_for(sealed, 60, every_s=0.1, about="the spool is made into segments")
    assert sorted((row["bytes_in"], row["principal"], row["session"]) for row in read_records(root)) == [
        (1, "ann", 0),
        (2, "bob", 7),
    ]
    assert not list((root / FOLDER).iterdir())
    assert writer.close(10)


def test_the_last_spool_of_a_small_domain_waits_for_the_next_start(tmp_path: Path) -> None:
    root = tmp_path / "records"
    first = Writer(root, _gateway("b"), 60, SealingProcess(root))
    first.start()
    first.take(_row(1))
    assert first.close(10)
    assert [path.suffix for path in (root / FOLDER).iterdir()] == [".spool"]
    second = Writer(root, _gateway("c"), 60, SealingProcess(root))
    second.start()
    wait_for(lambda: list(root.rglob("*.parquet")), 60, about="the spool is made into segments")
    assert second.close(10)
    assert [row["bytes_in"] for row in read_records(root)] == [1]


def test_a_process_that_is_killed_leaves_the_spool_for_the_next_one(tmp_path: Path) -> None:
    root = tmp_path / "records"
    writer = Writer(root, _gateway(), 60, SealingProcess(root))
    writer.start()
    writer.take(_row(1))
    assert writer.close(10)
    (spool,) = (root / FOLDER).iterdir()
    held = Leftover.take(spool)  # as by a process that is killed before it has made anything
    assert held is not None
    assert _seal(root) == 0
    assert not list(root.rglob("*.parquet"))
    held.close()
    assert _seal(root) == 0
    assert [row["bytes_in"] for row in read_records(root)] == [1]


def test_a_writer_of_a_small_domain_does_not_load_arrow(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib\n"
        "from eventing.records.rows import Who\n"
        "from eventing.records.sealing import SealingProcess\n"
        "from eventing.records.writer import Writer\n"
        "root = pathlib.Path(sys.argv[1])\n"
        "writer = Writer(root, 'host-20270115t080000z-aaaaaaaa', 60, SealingProcess(root))\n"
        "writer.start()\n"
        "writer.take([1.8e9, Who('ann', 'localhost', 'http'), 'publish', 'r', '', 1, 1, 0, 0.1, 0, 1])\n"
        "assert writer.close(10)\n"
        "print('pyarrow' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=TREE, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "False", done.stderr


def _seal(root: Path) -> int:
    command = [sys.executable, "-m", "eventing.records.sealing", str(root)]
    return subprocess.run(command, cwd=TREE, env=dict(os.environ), timeout=60).returncode


def test_the_cells_of_a_record_are_as_many_as_the_frame_assumes() -> None:
    assert len(_row(1)) == WIDTH
