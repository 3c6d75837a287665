"""Search and export of an RP's events for its page: what matches, how far a request reads, and who may."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from eventing.access.services.keys import ensure_domain_key
from eventing.core.events.cloudevents import Event
from eventing.core.events.history import HistoryBounds
from eventing.log import control
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from eventing.store.client import client as redis_client
from portal.console import event_search
from tests.planes import principal

BOUNDS = HistoryBounds(max_events=10_000, max_bytes=64 * 1024**2, max_age_s=None)


@pytest.fixture(autouse=True)
def _stores(transactional_db: None, redis_url: str) -> None:
    redis_client().flushdb()
    ensure_domain_key()


def client_of(name: str, **rights: Any) -> Client:
    client = Client()
    client.force_login(User.objects.create_user(name, **rights))
    return client


def published(*events: dict[str, Any]) -> str:
    rp = rendezvous_point_create(principal=principal("ann"), policy=[]).id
    made = []
    for number, members in enumerate(events, 1):
        about = {"specversion": "1.0", "id": str(number), "source": "/plant/1", "type": "reading", **members}
        made.append(Event("/t", str(number), "t", json.dumps(about).encode()))
    for start in range(0, len(made), 500):
        control.append(rp, made[start : start + 500], BOUNDS)
    return rp


def found(client: Client, rp: str, **query: Any) -> list[int]:
    answer = client.get(f"/console/rps/{rp}/events", query)
    assert answer.status_code == 200, answer.content
    return [event["offset"] for event in answer.json()["events"]]


def test_events_are_found_by_parts_of_type_source_subject_and_text() -> None:
    rp = published(
        {"type": "Alarm.raised", "data": {"level": 3}},
        {"source": "/plant/22", "subject": "Pump-7", "data": "Überdruck"},
        {"data_base64": "AAEC"},
        {"type": "alarm.cleared", "subject": "pump-8", "data": None},
    )
    root = client_of("root", is_superuser=True)
    assert found(root, rp) == [4, 3, 2, 1]
    assert found(root, rp, type="ALARM") == [4, 1]
    assert found(root, rp, type="alarm", subject="8") == [4]
    assert found(root, rp, source="plant/2") == [2]
    assert found(root, rp, text="überDRUCK") == [2], "also where it was written with escapes"
    assert found(root, rp, text="nowhere") == []
    assert found(root, rp, until=1) == []
    assert found(root, rp, since=1) == [4, 3, 2, 1]
    lines = root.get(f"/console/rps/{rp}/export", {"type": "alarm"})
    body = b"".join(asyncio.run(_collected(lines.streaming_content)))  # type: ignore[attr-defined]
    assert [json.loads(line)["id"] for line in body.splitlines()] == ["1", "4"], "the oldest first, in whole lines"
    assert lines["Content-Disposition"] == f'attachment; filename="{rp}.jsonl"'
    for path in ("events", "export"):
        assert client_of(f"nobody-{path}").get(f"/console/rps/{rp}/{path}").status_code == 403
        assert root.get(f"/console/rps/{rp}/{path}", {"text": "x" * 257}).status_code == 400


def test_an_export_that_is_too_large_says_where_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    rp = published(*({"data": "x" * 100} for _ in range(20)))
    root = client_of("root", is_superuser=True)

    def lines() -> list[dict[str, Any]]:
        answer = root.get(f"/console/rps/{rp}/export")
        body = b"".join(asyncio.run(_collected(answer.streaming_content)))  # type: ignore[attr-defined]
        return [json.loads(line) for line in body.splitlines()]

    whole = lines()
    monkeypatch.setattr(event_search, "EXPORT_BYTES_MAX", sum(len(json.dumps(one)) + 1 for one in whole[:12]))
    *part, last = lines()
    assert part == whole[:12]
    assert (last["type"], last["data"]["next_offset"]) == (event_search.INCOMPLETE, 13)
    assert [
        event.offset
        for event in event_search.search(rp, event_search.EventFilter(since_ms=last["data"]["since_ms"]), None).entries
    ][-1] <= 13


async def _collected(lines: Any) -> list[bytes]:
    return [line async for line in lines]


def test_a_request_reads_a_bounded_part_and_says_how_far_back_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_search, "SCAN_EVENTS", 400)
    monkeypatch.setattr(event_search, "FOUND_MAX", 3)
    rp = published(*({"type": "rare" if number in (5, 6, 7, 8, 850) else "t"} for number in range(1, 901)))
    wanted = event_search.EventFilter(type="rare")
    first = event_search.search(rp, wanted, None)
    assert ([one.offset for one in first.entries], first.scanned, first.back_to, first.done) == (
        [850],
        400,
        501,
        False,
    )
    second = event_search.search(rp, wanted, first.back_to)
    assert (second.entries, second.back_to, second.done) == ([], 101, False)
    third = event_search.search(rp, wanted, second.back_to)
    assert ([one.offset for one in third.entries], third.back_to, third.done) == ([8, 7, 6], 6, False)
    last = event_search.search(rp, wanted, third.back_to)
    assert ([one.offset for one in last.entries], last.back_to, last.done) == ([5], 1, True)
