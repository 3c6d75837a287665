"""What is noted is in a segment exactly once: over crashes, torn writes, full disks and neighbours in the same folder."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demo.harness.servers import wait_for
from eventing.records import encoding, retention, segments
from eventing.records.buffer import CHUNK_ROWS, Buffer
from eventing.records.rows import DELIVER, LOST, WIDTH, Cells, Who
from eventing.records.spool import FOLDER, Leftover, Spool
from eventing.records.writer import Writer
from tests.records.reading import read_records

NOW = 1_800_000_000.0  # 2027-01-15 08:00:00 UTC
ANN = Who("ann", "localhost", "http")
RP = "a" * 26


def _row(number: int, time_s: float = NOW, operation: str = "publish", events: int = 1) -> Cells:
    return [time_s, ANN, operation, RP, "", events, number, 0, 0.001, 0, 1]


def _gateway(random: str) -> str:
    return segments.gateway_id("Host_1.example", NOW, random * 8)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(tmp_path / "records", _gateway("a"), 60)
    made.start()
    yield made
    made.close(10)


def test_records_of_two_hours_are_two_segments_in_their_folders(tmp_path: Path, writer: Writer) -> None:
    writer.take(_row(1, NOW - 0.5) + _row(2, NOW) + _row(3, NOW + 1) + _row(4, 86_400.0))
    assert writer.close(10)
    root = tmp_path / "records"
    folders = sorted(str(path.parent.relative_to(root)) for path in root.rglob("*.parquet"))
    assert folders == ["date=1970-01-02/hour=00", "date=2027-01-15/hour=07", "date=2027-01-15/hour=08"]
    assert sorted(row["bytes_in"] for row in read_records(root)) == [1, 2, 3, 4]
    for path in root.rglob("*.parquet"):
        assert segments.NAME.fullmatch(path.name)
        assert pyarrow.parquet.read_metadata(path).metadata == {b"herald.schema_version": b"1"}
    assert not list((root / FOLDER).iterdir())


def test_a_byte_that_changes_on_the_disk_is_noticed(tmp_path: Path, writer: Writer) -> None:
    writer.take(_row(1) + _row(2))
    assert writer.close(10)
    (path,) = (tmp_path / "records").rglob("*.parquet")
    group = pyarrow.parquet.read_metadata(path).row_group(0)
    column = next(c for n in range(group.num_columns) if (c := group.column(n)).path_in_schema == "bytes_in")
    begin = column.dictionary_page_offset or column.data_page_offset
    raw = bytearray(path.read_bytes())
    raw[begin + column.total_compressed_size - 1] ^= 1  # of the last page's content
    path.write_bytes(raw)
    with (
        pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as damaged,
        pytest.raises(OSError, match="checksum"),
    ):
        damaged.read()


def test_deliveries_of_a_minute_are_one_record(tmp_path: Path, writer: Writer) -> None:
    writer.take(_row(0, NOW, DELIVER, 2) + _row(9) + _row(0, NOW, DELIVER, 3))
    writer.take(_row(0, NOW, DELIVER, 4) + _row(0, NOW + 60, DELIVER, 5))
    assert writer.close(10)
    found = read_records(tmp_path / "records")
    delivered = sorted((row["time"].timestamp() - NOW, row["events"]) for row in found if row["operation"] == DELIVER)
    assert delivered == [(0, 9), (60, 5)]
    assert [row["bytes_in"] for row in found if row["operation"] == "publish"] == [9]
    assert len({row["number"] for row in found}) == len(found)


def test_a_spool_becomes_a_segment_when_its_period_is_over_and_not_before(tmp_path: Path, writer: Writer) -> None:
    writer.take(_row(1))
    writer.mark(NOW + 59)
    wait_for(lambda: writer.waiting == 0, about="spooled")
    assert read_records(tmp_path / "records") == []
    writer.mark(NOW + 60)
    wait_for(lambda: len(read_records(tmp_path / "records")) == 1, about="a segment")


def test_a_killed_gateways_spool_is_made_segments_by_the_next(tmp_path: Path) -> None:
    root = tmp_path / "records"
    spool = Spool.create(root / FOLDER / f"{_gateway('k')}-000001.spool")
    assert spool is not None
    for number in (1, 2):
        spool.append(encoding.dump(encoding.table(_row(number), _gateway("k"), number)), 1)
    (root / FOLDER / f"{_gateway('k')}-000001.2027011508.tmp").write_bytes(b"half a seg")
    (root / FOLDER / f"{_gateway('o')}-000009.2027011508.tmp").write_bytes(b"of one that has no spool any more")
    assert segments.recover(root) == []  # its writer lives: it holds the lock
    assert (root / FOLDER / f"{_gateway('k')}-000001.2027011508.tmp").exists()
    spool.close()  # as the kernel does for the killed
    assert len(segments.recover(root)) == 1
    assert sorted(row["bytes_in"] for row in read_records(root)) == [1, 2]
    assert segments.recover(root) == []
    assert not list((root / FOLDER).iterdir())


def test_killed_between_the_segment_and_the_removal_of_the_spool_nothing_is_doubled(tmp_path: Path) -> None:
    root = tmp_path / "records"
    path = root / FOLDER / f"{_gateway('k')}-000001.spool"
    spool = Spool.create(path)
    assert spool is not None
    spool.append(encoding.dump(encoding.table(_row(1) + _row(2, NOW - 1), _gateway("k"), 1)), 2)
    spool.close()
    shutil.copy(path, tmp_path / "copy")
    first = segments.recover(root)
    shutil.copy(tmp_path / "copy", path)
    assert segments.recover(root) == first
    assert sorted(row["bytes_in"] for row in read_records(root)) == [1, 2]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_of_a_torn_spool_every_whole_frame_is_read(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    path = tmp_path_factory.mktemp("torn") / "x.spool"
    frames = data.draw(st.lists(st.binary(min_size=1, max_size=50), max_size=5))
    spool = Spool.create(path)
    assert spool is not None
    for frame in frames:
        spool.append(frame, 1)
    spool.close()
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content)))
    torn = content[:at]
    if torn and data.draw(st.booleans()):  # what a machine that lost power leaves: the right size, other bytes
        torn = content[: at - 1] + bytes([content[at - 1] ^ 0x55]) + data.draw(st.binary(max_size=9))
        at -= 1
    path.write_bytes(torn)
    left = Leftover.take(path)
    assert left is not None
    whole, end = 0, 0
    for frame in frames:
        end += 8 + len(frame)
        whole += end <= at
    assert [bytes(frame) for frame in left.frames()][:whole] == frames[:whole]
    assert len(left.frames()) == whole
    left.close()


def test_a_spool_of_another_version_is_set_aside_and_holds_up_nothing(tmp_path: Path) -> None:
    root = tmp_path / "records"
    for random, version in (("a", b"99"), ("b", b"1")):
        spool = Spool.create(root / FOLDER / f"{_gateway(random)}-000001.spool")
        assert spool is not None
        table = encoding.table(_row(1), _gateway(random), 1)
        table = table.replace_schema_metadata({"herald.schema_version": version})
        spool.append(encoding.dump(table), 1)
        spool.close()
    assert len(segments.recover(root)) == 1
    assert [path.suffix for path in (root / FOLDER).iterdir()] == [".unreadable"]


def test_a_reader_that_looks_all_the_time_never_meets_an_unreadable_file(tmp_path: Path) -> None:
    root = tmp_path / "records"
    over = threading.Event()
    looks: Counter[str] = Counter()
    wrong: list[Exception] = []

    def look() -> None:
        while not over.is_set():
            for path in root.glob("date=*/hour=*/*"):
                try:
                    looks[path.name] += pyarrow.parquet.ParquetFile(path).read().num_rows
                except (OSError, ValueError) as error:  # pyarrow raises nothing else
                    wrong.append(error)

    reader = threading.Thread(target=look)
    writers = [Writer(root, _gateway(random), 1) for random in "ab"]  # two gateways in one folder
    reader.start()
    for one in writers:
        one.start()
    for second in range(30):
        for one in writers:
            one.take(list(chain(*(_row(number, NOW + second) for number in range(200)))))
            one.mark(NOW + second + 1)
    for one in writers:
        assert one.close(20)
    wait_for(lambda: len(looks) == 60, about="every file has been looked at")
    over.set()
    reader.join()
    assert wrong == []
    counts = Counter((row["gateway"], row["number"]) for row in read_records(root))
    assert len(counts) == 2 * 30 * 200
    assert set(counts.values()) == {1}


def test_while_the_disk_refuses_records_wait_then_are_dropped_and_counted(tmp_path: Path, caplog: Any) -> None:
    root = tmp_path / "records"
    root.write_text("a file where the folder should be")  # refuses the administrator, too
    writer = Writer(root, _gateway("a"), 60)
    buffer = Buffer(writer, 5000, lambda: NOW)
    writer.start()
    noted = 5000 + 777
    for number in range(noted):
        buffer.note(NOW, ANN, "publish", RP, "", 1, number)
        if number % 1000 == 0:
            buffer.flush()
    assert writer.waiting <= 5000
    buffer.flush()
    wait_for(lambda: "cannot be written" in caplog.text, about="the operator is told")
    assert caplog.text.count("cannot be written") == 1
    root.unlink()
    buffer.flush()
    wait_for(lambda: writer.waiting == 0, about="what waited is written")
    buffer.flush()
    buffer.note(NOW, ANN, "publish", RP)
    buffer.flush()
    assert writer.close(10)
    found = read_records(root)
    lost = [row["events"] for row in found if row["operation"] == LOST]
    assert lost == [777]
    assert sum(row["operation"] == "publish" for row in found) == 5001


def test_noting_never_waits_and_memory_is_bounded_while_nothing_is_written() -> None:
    class Stuck:
        waiting = dropped = 0
        busy = True

        def take(self, cells: Cells) -> None:
            self.waiting += len(cells) // WIDTH

        def mark(self, now: float) -> None:
            return

    stuck = Stuck()
    buffer = Buffer(stuck, 3 * CHUNK_ROWS, lambda: NOW)  # type: ignore[arg-type]
    for number in range(10 * CHUNK_ROWS):
        buffer.note(NOW, ANN, "publish", RP, "", 1, number)
        assert stuck.waiting + len(buffer._cells) // WIDTH <= 3 * CHUNK_ROWS
    stuck.waiting = 0
    buffer.flush()
    assert buffer._cells == []


def test_a_chunk_that_cannot_be_encoded_is_counted_as_lost(tmp_path: Path, caplog: Any) -> None:
    writer = Writer(tmp_path / "records", _gateway("a"), 60)
    buffer = Buffer(writer, 5000, lambda: NOW)
    writer.start()
    buffer.note(NOW, ANN, "publish", RP, "", "not a number")  # type: ignore[arg-type]
    buffer.flush()
    wait_for(lambda: writer.dropped == 1, about="dropped")
    buffer.note(NOW, ANN, "publish", RP)
    buffer.flush()
    assert writer.close(10)
    found = {row["operation"]: row["events"] for row in read_records(tmp_path / "records")}
    assert found == {"publish": 0, LOST: 1}


def test_retention_removes_old_segments_of_ours_and_nothing_else(tmp_path: Path) -> None:
    writer = Writer(tmp_path, _gateway("a"), 60)
    writer.start()
    days = [NOW + day * 86_400 for day in range(4)]
    writer.take(list(chain(*(_row(1, time_s) for time_s in days))))
    assert writer.close(10)
    foreign = tmp_path / "date=2027-01-15" / "hour=08" / "notes.parquet"
    foreign.write_text("not ours")
    other = tmp_path / "date=not-a-day" / "hour=00"
    other.mkdir(parents=True)
    assert retention.purge(tmp_path, date(2027, 1, 17)) == 2
    assert foreign.exists()
    assert other.exists()
    assert not (tmp_path / "date=2027-01-16").exists()
    assert len(list(tmp_path.rglob("*.parquet"))) == 3
    assert retention.purge(tmp_path / "nowhere", date(2027, 1, 17)) == 0
