"""docs/what-survives-what.md: every cell of its table names a test, and every test that it names is there."""

from __future__ import annotations

import ast
import re

from demo.harness.servers import ROOT

PAGE = (ROOT / "docs" / "what-survives-what.md").read_text()
LEVELS, FAILURES = 4, 5


def test_every_cell_names_a_test() -> None:
    table = PAGE.partition("## What readers notice")[0]
    rows = [line.split("|")[2:-1] for line in table.splitlines() if line.startswith("| **")]
    assert [len(cells) for cells in rows] == [LEVELS] * FAILURES
    known = {number for names in re.findall(r"^\| ([\d, ]+) \|", PAGE, re.MULTILINE) for number in names.split(", ")}
    for cell in (cell for cells in rows for cell in cells):
        cited = re.findall(r"\[(\d+)\]\(#tests\)", cell)
        assert cited, cell
        assert known.issuperset(cited), cell


def test_every_test_is_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) >= 8
    for path, name in named:
        functions = [node for node in ast.walk(ast.parse((ROOT / path).read_text())) if hasattr(node, "name")]
        assert name in {node.name for node in functions}, f"{path}::{name}"
