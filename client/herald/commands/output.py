"""Output of commands: the only module that prints. Printed text cannot send control sequences to the terminal.

- Text for people (`say`, `note`, `complain`): every control character, C1 codes and bidirectional marks too, is
  escaped, also into a pipe. One argument is one line, so that foreign text cannot imitate a line of its own.
- Documents (`document`, `json_line`): JSON. On a terminal the same characters are escaped as JSON escapes them, so that
  the document stays the same. Into a file or a pipe they are written unchanged.
- Data of events and files (`data`, `stream`): escaped on a terminal, unchanged into a file or a pipe.
- Tables (`table`): escaped cells, aligned. Header, colours and pager are for terminals only.

No other module prints; a test reads their syntax trees (tests/client/test_output.py).
"""

from __future__ import annotations

import codecs
import json
import logging
import math
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Sequence
from typing import IO, Any, NamedTuple

import click

LINE_CHARS_MAX = 100_000  # characters of a line for people; the rest is counted
COMPLAINT_CHARS_MAX = 2000  # characters of a domain's error message
CELL_CHARS_MAX = 1000  # characters of a cell of a table; the rest is counted
_GAP = "  "
_SURROGATES = re.compile("[\ud800-\udfff]")  # JSON can spell them, UTF-8 cannot
_BEYOND = 10**309  # beyond a double, like the number that was read as infinite


def say(*lines: str) -> None:
    """Print lines for people on stdout."""
    for line in lines:
        _print(printable(_clipped(line, LINE_CHARS_MAX)), sys.stdout)


def note(*lines: str) -> None:
    """Print lines for people on stderr."""
    for line in lines:
        _print(printable(_clipped(line, LINE_CHARS_MAX)), sys.stderr)


def complain(text: str) -> None:
    """Print an error on one line of stderr."""
    _print("herald: " + printable(_clipped(text, COMPLAINT_CHARS_MAX)), sys.stderr)


def document(value: Any, *, err: bool = False) -> None:
    """Print a JSON document on one line."""
    json_line(dump(value), err=err)


def json_line(text: str, *, err: bool = False) -> None:
    """Print a line of JSON as received."""
    stream = sys.stderr if err else sys.stdout
    text = _SURROGATES.sub(_json_escape, text)
    if stream.isatty() and not text.isprintable():
        text = "".join(c if c.isprintable() else _json_escaped(c) for c in text)
    _print(text, stream, _json_escaped)


class Cell(NamedTuple):
    """A cell of a table: its text, its colour (None: the terminal's), and whether it is aligned to the right."""

    text: str
    colour: str | None = None
    right: bool = False


def table(rows: Sequence[Sequence[Cell]], header: Sequence[str], widths: Sequence[int], *, paged: bool) -> list[int]:
    """Print aligned rows.

    Args:
        header: titles of the columns; printed on a terminal only. Empty: none (the table continues).
        widths: least widths of the columns, those of the rows before.
        paged: whether a pager is used where the screen is too small for them.

    Returns the widths of the columns.
    """
    shown = [
        [Cell(printable(_clipped(cell.text, CELL_CHARS_MAX)), cell.colour, cell.right) for cell in row] for row in rows
    ]
    titles = header if sys.stdout.isatty() else ()
    grown = list(widths)
    for row in ([[Cell(title) for title in titles]] if titles else []) + shown:
        for index, cell in enumerate(row):
            grown[index] = max(grown[index], _width(cell.text))
    lines = [_aligned(row, grown) for row in shown]
    if titles:
        aligned = [Cell(title, None, bool(shown) and shown[0][index].right) for index, title in enumerate(titles)]
        lines.insert(0, click.style(_aligned(aligned, grown), bold=True))
    _page(lines, pager=paged)
    return grown


def highlighted(text: str, colour: str | None) -> str:
    """Return a line for `say_highlighted`: escaped, and in a colour."""
    shown = printable(_clipped(text, LINE_CHARS_MAX))
    return click.style(shown, fg=colour) if colour else shown


def say_highlighted(text: str, colour: str | None) -> None:
    """Print a line for people on stdout, in a colour where the terminal has colours."""
    _print(highlighted(text, colour), sys.stdout)


