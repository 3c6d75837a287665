"""Log lines: what they say, in both formats, and that nothing in them looks like a credential."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
from typing import Any

import pytest
from django.conf import settings

from eventing.core.request_origin import Origin, current_origin
from portal.logs.json_lines import JsonLines
from portal.logs.log_lines import TEXT_CHARS_MAX, TextLines, formatter, without_credentials
from portal.logs.request_log import NoCancellations, RequestId
from portal.supervisor.json_terminal import JsonTerminal
from portal.supervisor.output import is_warning
from tests.cpu_time import cpu_time

JWT = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"


def record(message: str, *arguments: object, level: int = logging.WARNING) -> logging.LogRecord:
    made = logging.LogRecord("eventing.test", level, __file__, 1, message, arguments, None)
    assert RequestId().filter(made)
    return made


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"GET /ws?access_token={JWT}&rp=x", "GET /ws?access_token=[hidden]&rp=x"),
        (f"headers: Authorization: Bearer {JWT}", "headers: Authorization: Bearer [hidden]"),
        (f"token {JWT} is bad", "token [hidden] is bad"),
        ("cookie: herald_session=abc", "cookie: [hidden]"),
        ("redis://user:pass@host:6379/0 is away", "redis://user:[hidden]@host:6379/0 is away"),
        (f"x-{JWT}", "x-[hidden]"),
        ("rediss://:pass@host/0", "rediss://:[hidden]@host/0"),
        ("Events of http://127.0.0.1:8000/ at 12:00", "Events of http://127.0.0.1:8000/ at 12:00"),
    ],
    ids=["query", "header", "alone", "cookie", "address", "behind", "address-without-user", "nothing"],
)
def test_what_looks_like_a_credential_is_taken_out(text: str, left: str) -> None:
    assert without_credentials(text) == left
    assert left in TextLines().format(record("%s", text))
    assert json.loads(JsonLines().format(record("%s", text)))["message"] == left


def test_a_json_line_says_what_a_text_line_does() -> None:
    token = current_origin.set(Origin("", "the-request", "api"))
    try:
        made = record("it is %s", "so")
    finally:
        current_origin.reset(token)
    line = JsonLines().format(made)
    said = json.loads(line)
    assert said.pop("time").endswith("+00:00")
    assert said == {
        "level": "WARNING",
        "process": "manage",
        "logger": "eventing.test",
        "request_id": "the-request",
        "message": "it is so",
    }
    text = TextLines().format(made)
    assert text.endswith("WARNING manage eventing.test [the-request]: it is so")
    assert is_warning(line)
    assert is_warning(text)


def test_an_exception_stays_in_its_line() -> None:
    try:
        raise ValueError(f"for {JWT}")
    except ValueError:
        made = record("failed")
        made.exc_info = sys.exc_info()
    line = JsonLines().format(made)
    assert "\n" not in line
    assert "ValueError: for [hidden]" in json.loads(line)["exception"]


def test_a_message_is_one_line_whatever_is_quoted_in_it() -> None:
    forged = "x\n2026-11-21 20:00:00,000 CRITICAL gateway eventing: forged\r\x1b[2J\x9b1m\u2028"
    line = TextLines().format(record("refused: %s", forged))
    assert line.splitlines() == [line]
    assert "\\n2026-11-21" in line
    assert not set(line) & set("\x1b\x9b")


def test_lines_of_a_traceback_are_told_from_lines_of_messages() -> None:
    try:
        raise ValueError("x\n2026-11-21 20:00:00,000 CRITICAL gateway eventing: forged\x1b[2J")
    except ValueError:
        made = record("failed")
        made.exc_info = sys.exc_info()
    first, *rest = TextLines().format(made).splitlines()
    assert first.endswith(": failed")
    assert all(line.startswith("  ") for line in rest)
    assert any("forged" in line for line in rest)
    assert "\x1b" not in "".join(rest)


@pytest.mark.parametrize(
    "text", ["eyJ-", "a.", "eyJaaaaa.", "a://", "Bearer ", "cookie: "], ids=lambda text: text.strip()
)
@pytest.mark.parametrize("made", [TextLines, JsonLines])
def test_a_long_text_of_a_stranger_costs_little_and_is_cut(made: type[logging.Formatter], text: str) -> None:
    long = record("Invalid HTTP_HOST header: %r.", text * (60_000 // len(text)))
    with cpu_time() as took:
        line = made().format(long)
    assert took.seconds < 1, "the process does nothing else meanwhile"
    assert len(line) < 2 * TEXT_CHARS_MAX
    assert "characters more]" in line


def test_the_supervisors_lines_are_objects_and_pass_on_those_of_children() -> None:
    stream = io.StringIO()
    terminal = JsonTerminal(stream)
    terminal.line("Herald")
    terminal.line()
    terminal.state("redis", "ready", "6.2")
    terminal.note("worker", "ended (exit code 1)")
    childs = JsonLines().format(record("said by a child"))
    terminal.note("worker", childs)
    lines = stream.getvalue().splitlines()
    said = [json.loads(line) for line in lines]
    assert [one["message"] for one in said] == [
        "Herald",
        "redis: ready 6.2",
        "worker: ended (exit code 1)",
        "said by a child",
    ]
    assert [one["level"] for one in said] == ["INFO", "INFO", "WARNING", "WARNING"]
    assert lines[-1] == childs
    assert not terminal.tells_secrets


def test_the_formats_have_their_formatter() -> None:
    assert (formatter("json"), formatter("text")) == (
        "portal.logs.json_lines.JsonLines",
        "portal.logs.log_lines.TextLines",
    )


def test_a_client_that_leaves_writes_no_cancellation_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """What asgiref leaves behind, as asyncio tells it; other futures' errors stay."""
    log = logging.getLogger("asyncio")
    kept = NoCancellations()
    log.addFilter(kept)
    try:
        for error in (asyncio.CancelledError(), ValueError("x")):
            log.error("Future exception was never retrieved", exc_info=error)
    finally:
        log.removeFilter(kept)
    assert [type(record.exc_info[1]) for record in caplog.records if record.exc_info] == [ValueError]
    logged: Any = settings.LOGGING
    assert dict(logged["loggers"]["asyncio"]) == {"filters": ["cancellations"]}
