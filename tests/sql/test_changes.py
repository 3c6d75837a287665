"""Changes of SQL are noticed once each, by whichever process they are made, and a file that is exchanged is one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from eventing.sql.changes import SqlChanges


def _write(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER)")
        connection.execute("INSERT INTO t VALUES (1)")
    connection.close()


def test_a_commit_is_noticed_once(tmp_path: Path) -> None:
    path = tmp_path / "with space?.sqlite3"
    _write(path)
    changes = SqlChanges(path)
    assert changes.changed()  # the first look
    assert not changes.changed()
    _write(path)
    assert changes.changed()
    assert not changes.changed()
    changes.close()


def test_a_read_is_no_change(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite3"
    _write(path)
    changes = SqlChanges(path)
    changes.changed()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)
    connection.close()
    assert not changes.changed()
    changes.close()


def test_a_file_that_was_put_back_is_a_change(tmp_path: Path) -> None:
    path, copy = tmp_path / "db.sqlite3", tmp_path / "copy.sqlite3"
    _write(path)
    copy.write_bytes(path.read_bytes())
    changes = SqlChanges(path)
    changes.changed()
    assert not changes.changed()
    copy.replace(path)
    assert changes.changed()
    assert not changes.changed()
    changes.close()


def test_what_cannot_be_told_counts_as_changed(tmp_path: Path) -> None:
    changes = SqlChanges(tmp_path / "none.sqlite3")
    assert changes.changed()
    assert changes.changed()