def screen(lines: Sequence[str]) -> None:
    """Replace what the terminal shows by these lines for people; only those for which there is room."""
    room = shutil.get_terminal_size()
    shown = [printable(_clipped(line, room.columns)) for line in lines[: room.lines - 1]]
    click.echo("\x1b[H" + "".join(f"{line}\x1b[K\n" for line in shown) + "\x1b[J", nl=False)
    sys.stdout.flush()


def data(value: bytes | str) -> None:
    """Print the data of an event, and end the line."""
    if not sys.stdout.isatty():
        sys.stdout.flush()
        click.echo(value if isinstance(value, bytes) else value.encode("utf-8", "backslashreplace"))
        return
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    _print(printable(text, keep="\n\t"), sys.stdout)


def stream() -> Callable[[bytes], Any]:
    """Return a function that writes the next piece of a file to stdout."""
    if not sys.stdout.isatty():
        sys.stdout.flush()
        return sys.stdout.buffer.write
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(chunk: bytes) -> None:
        click.echo(printable(decoder.decode(chunk).replace("\r\n", "\n"), keep="\n\t"), nl=False)

    return write


def ask(question: str) -> bool:
    """Ask a question on stderr: stdout is for results."""
    return click.confirm(printable(question), err=True)


def overwrites() -> bool:
    """Return whether stderr is a terminal, on which a line can be overwritten."""
    return sys.stderr.isatty()


def over(line: str, width: int) -> int:
    """Overwrite the line of stderr that is `width` characters wide; return the new width."""
    shown = printable(line)
    sys.stderr.write("\r" + shown.ljust(width))
    sys.stderr.flush()
    return len(shown)


def on_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout.isatty()


def flush() -> None:
    """Flush the output before another process prints."""
    sys.stdout.flush()


def hush() -> None:
    """Stop printing: the reader of the output has closed it. Otherwise Python would complain when it flushes the rest."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def dump(value: Any) -> str:
    """Return one line of valid JSON, whatever numbers were read."""
    try:
        return _dumped(value)
    except ValueError:  # 1e999 is valid JSON, and read as infinity
        return _dumped(_finite(value))


def printable(text: str, keep: str = "") -> str:
    """Return the text with characters escaped that are neither printable nor in `keep`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


class Complaints(logging.Handler):
    """Prints the library's warnings as errors, without tracebacks."""

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        error = record.exc_info[1] if record.exc_info else None
        complain(record.getMessage() + (f" ({type(error).__name__}: {error})" if error else ""))


def _aligned(row: Sequence[Cell], widths: Sequence[int]) -> str:
    cells = []
    for index, (cell, width) in enumerate(zip(row, widths, strict=True)):
        room = " " * (width - _width(cell.text))
        text = click.style(cell.text, fg=cell.colour) if cell.colour else cell.text
        last = index == len(row) - 1
        cells.append(room + text if cell.right else text + ("" if last else room))
    return _GAP.join(cells)


def _width(text: str) -> int:
    """Return the columns of a terminal that the text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _page(lines: Sequence[str], *, pager: bool) -> None:
    """Print lines that are escaped already; in the user's pager (PAGER) if they do not fit on the screen."""
    if pager and sys.stdout.isatty() and sys.stdin.isatty() and len(lines) >= shutil.get_terminal_size().lines:
        click.echo_via_pager("\n".join(lines), color=click.get_current_context().color)
        return
    for line in lines:
        _print(line, sys.stdout)


def _print(text: str, stream: IO[str], escape: Callable[[str], str] | None = None) -> None:
    """Print a line; characters outside the stream's encoding are escaped."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        if escape is None:
            text = text.encode(encoding, "backslashreplace").decode(encoding)
        else:
            text = "".join(c if _encodable(c, encoding) else escape(c) for c in text)
    click.echo(text, file=stream)


def _encodable(char: str, encoding: str) -> bool:
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _clipped(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[:chars]}... ({len(text) - chars} more characters)"


def _json_escape(match: re.Match[str]) -> str:
    return _json_escaped(match[0])


def _json_escaped(char: str) -> str:
    return json.dumps(char)[1:-1] if ord(char) != 0x7F else "\\u007f"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return _BEYOND if value > 0 else -_BEYOND
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
