"""The state file: a reader's next process goes on from it, and it is never half written."""

from __future__ import annotations

from pathlib import Path

import pytest
from herald.state import FileCursorStore, StateError


def test_the_next_process_finds_what_was_saved(tmp_path: Path) -> None:
    store = FileCursorStore(tmp_path / "state")
    assert store.load("/d/a/") is None
    store.save("/d/a/", "e:1")
    store.save("/d/b/", "e:7")
    store.save("/d/a/", "e:2")
    again = FileCursorStore(tmp_path / "state")
    assert (again.load("/d/a/"), again.load("/d/b/")) == ("e:2", "e:7")


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileCursorStore(tmp_path / "state")
    store.save("r", "e:1")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(StateError, match="No space left"):
        store.save("r", "e:2")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert FileCursorStore(tmp_path / "state").load("r") == "e:1"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": 2, "cursors": {}}', '{"format": 1, "cursors": {"a": 1}}']
)
def test_a_file_of_another_kind_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(content)
    with pytest.raises(StateError, match="not a state file"):
        FileCursorStore(path).load("r")
    assert path.read_text() == content


def test_an_unwritable_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="Cannot write"):
        FileCursorStore(tmp_path / "missing" / "state").save("r", "e:1")
