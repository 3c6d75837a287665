"""Output of commands: the only module that prints. Printed text cannot send control sequences to the terminal.

- Text for people (`say`, `note`, `complain`): every control character, C1 codes and bidirectional marks too, is
  escaped, also into a pipe. One argument is one line, so that foreign text cannot imitate a line of its own.
- Documents (`document`, `json_line`): JSON. On a terminal the same characters are escaped as JSON escapes them, so that
  the document stays the same. Into a file or a pipe they are written unchanged.
- Data of events and files (`data`, `stream`): escaped on a terminal, unchanged into a file or a pipe.

No other module prints; a test reads their syntax trees (tests/client/test_output.py).
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

LINE_CHARS_MAX = 100_000  # characters of a line for people; the rest is counted
COMPLAINT_CHARS_MAX = 2000  # characters of a domain's error message
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
