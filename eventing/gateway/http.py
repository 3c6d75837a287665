"""HTTP for the hot path: ids of requests, bounded bodies, answers in JSON and problem documents."""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from eventing.core.container import per_process
from eventing.core.errors import ApplicationError, InvalidRequest, Timeout, TooLarge, Unauthenticated

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

ID_CHARS_MAX = 64  # bound: characters of `X-Request-Id`; the id is replaced by a generated one
QUERY_MEMBERS_MAX = 32  # bound: parameters of a query string; `invalid-request`
NO_PAGE: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
"""Headers of every answer here: events are a publisher's bytes, and no browser may display them as a page of this domain."""

JSON = b"".join(b"%b: %b\r\n" % header for header in [(b"content-type", b"application/json"), *NO_PAGE])
"""Head of a JSON answer, for code that writes answers itself."""

_JSON: tuple[bytes, bytes] = (b"content-type", b"application/json")
_PROBLEM: tuple[bytes, bytes] = (b"content-type", b"application/problem+json")
_encode = msgspec.json.Encoder().encode
_ID = re.compile(rb"[A-Za-z0-9._-]{1,%d}" % ID_CHARS_MAX)


class ClientDisconnected(Exception):
    """The client disconnected before the request was complete."""


@per_process
def _ids() -> Iterator[str]:
    """New ids: a random prefix of the process, and a number."""
    prefix = f"{secrets.token_hex(5)}-%x"
    return map(prefix.__mod__, itertools.count(1))


def request_id(scope: Scope) -> str:
    """Return the client's id if it is well-formed (others are not used, since ids are written to log lines), else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            return value.decode() if _ID.fullmatch(value) else new_request_id()
    return new_request_id()


def new_request_id() -> str:
    """Make an id that no other request has: of this process, counted."""
    return next(_ids())


def header(scope: Scope, name: bytes) -> str | None:
    """Return the first value of a header, as Latin-1; None if absent."""
    for key, value in scope["headers"]:
        if key == name:
            text: str = value.decode("latin-1")
            return text
    return None


def query(scope: Scope) -> dict[str, str]:
    """Parse the query's members. Raises InvalidRequest if they are too many, repeated or not UTF-8."""
    raw = scope["query_string"]
    if not raw:
        return {}
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, max_num_fields=QUERY_MEMBERS_MAX, errors="strict"
        )
    except ValueError:
        raise InvalidRequest(f"The query is not valid UTF-8 with at most {QUERY_MEMBERS_MAX} members.") from None
    members = dict(pairs)
    if len(members) != len(pairs):
        raise InvalidRequest("A member of the query is repeated.")
    return members


def number(members: dict[str, str], name: str, default: float, low: float, high: float) -> float:
    """Parse the number `name` of the query, from `low`; one above `high` is lowered to it. Raises InvalidRequest."""
    text = members.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        raise InvalidRequest(f"{name} must be a number.") from None
    if not value >= low:  # also catches NaN
        raise InvalidRequest(f"{name} is at least {low:g}.")
    return min(value, high)


def bearer(scope: Scope, members: dict[str, str] | None = None) -> str:
    """Return the request's token: from Authorization, else `access_token` in the query. Raises Unauthenticated."""
    text = header(scope, b"authorization")
    if text is not None:
        scheme, _, token = text.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthenticated("Send the token as `Authorization: Bearer TOKEN`.")
        return token.strip()
    token = (query(scope) if members is None else members).get("access_token", "")
    if not token:
        raise Unauthenticated("Send a token as `Authorization: Bearer TOKEN` or `?access_token=TOKEN`.")
    return token


async def body(scope: Scope, receive: Receive, bytes_max: int, timeout_s: float) -> bytes:
    """Read the whole request body. Raises TooLarge, Timeout, or Disconnected."""
    announced = header(scope, b"content-length")
    if announced is not None and announced.isdigit() and int(announced) > bytes_max:
        raise TooLarge(f"The body is at most {bytes_max} bytes.", limit=bytes_max)
    connection = scope.get("extensions", {}).get("herald.transport")
    if connection is not None and connection.body_is_here():  # a timer would cost more than the rest of this function
        return await _rest(await receive(), receive, bytes_max)
    try:
        async with asyncio.timeout(timeout_s):
            return await _rest(await receive(), receive, bytes_max)
    except TimeoutError:
        raise Timeout(f"The whole request must arrive within {timeout_s:g} s.") from None


async def _rest(message: dict[str, Any], receive: Receive, bytes_max: int) -> bytes:
    if message["type"] == "http.request" and not message.get("more_body"):
        whole: bytes = message.get("body", b"")
        if len(whole) > bytes_max:
            raise TooLarge(f"The body is at most {bytes_max} bytes.", limit=bytes_max)
        return whole
    parts, size = [], 0
    while message["type"] == "http.request":
        part = message.get("body", b"")
        size += len(part)
        if size > bytes_max:
            raise TooLarge(f"The body is at most {bytes_max} bytes.", limit=bytes_max)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()
    raise ClientDisconnected


async def disconnected(receive: Receive) -> None:
    """Return when the client has disconnected; for requests whose body was read or does not matter."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def cut(scope: Scope, receive: Receive) -> None:
    """Abort a connection whose client does not read its answer, where the server allows it: else it stays until the
    client disconnects."""
    connection = scope.get("extensions", {}).get("herald.transport")
    if connection is not None:
        connection.abort()
        await disconnected(receive)


def end_within(scope: Scope, patience_s: float) -> None:
    """End the connection with this answer, and abort it if the client has not read that in time, where the server allows it."""
    connection = scope.get("extensions", {}).get("herald.transport")
    if connection is not None:
        connection.end_within(patience_s)


async def answer(send: Send, status: int, content: bytes, headers: Headers) -> None:
    """Send a complete answer."""
    headers = [(b"content-length", b"%d" % len(content)), *headers, *NO_PAGE]
    whole = getattr(send, "whole", None)
    if whole is not None and whole(status, headers, content):
        return
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


async def answer_json(send: Send, status: int, members: Any, headers: Headers | None = None) -> None:
    """Send `members` as JSON."""
    await answer(send, status, _encode(members), [_JSON, *(headers or [])])


async def answer_problem(
    send: Send, error: ApplicationError, *, close: bool = False, headers: Headers | None = None
) -> None:
    """Send the problem document of `error`; `close` if the request was not read to its end."""
    more = [*_problem_headers(error), *(headers or [])]
    if close:
        more.append((b"connection", b"close"))
    await answer(send, error.status, _encode(error.document()), more)


def _problem_headers(error: ApplicationError) -> Headers:
    headers: Headers = [_PROBLEM, (b"cache-control", b"no-store")]
    if error.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after_s))
    if error.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="herald"'))
    return headers


def problem(error: ApplicationError) -> tuple[bytes, bytes]:
    """Make head and content of the problem document of `error`, for code that writes answers itself."""
    lines = [b"%b: %b\r\n" % header for header in (*_problem_headers(error), *NO_PAGE)]
    return b"".join(lines), _encode(error.document())
