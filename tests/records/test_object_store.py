"""Segments in an object store: made, read, kept while the store is away, and removed there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from demo.harness.servers import free_port, wait_for
from eventing.core.config import Config
from eventing.core.errors import ConfigError
from eventing.records import retention, segments
from eventing.records.rows import Cells, Who
from eventing.records.sealing import SealingProcess
from eventing.records.spool import FOLDER
from eventing.records.writer import Writer
from portal.supervisor.diagnosis.findings import Grade
from portal.supervisor.diagnosis.object_stores import object_store_findings
from spark import reading
from spark.locations import Location
from spark.periods import Period
from tests.records.object_store import CREDENTIALS, ObjectStore, object_store

NOW = 1_800_000_000.0  # 2027-01-15 08:00:00 UTC
ANN = Who("ann", "localhost", "http")


def _row(number: int, time_s: float = NOW) -> Cells:
    return [time_s, ANN, "publish", "a" * 26, "", 1, number, 0, 0.001, 0, 1]


def _gateway(random: str) -> str:
    return segments.gateway_id("host", NOW, random * 8)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with object_store() as made:
        yield made


def test_segments_of_two_hosts_are_in_the_store_and_none_on_their_disks(store: ObjectStore, tmp_path: Path) -> None:
    url = store.url("two-hosts")
    for host in "ab":
        writer = Writer(tmp_path / host, _gateway(host), 60, url=url)
        writer.start()
        writer.take(_row(1, NOW - 0.5) + _row(2))
        assert writer.close(60)
        assert [path for path in (tmp_path / host).rglob("*") if path.is_file()] == []
    assert sorted({str(Path(name).parent) for name in store.names("two-hosts")}) == [
        "date=2027-01-15/hour=07",
        "date=2027-01-15/hour=08",
    ]
    found = reading.inspect(Location(url), Period())
    assert (found.records, len(found.clean), found.skipped) == (4, 4, [])


def test_a_store_that_is_away_gets_each_segment_once_when_it_is_back(store: ObjectStore, tmp_path: Path) -> None:
    url, root = store.url("away"), tmp_path / "records"
    gone = free_port()
    writer = Writer(root, _gateway("a"), 1, url=url.replace(str(store.port), str(gone)))
    writer.start()
    writer.take(_row(1) + _row(2))
    writer.mark(NOW + 5)
    wait_for(lambda: writer.waiting == 0, 60, about="written to the spool")
    with object_store(gone) as back:

        def stored() -> bool:
            writer.mark(NOW + 5)
            return back.names("away") != []

        wait_for(stored, 60, every_s=0.2, about="copied to the store")
        assert writer.close(60)
        assert len(back.names("away")) == 1
        assert reading.inspect(Location(back.url("away")), Period()).records == 2
    assert list((root / FOLDER).iterdir()) == []


def test_the_process_of_a_small_domain_copies_to_the_store(store: ObjectStore, tmp_path: Path) -> None:
    root, url = tmp_path / "records", store.url("small")
    writer = Writer(root, _gateway("a"), 60, SealingProcess(root, url), url)
    writer.start()
    writer.take(_row(1))
    assert writer.close(60)
    assert store.names("small") == [], "the last spool is left to the next start"
    sealing = SealingProcess(root, url)
    sealing.start()
    wait_for(lambda: not sealing.runs, 60, about="the process ends")
    assert len(store.names("small")) == 1


def test_old_days_are_removed_and_nothing_else(store: ObjectStore, tmp_path: Path) -> None:
    url = store.url("old")
    writer = Writer(tmp_path, _gateway("a"), 60, url=url)
    writer.start()
    writer.take(_row(1) + _row(2, NOW - 86_400))
    assert writer.close(60)
    place = Location(url)
    place.write(place.path("date=2027-01-14", "hour=08", "notes.txt"), b"of an operator")
    assert retention.purge_store(place, date(2027, 1, 15)) == 1
    assert retention.purge_store(place, date(2027, 1, 15)) == 0
    left = store.names("old")
    assert [name for name in left if name.startswith("date=2027-01-14")] == ["date=2027-01-14/hour=08/notes.txt"]
    assert len(left) == 2
    assert retention.purge_store(place, date(2027, 1, 15) + timedelta(days=1)) == 1


@pytest.mark.parametrize("setting", ["HERALD_RECORDS_DIR", "HERALD_REPORTS_DIR"])
@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("s3://key:secret@bucket/records", "holds credentials"),
        ("ftp://host/records", "begins with ftp://"),
        ("s3://", "names no bucket"),
        ("s3://[bucket", "is no URL"),
    ],
)
def test_an_address_that_is_none_refuses_the_start_without_repeating_secrets(setting: str, url: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        Config.from_env({setting: url})
    assert setting in str(refused.value)
    assert "secret" not in str(refused.value)


def test_the_spool_stays_in_the_data_folder(tmp_path: Path) -> None:
    config = Config.from_env(
        {"HERALD_DATA_DIR": str(tmp_path), "HERALD_RECORDS_DIR": "s3://bucket/records?region=eu-west-1"}
    )
    assert config.records_path == tmp_path / "records"
    assert config.records_place == config.records_url == "s3://bucket/records?region=eu-west-1"


def test_doctor_says_whether_the_stores_can_be_read(store: ObjectStore) -> None:
    config = Config.from_env(
        {
            "HERALD_RECORDS_DIR": store.url("doctor"),
            "HERALD_REPORTS_DIR": "s3://nowhere/x?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:9",
        }
    )
    good, bad = object_store_findings(config)
    assert (good.grade, good.says) == (Grade.OK, "HERALD_RECORDS_DIR can be read")
    assert bad.grade == Grade.FAIL
    assert bad.says.startswith("HERALD_REPORTS_DIR cannot be read: ")
    assert object_store_findings(Config.from_env({})) == []
