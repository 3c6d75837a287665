"""Starts by time in the client and the command: what is sent, what is refused, what an older domain answers."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from click.testing import CliRunner, Result
from herald import Client, InputError, Problem
from herald.commands import cli
from herald.starts import start_text

from tests.client.hostile import Hostile

INVALID = {"type": "urn:herald:problem:invalid-cursor", "title": "Invalid cursor", "detail": "This is not a cursor."}
SUBSCRIPTION = {"id": "s", "rp": "r", "lease": {"granted_s": 60, "expires_at": ""}}


@pytest.mark.parametrize(
    ("start", "sent"),
    [
        ("now", "now"), ("abc:5", "abc:5"), ("time:2026-11-24T02:50:00Z", "time:2026-11-24T02:50:00.000000Z"),
        ("time:2026-11-24T02:50Z", "time:2026-11-24T02:50:00.000000Z"), ("time:2026-11-24T03:50+01:00", "time:2026-11-24T02:50:00.000000Z"),
        (datetime(2026, 11, 24, 2, 50, tzinfo=UTC), "time:2026-11-24T02:50:00.000000Z"),
        (datetime(2026, 11, 24, 3, 50, 0, 123, tzinfo=timezone(timedelta(hours=1))), "time:2026-11-24T02:50:00.000123Z"),
    ],
)  # fmt: skip
def test_a_start_is_sent_in_utc(start: str | datetime, sent: str) -> None:
    assert start_text(start) == sent


@pytest.mark.parametrize(
    "start", ["time:", "time:yesterday", "time:1", datetime.min.replace(tzinfo=timezone(timedelta(hours=9)))]
)
def test_what_is_no_time_is_refused_before_it_is_sent(start: str | datetime) -> None:
    with pytest.raises(InputError):
        start_text(start)


def herald(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def started(hostile: Hostile, *arguments: str) -> datetime:
    hostile.body = json.dumps(SUBSCRIPTION).encode()
    result = herald("sub-durable", "create", "r", *arguments, "--url", hostile.url)
    assert result.exit_code == 0, result.output
    kind, _, time = json.loads(hostile.bodies[-1])["from"].partition(":")
    assert kind == "time"
    return datetime.fromisoformat(time)


def test_since_is_a_time_or_a_duration_ago(hostile: Hostile) -> None:
    assert started(hostile, "--since", "2026-11-24T02:50Z") == datetime(2026, 11, 24, 2, 50, tzinfo=UTC)
    before = datetime.now(UTC)
    found = started(hostile, "--since", "30m")
    assert before <= found + timedelta(minutes=30) <= datetime.now(UTC)


@pytest.mark.parametrize(
    "arguments", [["sub", "r", "--since", "soon"], ["sub", "r", "--since", "30m", "--from", "last"], ["sub-durable", "create", "r", "--since", "1"], ["sub", "r", "--from", "time:soon"]]
)  # fmt: skip
def test_what_is_no_start_is_wrong_use(arguments: list[str]) -> None:
    assert herald(*arguments, "--url", "http://127.0.0.1:1").exit_code == 2


def test_an_older_domain_is_named_where_a_subscription_is_created(hostile: Hostile) -> None:
    hostile.status, hostile.body = 400, json.dumps(INVALID).encode()
    result = herald("sub-durable", "create", "r", "--since", "30m", "--url", hostile.url)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "does not support a start by time" in result.stderr
    refused = herald("sub-durable", "create", "r", "--from", "x", "--url", hostile.url)
    assert "This is not a cursor." in refused.stderr, "a cursor that is none is refused in the domain's words"


async def test_an_older_domain_is_named_where_a_reader_subscribes() -> None:
    from tests.client.fake_gateway import FakeGateway

    fake = FakeGateway()
    fake.refusals = [INVALID]
    await fake.start()
    try:
        async with Client(fake.url, token="t") as client:
            with pytest.raises(Problem, match=re.escape("does not support a start by time")):
                async with asyncio.timeout(60):
                    await client.subscribe("r", from_=datetime(2026, 11, 24, tzinfo=UTC))
    finally:
        await fake.stop()
