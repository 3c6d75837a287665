"""Reading of answers, which may be anything: strict JSON of bounded size, and one error for everything else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from herald.errors import Problem

ANSWER_BYTES_MAX = 64 * 1024 * 1024  # bytes of an answer that is read whole: 1,000 events of 64 KiB; guess
LINE_BYTES_MAX = 1024 * 1024  # bytes of a line of an export; a name or an entry of the audit has some KiB
# Errors raised when a document has another shape.
MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


class MalformedAnswer(Problem):
    """The answer is not one of a Herald domain, or not in a form that this version of the client can read."""

    def __init__(self, what: str) -> None:
        super().__init__(title="Not an answer of a Herald domain", detail=what)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn the errors of reading a foreign document into MalformedAnswer, which names `what` was read."""
    try:
        yield
    except MALFORMED as error:
        raise MalformedAnswer(f"{what} cannot be read ({type(error).__name__}: {error}).") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_no_constant)


def parse_text(text: str) -> Any:
    """Return the JSON value in `text`. Raises ValueError, for NaN and infinities too, and RecursionError."""
    return _decoder.decode(text)


def parse_object(content: bytes, url: object) -> dict[str, Any]:
    """Return the JSON object in the answer of `url`. Raises MalformedAnswer."""
    try:
        value = parse_text(content.decode())
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise MalformedAnswer(f"{url} did not answer with a JSON object.")
    return value


def page_checked(page: dict[str, Any], cursor: object, url: object) -> dict[str, Any]:
    """Check a page of a list: `items` is a list of objects, `next` another cursor than the requested one, or None."""
    items, following = page.get("items"), page.setdefault("next", None)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise MalformedAnswer(f"{url} did not answer with a list.")
    if following is not None and (not isinstance(following, str) or not following or following == cursor):
        raise MalformedAnswer(f"{url} did not answer with a valid cursor of the next page.")
    return page


async def lines_of(chunks: AsyncIterator[bytes], url: object) -> AsyncIterator[str]:
    """Yield the lines of a text in UTF-8. Only a line feed ends a line: JSON text may contain every other line
    separator.

    Raises MalformedAnswer for a line longer than LINE_BYTES_MAX, or one that is not UTF-8.
    """
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield _line(line, url)
        if len(rest) > LINE_BYTES_MAX:
            raise MalformedAnswer(f"{url} answered with a line of more than {LINE_BYTES_MAX} bytes.")
    if rest:
        yield _line(rest, url)


def _line(line: bytes, url: object) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise MalformedAnswer(f"The answer of {url} is not UTF-8.") from None
