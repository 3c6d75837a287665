"""The counts of `make house`, on small trees and on this one."""

from __future__ import annotations

import ast

import pytest

from tests.house import (
    QUESTION,
    SPEECH,
    TARGETS,
    changing_classes,
    class_names,
    files,
    folders_of,
    matching,
    modules,
    process_wide,
    process_wide_objects,
    room,
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("eventing/operations/alarms/watcher.py", "eventing/operations"),
        ("eventing/conf.py", "eventing"),
        ("portal/supervisor/diagnosis/checks.py", "portal/supervisor"),
        ("workers/tasks.py", "workers"),
    ],
)
def test_a_file_belongs_to_the_folder_of_its_subject(path: str, expected: str) -> None:
    assert room(path) == expected


def test_the_parts_of_a_subject_are_found_by_their_paths_and_pages_are_left_out() -> None:
    names = ["eventing/peering/models/peer.py", "workers/peers.py", "portal/console/pages/peers.py", "docs/peers.md"]
    assert sorted(folders_of("peer", names)) == ["eventing/peering", "workers"]


def test_a_class_name_with_two_meanings_is_found_and_a_private_one_is_not() -> None:
    trees = [(name, ast.parse("class Run: ...\nclass _Own: ...\nclass Meta: ...")) for name in ("a.py", "b.py")]
    assert class_names(trees) == {"Run": ["a.py", "b.py"]}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("seen = {}\ndef add(x): seen[x] = 1", ["seen"]),
        ("seen = set()\ndef add(x): seen.add(x)", ["seen"]),
        ("client = None\ndef get():\n    global client\n    client = 1", ["client"]),
        ("import threading\nlock = threading.Lock()", ["lock"]),
        ("from functools import lru_cache\n@lru_cache(5)\ndef read(): ...", ["read"]),
        ("from functools import lru_cache\nread = lru_cache(5)(str)", ["read"]),
        ("class Seen:\n    def add(self, x): self.all.append(x)\nseen = Seen()", ["seen"]),
        ("class Fixed:\n    def __init__(self, x): self.x = x\nfixed = Fixed(1)", []),
        ("class Last:\n    seen = 0\ndef look(): Last.seen = 1", ["Last"]),
        ("NAMES = {'a': 1}\ndef get(): return NAMES['a']", []),
        ("def get():\n    seen = {}\n    seen['a'] = 1", []),
    ],
    ids=["item", "method", "global", "lock", "cache", "made", "object", "frozen", "class", "constant", "local"],
)
def test_what_changes_for_the_whole_process_is_found(source: str, found: list[str]) -> None:
    tree = ast.parse(source)
    assert process_wide(tree, changing_classes([("a.py", tree)])) == found


def test_docstrings_that_open_with_a_question_word_or_let_things_speak_are_found() -> None:
    tree = ast.parse('''"""Which way."""\nclass A:\n    """Runs."""\n    x = 1\n    """What a lease says."""\n''')
    assert matching(QUESTION, [("a.py", tree)], at_start=True) == ["a.py:1: Which way.", "a.py:5: What a lease says."]
    assert matching(SPEECH, [("a.py", tree)]) == ["a.py:5: What a lease says."]


def test_this_tree_keeps_its_promises() -> None:
    parsed = list(modules(files()))
    assert class_names(parsed) == {}
    assert process_wide_objects(parsed) == {}
    assert matching(QUESTION, parsed, at_start=True) == []
    assert len(matching(SPEECH, parsed)) <= TARGETS["speech"]
