"""Random access records, and segments of them as gateways write them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eventing.records.schema import VERSION, VERSION_KEY, arrow_schema

HOME = "here.example"
PARTNERS = ("there.example", "yonder.example")
Record = dict[str, Any]


def records(chance: random.Random, count: int, begin: datetime, hours: int, lives: int = 3) -> list[Record]:
    """So many records of a small domain in so many hours, in no order."""
    principals = (
        [(f"p{n}", HOME) for n in range(6)] + [(f"{at}#q{n}", at) for at in PARTNERS for n in range(3)] + [("", "")]
    )
    rps = [f"rp{n:02d}" for n in range(8)] + [""]
    made = []
    numbers: dict[str, int] = defaultdict(int)
    for _ in range(count):
        gateway = f"gw-20270101t000000z-{'abc'[chance.randrange(lives)] * 8}"
        numbers[gateway] += 1
        at = begin + timedelta(microseconds=chance.randrange(hours * 3_600_000_000))
        operation = chance.choice(
            ["publish"] * 4
            + ["deliver"] * 4
            + ["history", "subscribe", "unsubscribe", "rp.create", "federation.exchange", "federation.exchange"]
        )
        principal, issuer = chance.choice(principals)
        federated, delivered = operation.startswith("federation."), operation == "deliver"
        outcome = "ok" if delivered else chance.choices(["ok", "refused", "failed"], [8, 2, 1])[0]
        events = chance.randrange(1, 400) if outcome == "ok" and operation in ("publish", "deliver", "history") else 0
        made.append(
            {
                "time": at.replace(second=0, microsecond=0) if delivered else at,
                "gateway": gateway,
                "number": numbers[gateway],
                "operation": operation,
                "outcome": outcome,
                "reason": {"ok": "", "refused": chance.choice(["forbidden", "rate-limited"]), "failed": "internal"}[
                    outcome
                ],
                "principal": "" if federated else principal,
                "issuer": "" if federated else issuer,
                "peer": chance.choice(PARTNERS) if federated else "",
                "client": "domain" if federated else chance.choice(["http", "herald.v1"]),
                "session": chance.randrange(4),
                "rp": "" if federated else chance.choice(rps),
                "events": events,
                "bytes_in": events * 70 if operation == "publish" else chance.randrange(5_000) if federated else 0,
                "bytes_out": events * chance.randrange(50, 9_000) if operation in ("deliver", "history") else 0,
                "latency_us": 0
                if delivered
                else chance.choice([0, 1, 7, 8, 15, 16, 17, int(2 ** (chance.random() * 30))]),
                "sessions": chance.randrange(1, 9) if delivered else 0,
                "count": chance.choice([1, 1, 1, 40]) if operation == "publish" and outcome == "ok" else 1,
            }
        )
    return made


def burst(of: str, at: datetime, count: int, gateway: str = "gw-20270101t000000z-dddddddd") -> list[Record]:
    """So many refusals of one principal within an hour."""
    empty = dict.fromkeys(("session", "events", "bytes_in", "bytes_out", "latency_us", "sessions"), 0)
    names = {
        "outcome": "refused",
        "reason": "forbidden",
        "principal": of,
        "issuer": HOME,
        "peer": "",
        "client": "http",
        "rp": "rp00",
    }
    return [
        {
            "time": at + timedelta(seconds=n),
            "gateway": gateway,
            "number": n,
            "operation": "publish",
            **names,
            **empty,
            "count": 1,
        }
        for n in range(count)
    ]


def write_segments(root: Path, made: Iterable[Record], chance: random.Random, most: int = 60) -> list[Path]:
    """Segments of at most `most` records, by hour and gateway."""
    parts: dict[tuple[datetime, str], list[Record]] = defaultdict(list)
    for record in made:
        parts[record["time"].replace(minute=0, second=0, microsecond=0), record["gateway"]].append(record)
    paths = []
    for number, ((hour, gateway), rows) in enumerate(sorted(parts.items())):
        rows.sort(key=lambda row: row["number"])
        while rows:
            cut = chance.randrange(1, most)
            paths.append(write_segment(root, hour, f"{gateway}-{number * 1000 + len(rows):06d}", rows[:cut]))
            rows = rows[cut:]
    return paths


def write_segment(root: Path, hour: datetime, name: str, rows: list[Record]) -> Path:
    """One segment, as gateways name and write it."""
    folder = root / f"date={hour:%Y-%m-%d}" / f"hour={hour:%H}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.parquet"
    table = pa.Table.from_pylist(rows, arrow_schema())
    with pq.ParquetWriter(
        path, table.schema, compression="zstd", store_schema=False, write_page_checksum=True
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({VERSION_KEY: str(VERSION)})
    return path


def utc(*parts: int) -> datetime:
    """An instant."""
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]
