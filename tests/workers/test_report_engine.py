"""Java is started to tell its version once for each file, not each time that a report might be due."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.harness.servers import program
from workers.reporting import engine_problem


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file into which a Java of Herald's own writes a line whenever it is started."""
    found = tmp_path / "asked"
    _java(tmp_path, 17)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return found


def _java(home: Path, major: int) -> None:
    program(home / "bin", "java.new", f"echo asked >> {home}/asked; echo 'openjdk version \"{major}.0.2\"' >&2")
    (home / "bin" / "java.new").replace(home / "bin" / "java")


def test_a_java_that_runs_is_asked_once(asked: Path) -> None:
    assert [engine_problem() for _ in range(5)] == [""] * 5
    assert asked.read_text().split() == ["asked"]


def test_a_java_that_takes_its_place_is_asked_again(asked: Path, tmp_path: Path) -> None:
    assert engine_problem() == ""
    _java(tmp_path, 11)
    assert "this is Java 11" in engine_problem()
    _java(tmp_path, 21)
    assert engine_problem() == ""
    assert asked.read_text().split() == ["asked"] * 3
