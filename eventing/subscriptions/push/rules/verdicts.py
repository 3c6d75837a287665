"""Verdicts on attempts: what an answer, or its absence, means for the events that were sent. Pure.

Standard Webhooks: 2xx is success; 410 ends the endpoint; 429, 502 and 504 ask for fewer requests; redirects are failures,
as everything else is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_THROTTLING = (429, 502, 504)
EXCERPT_BYTES_MAX = 512  # bound: bytes of an answer's body in an attempt's record; the rest is not kept


class AttemptVerdict(StrEnum):
    """The meaning of an attempt."""

    DELIVERED = "delivered"
    GONE = "gone"
    THROTTLED = "throttled"
    FAILED = "failed"


class NoAnswer(StrEnum):
    """Reasons for which an attempt had no answer."""

    ADDRESS = "address-refused"
    RESOLUTION = "name-not-resolved"
    CONNECT = "not-connected"
    CONNECT_TIMEOUT = "connect-timeout"
    TLS = "tls-failed"
    SEND_TIMEOUT = "send-timeout"
    ANSWER_TIMEOUT = "answer-timeout"
    CLOSED = "connection-closed"
    MALFORMED = "malformed-answer"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class PushAnswer:
    """The answer to one request, or the reason for which there is none.

    Attributes:
        status: HTTP status; 0 without an answer.
        failure: why there is no answer; empty with one.
        headers: fields of the answer that a mode reads, names in lower case.
        excerpt: the first bytes of the body.
        took_ms: milliseconds from the begin of the attempt to its verdict.
        address: the address that was connected to; empty for none.
    """

    status: int
    failure: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    excerpt: bytes = b""
    took_ms: int = 0
    address: str = ""

    def header(self, name: str) -> str:
        """Return the value of the first field of this name, in lower case; empty for none."""
        return next((value for one, value in self.headers if one == name), "")

    @property
    def reason(self) -> str:
        """The outcome as a short code for people and programs: `http-503`, `connect-timeout`."""
        return self.failure or f"http-{self.status}"


def judged(answer: PushAnswer) -> AttemptVerdict:
    """Return the meaning of an answer by Standard Webhooks."""
    if 200 <= answer.status < 300:
        return AttemptVerdict.DELIVERED
    if answer.status == 410:
        return AttemptVerdict.GONE
    return AttemptVerdict.THROTTLED if answer.status in _THROTTLING else AttemptVerdict.FAILED
