"""Lines of a domain's exports: they end at a line feed and nowhere else, whatever an event's or name's text holds."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from pathlib import Path
from typing import Any

import herald.answers
import pytest
from click.testing import CliRunner
from herald import Client, ConnectionLost, Problem
from herald.answers import LINE_BYTES_MAX
from herald.commands import cli

from tests.client.hostile import Hostile

# Whatever str.splitlines ends a line at, but the line feed, which JSON has to escape.
BREAKS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"
ROW = {"id": "a" * 26, "name": "/d/a/", "title": f"one{BREAKS}two", "home": "d", "version": 1}
END = {"cursor": "e:1"}


def jsonl(*rows: Any) -> bytes:
    """As the domain writes them: nothing is escaped but what JSON requires."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


@pytest.fixture
def domain(hostile: Hostile) -> Hostile:
    hostile.body = jsonl(ROW, END)
    return hostile


async def rows(url: str) -> list[dict[str, Any]]:
    async with Client(url) as client:
        return [row async for row in client.operating.names()]


def test_a_title_with_any_line_separator_is_one_row(domain: Hostile) -> None:
    assert asyncio.run(rows(domain.url)) == [ROW, END]
    result = CliRunner().invoke(cli, ["admin", "names", "--json", "--url", domain.url])
    assert result.exit_code == 0, result.output
    assert [json.loads(line) for line in result.stdout.split("\n")[:-1]] == [ROW, END]


def test_an_entry_of_the_audit_with_any_line_separator_is_exported_as_it_is(domain: Hostile, tmp_path: Path) -> None:
    domain.body = jsonl({"reason": f"a{BREAKS}b"}, {"reason": "c"})
    result = CliRunner().invoke(cli, ["audit", "--export", str(tmp_path / "audit"), "--url", domain.url])
    assert result.exit_code == 0, result.output
    assert "2 entries" in result.stdout
    assert (tmp_path / "audit").read_bytes() == domain.body
    assert CliRunner().invoke(cli, ["audit", "--export", "-", "--url", domain.url]).stdout_bytes == domain.body


def test_the_last_line_needs_no_end_and_carriage_returns_are_white_space(domain: Hostile) -> None:
    domain.body = jsonl(ROW, END).replace(b"\n", b"\r\n").removesuffix(b"\r\n")
    assert asyncio.run(rows(domain.url)) == [ROW, END]


def test_lines_may_be_cut_anywhere(domain: Hostile) -> None:
    domain.chunk_bytes = 3
    assert asyncio.run(rows(domain.url)) == [ROW, END]


def test_a_line_without_end_is_bounded(domain: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(herald.answers, "LINE_BYTES_MAX", 1000)
    domain.body = b'{"title":"' + b"x" * 10_000
    with pytest.raises(Problem, match="Not an answer of a Herald domain"):
        asyncio.run(rows(domain.url))
    assert LINE_BYTES_MAX == 1024 * 1024


@pytest.mark.parametrize("body", [b"\xff\n", b"[1]\n", b'{"cursor": NaN}\n', b"<html>\n", b"{\n"])
def test_a_line_that_is_no_json_object_is_said_in_one_line(domain: Hostile, body: bytes) -> None:
    domain.body = body
    with pytest.raises(Problem, match="Not an answer of a Herald domain"):
        asyncio.run(rows(domain.url))


def test_an_export_that_is_cut_off_is_said(domain: Hostile) -> None:
    domain.body = jsonl(ROW)
    with pytest.raises(ConnectionLost, match="incomplete"):
        asyncio.run(rows(domain.url))


def test_the_example_keeps_names_with_any_line_separator(domain: Hostile) -> None:
    file = Path(__file__).parents[2] / "client" / "examples" / "keep_names.py"
    spec = importlib.util.spec_from_file_location("keep_names", file)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    assert example.export(domain.url, "t") == {"cursor": "e:1", "names": {ROW["id"]: ROW}}
