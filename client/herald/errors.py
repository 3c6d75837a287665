"""Errors of the client. `Problem`: the domain refused; `ConnectionLost`: it did not answer. A `Gap` is data, not an
error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

PROBLEM_PREFIX = "urn:herald:problem:"
RETRY_AFTER_S_MAX = 300.0  # longest accepted Retry-After; guess

# Problems that pass by themselves: the same request is retried later. Every other one is final.
PASSING_CODES = frozenset({"rate-limited", "unavailable", "ack-unavailable", "timeout"})
_PASSING_STATUS = frozenset({408, 429, 502, 503, 504})


class HeraldError(Exception):
    """Base of all errors that a Herald client raises deliberately."""


class Problem(HeraldError):
    """The domain refused an operation (an RFC 9457 problem document, or a WebSocket error frame).

    Attributes:
        type: stable URI, `urn:herald:problem:CODE`; `about:blank` when a proxy in between answered.
        title: the kind of problem, for people.
        status: HTTP status; 0 for a problem over WebSocket without one.
        detail: what to do next, for people.
        retry_after_s: seconds after which a retry makes sense, if the domain stated it; else None.
        extra: further members of the document.
    """

    def __init__(
        self,
        type: str = "about:blank",
        title: str = "",
        status: int = 0,
        detail: str = "",
        *,
        retry_after_s: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(": ".join(part for part in (title, detail) if part) or type)
        self.type = type
        self.title = title
        self.status = status
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.extra = dict(extra or {})

    @property
    def code(self) -> str:
        """Return the last part of `type`, such as `not-found`; empty for problems that are not Herald's."""
        return self.type.removeprefix(PROBLEM_PREFIX) if self.type.startswith(PROBLEM_PREFIX) else ""

    @property
    def passing(self) -> bool:
        """Return whether the same request may succeed later without any change."""
        return self.code in PASSING_CODES or self.status in _PASSING_STATUS

    @classmethod
    def from_document(cls, document: Mapping[str, Any], *, status: int = 0, retry_after: str | None = None) -> Problem:
        """Read a problem document or an error frame; missing or malformed members are left out."""
        known = {"type", "title", "status", "detail", "op", "id"}
        stated, after_s = document.get("status"), document.get("retry_after_s")
        return cls(
            _text(document, "type") or "about:blank",
            _text(document, "title"),
            stated if isinstance(stated, int) else status,
            _text(document, "detail"),
            retry_after_s=parse_retry_after(retry_after or (None if isinstance(after_s, str) else after_s)),
            extra={name: value for name, value in document.items() if name not in known},
        )


class ConnectionLost(HeraldError):
    """The domain cannot be reached, or the connection broke before its answer; whether it acted is unknown."""


class Closed(HeraldError):
    """The domain closed the connection for good: another connection would be closed in the same way.

    Attributes:
        code: the WebSocket close code (4100-4199, or a terminal standard one).
    """

    def __init__(self, code: int, reason: str = "") -> None:
        meaning = CLOSE_MEANINGS.get(code, "The domain closed the connection for good.")
        super().__init__(f"{meaning} ({reason})" if reason and reason != meaning else meaning)
        self.code = code
        self.reason = reason


class InputError(HeraldError):
    """The program's input (a file, data, a state file) cannot be used; the message states what to do."""


class ClientClosed(HeraldError):
    """The client or the subscription was closed by its own program during the operation."""


TOKEN_EXPIRED = 4100
FORBIDDEN = 4102
RP_GONE = 4103
CLOSE_MEANINGS = {
    1002: "The domain found a protocol violation.",
    1003: "The domain does not accept such frames.",
    1007: "The domain found a malformed frame.",
    1008: "The domain's rules do not allow this.",
    1009: "A frame was too large for the domain.",
    TOKEN_EXPIRED: "The token has expired.",
    4101: "The token has been revoked.",
    FORBIDDEN: "The permission for this was withdrawn.",
    RP_GONE: "The rendezvous point has ended.",
    4104: "The domain found a protocol violation.",
    4105: "An operator of the domain has disconnected this client.",
}
_TERMINAL_STANDARD = frozenset({1002, 1003, 1007, 1008, 1009})


def is_terminal(close_code: int) -> bool:
    """Return whether a close code means that reconnecting cannot help."""
    return 4100 <= close_code < 4200 or close_code in _TERMINAL_STANDARD


def parse_retry_after(value: object, now: Callable[[], float] = time.time) -> float | None:
    """Return the seconds in a `Retry-After`, clamped to `RETRY_AFTER_S_MAX`; None for anything else.

    A domain answers with seconds; a proxy before it may answer with a date (RFC 9110 section 10.2.3), which counts from
    `now`, 0 if it has passed.
    """
    seconds: Any = value
    if isinstance(value, str):
        try:
            seconds = float(value)
        except ValueError:
            seconds = _seconds_until(value, now())
    if type(seconds) not in (int, float) or not seconds >= 0:
        return None
    return float(min(seconds, RETRY_AFTER_S_MAX))


def parse_retry_after_ms(value: object) -> float | None:
    """Return the seconds in a `retry_after_ms`, clamped to `RETRY_AFTER_S_MAX`; None for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return parse_retry_after(min(value, RETRY_AFTER_S_MAX * 1000) / 1000)


def _seconds_until(date: str, now: float) -> float:
    """Return the seconds from `now` to an HTTP date; negative for an invalid one."""
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - now)
    except (ValueError, OverflowError, OSError):
        return -1.0


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""
