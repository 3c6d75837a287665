"""The one door through which a command prints. Whatever passes it cannot command the terminal that it is shown on.

- Text for people (`say`, `note`, `complain`): every control character, C1 codes and bidirectional marks too, is escaped
  wherever it goes. One argument is one line, so that foreign text cannot pretend to be a line of its own.
- Documents (`document`, `json_line`): JSON. On a terminal the same characters are escaped as JSON escapes them, so that
  what is shown is the same document. Into a file or a pipe they go as they are.
- Data of events and files (`data`, `stream`): on a terminal escaped, into a file or a pipe byte by byte.

No command prints around it; a test reads their syntax trees (tests/client/test_output.py).
"""

from __future__ import annotations

import codecs
import json
import logging
import math
import os
import re
import sys
from collections.abc import Callable
from typing import IO, Any

import click

LINE_CHARS_MAX = 100_000  # of a line for people; the rest is counted
COMPLAINT_CHARS_MAX = 2000  # of what a domain says is wrong
_SURROGATES = re.compile("[\ud800-\udfff]")  # JSON can spell them, UTF-8 cannot
_BEYOND = 10**309  # beyond what a double holds, as the number was that is infinite here


def say(*lines: str) -> None:
    """Print lines for people on stdout."""
    for line in lines:
        _print(printable(_clipped(line, LINE_CHARS_MAX)), sys.stdout)


def note(*lines: str) -> None:
    """Print lines for people on stderr."""
    for line in lines:
        _print(printable(_clipped(line, LINE_CHARS_MAX)), sys.stderr)


def complain(text: str) -> None:
    """Print what is wrong, on one line of stderr."""
    _print("herald: " + printable(_clipped(text, COMPLAINT_CHARS_MAX)), sys.stderr)


def document(value: Any, *, err: bool = False) -> None:
    """Print a JSON document on one line."""
    json_line(dump(value), err=err)


def json_line(text: str, *, err: bool = False) -> None:
    """Print a line of JSON as it came."""
    stream = sys.stderr if err else sys.stdout
    text = _SURROGATES.sub(_json_escape, text)
    if stream.isatty() and not text.isprintable():
        text = "".join(c if c.isprintable() else _json_escaped(c) for c in text)
    _print(text, stream, _json_escaped)


def data(value: bytes | str) -> None:
    """Print the data of an event, and end the line."""
    if not sys.stdout.isatty():
        sys.stdout.flush()
        click.echo(value if isinstance(value, bytes) else value.encode("utf-8", "backslashreplace"))
        return
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    _print(printable(text, keep="\n\t"), sys.stdout)


def stream() -> Callable[[bytes], Any]:
    """A function that writes the next piece of a file to stdout."""
    if not sys.stdout.isatty():
        sys.stdout.flush()
        return sys.stdout.buffer.write
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(chunk: bytes) -> None:
        click.echo(printable(decoder.decode(chunk).replace("\r\n", "\n"), keep="\n\t"), nl=False)

    return write


def ask(question: str) -> bool:
    """Ask on stderr: the output stays the result's."""
    return click.confirm(printable(question), err=True)


def overwrites() -> bool:
    """Whether stderr is a terminal, on which a line can be written over."""
    return sys.stderr.isatty()


def over(line: str, width: int) -> int:
    """Write over the line of stderr that is `width` characters wide; the new width."""
    shown = printable(line)
    sys.stderr.write("\r" + shown.ljust(width))
    sys.stderr.flush()
    return len(shown)


def on_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def flush() -> None:
    """Let what was printed go before another process prints."""
    sys.stdout.flush()


def hush() -> None:
    """Print nothing more: whoever read the output has enough. Python would complain when it flushes what is left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def dump(value: Any) -> str:
    """One line of JSON, valid whatever numbers were read."""
    try:
        return _dumped(value)
    except ValueError:  # 1e999 is JSON, and infinite once it was read
        return _dumped(_finite(value))


def printable(text: str, keep: str = "") -> str:
    """Text that cannot command the terminal it is shown on: what is not printable, nor in `keep`, is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


class Complaints(logging.Handler):
    """Prints the library's warnings as complaints, without tracebacks."""

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        error = record.exc_info[1] if record.exc_info else None
        complain(record.getMessage() + (f" ({type(error).__name__}: {error})" if error else ""))


def _print(text: str, stream: IO[str], escape: Callable[[str], str] | None = None) -> None:
    """Print a line; what the stream's encoding does not have is escaped."""
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
