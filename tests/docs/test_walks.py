"""The four walks of docs/architecture.md: every file that they list exists, and the table counts what they list."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SECTION = re.search(r"## Four walks\n(.*?)\n## ", (ROOT / "docs" / "architecture.md").read_text(), re.DOTALL)
assert SECTION is not None
TEXT = SECTION[1]
NAMES = {
    "Publish to a WebSocket reader": "publish to a WebSocket reader",
    "Changed descriptor to the gateways": "changed descriptor to the gateways",
    "Forwarded run, sender": "forwarded run, sender",
    "Forwarded run, receiver": "forwarded run, receiver",
    "Administrative change to the console": "administrative change to the console",
}
"""Walks, and their rows in the table."""


class Walk(NamedTuple):
    """The files of a walk."""

    files: list[str]

    @property
    def folders(self) -> set[str]:
        return {str(PurePosixPath(file).parent) for file in self.files}

    @property
    def packages(self) -> set[str]:
        """Folders below `eventing`, and top-level ones elsewhere; the client for browsers is one of its own."""
        below = ("eventing", "client")
        parts = [PurePosixPath(file).parts[:-1] for file in self.files]
        return {"/".join(part[:2] if part[0] in below else part[:1]) for part in parts}


def walk(name: str) -> Walk:
    """The files that the list after this heading names, in its order."""
    found = re.search(rf"\*\*{re.escape(name)}\.\*\*.*?\n\n(.*?)\n\n", TEXT + "\n\n", re.DOTALL)
    assert found is not None, name
    folder, files = "", []
    for part in re.findall(r"`([^`]+)`", found[1]):
        if part.endswith("/"):
            folder = part
        else:
            files.append(folder + part)
    return Walk(files)


@pytest.mark.parametrize("name", NAMES)
def test_a_walk_names_each_file_once_and_where_it_is(name: str) -> None:
    files = walk(name).files
    assert [file for file in files if not (ROOT / file).is_file()] == []
    assert sorted(files) == sorted(set(files))


@pytest.mark.parametrize(("name", "row"), NAMES.items())
def test_the_table_counts_what_a_walk_lists(name: str, row: str) -> None:
    counted = walk(name)
    written = re.search(rf"^\| {re.escape(row)} \|.*\| (\d+), (\d+) \| (\d+) \|$", TEXT, re.MULTILINE)
    assert written is not None
    counts = [len(counted.files), len(counted.folders), len(counted.packages)]
    assert [int(number) for number in written.groups()] == counts


def test_both_sides_of_a_forwarded_run_are_counted_together() -> None:
    one, other = walk("Forwarded run, sender"), walk("Forwarded run, receiver")
    files, folders = {*one.files, *other.files}, one.folders | other.folders
    assert f"Sender and receiver together are {len(files)} different files in {len(folders)} folders." in TEXT
