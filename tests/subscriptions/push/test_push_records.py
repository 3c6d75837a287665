"""Deliveries to endpoints are access records of their subscriptions' owners."""

from __future__ import annotations

from pathlib import Path

from eventing.core.config import Config
from eventing.subscriptions.push.process.access_records import PushAccessRecords
from tests.records.reading import read_records

RP, OTHER = "a" * 26, "b" * 26


def records(folder: Path, *, on: bool = True) -> PushAccessRecords:
    return PushAccessRecords(Config(domain="here.test", records_dir=str(folder), records=on))


def test_deliveries_of_a_minute_are_one_record_for_each_rp_and_owner(tmp_path: Path) -> None:
    noting = records(tmp_path)
    for subscription in ("sub_1", "sub_2", "sub_1"):
        noting.delivered(RP, "ann", subscription, 2, 100)
    noting.delivered(OTHER, "there.test#bob", "sub_3", 1, 7)
    noting.close()
    shown = ("operation", "client", "principal", "issuer", "peer", "rp", "outcome", "events", "bytes_out", "sessions")
    assert sorted(tuple(row[name] for name in shown) for row in read_records(tmp_path)) == [
        ("deliver", "push", "ann", "here.test", "", RP, "ok", 6, 300, 2),
        ("deliver", "push", "there.test#bob", "there.test", "there.test", OTHER, "ok", 1, 7, 1),
    ]


def test_nothing_is_opened_before_the_first_delivery_and_nothing_where_records_are_off(tmp_path: Path) -> None:
    idle, off = records(tmp_path / "idle"), records(tmp_path / "off", on=False)
    idle.flush_if_due()
    off.delivered(RP, "ann", "sub_1", 1, 1)
    off.flush_if_due()
    idle.close()
    off.close()
    assert not (tmp_path / "idle").exists()
    assert not (tmp_path / "off").exists()
