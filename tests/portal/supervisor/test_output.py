"""What children print is bounded: lines, log files, and what reaches the terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from portal.supervisor import output
from portal.supervisor.output import LineBuffer, Shown, TurningLog, is_redis_warning, is_warning
from portal.supervisor.terminal import Terminal


def test_lines_are_cut_where_they_end_however_the_chunks_fall() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"one\ntw") == [b"one"]
    assert buffer.feed(b"o\r\n\nthree") == [b"two", b""]
    assert buffer.feed(b"\n") == [b"three"]


def test_a_line_that_never_ends_is_cut_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "LINE_BYTES_MAX", 4)
    assert LineBuffer().feed(b"abcdefghij") == [b"abcd", b"efgh"]


def test_log_files_turn_at_their_size_and_the_oldest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "LOG_FILE_BYTES_MAX", 20)
    log = TurningLog(tmp_path / "x.log")
    for number in range(30):
        log.write(b"line %02d" % number)
    log.close()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["x.log", "x.log.1", "x.log.2", "x.log.3"]
    assert all(path.stat().st_size <= 20 for path in tmp_path.iterdir())
    assert (tmp_path / "x.log").read_bytes().endswith(b"line 29\n")


def test_a_full_disk_costs_lines_not_the_domain(tmp_path: Path) -> None:
    log = TurningLog(Path("/dev/full")) if Path("/dev/full").exists() else TurningLog(tmp_path / "x.log")
    log.write(b"nobody reads this")
    log.close()


def test_a_storm_of_warnings_is_shown_shortened() -> None:
    seen: list[str] = []
    now = [0.0]
    shown = Shown(seen.append, "... more", lambda: now[0])
    for number in range(100):
        shown.line(str(number))
    assert seen == [*map(str, range(output.SHOWN_LINES_MAX)), "... more"]
    now[0] = output.SHOWN_WINDOW_S + 1
    shown.line("again")
    assert seen[-1] == "again"


def test_warnings_are_recognised_in_the_formats_of_our_children() -> None:
    assert is_warning("2026-01-01 10:00:00,000 ERROR portal: no")
    assert is_warning("[2026-01-01 10:00:00,000: WARNING/MainProcess] no")
    assert not is_warning("2026-01-01 10:00:00,000 INFO portal: no ERROR".replace(" ERROR", ""))
    assert is_redis_warning("123:M 20 Nov 2026 18:05:52.683 # Short write")
    assert not is_redis_warning("123:M 20 Nov 2026 18:05:52.683 * Ready to accept connections")


def test_colours_are_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" in Terminal(Tty()).paint("x", "ready")
    assert "\x1b" not in Terminal(io.StringIO()).paint("x", "ready")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in Terminal(Tty()).paint("x", "ready")
