"""One family of errors; one handler per surface turns them into a problem document, a WebSocket error or a CLI line.

`code` is stable and part of the wire contract: the problem document's `type` is `urn:herald:problem:CODE`, and the same
string is the `type` of a WebSocket error (docs/protocol.md lists all codes). `status` is the HTTP status of the code.
"""

from __future__ import annotations

from typing import Any, ClassVar


class ConfigError(Exception):
    """A setting is wrong; the message is one sentence for the operator. Raised only at start."""


class HeraldError(Exception):
    """An answer to a client that is not success. `detail` says what to do next; `extra` adds members to the document."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Something went wrong here"

    def __init__(self, detail: str, *, retry_after_s: int | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.extra = extra

    @property
    def type(self) -> str:
        """The stable `type` URI of the problem document."""
        return f"urn:herald:problem:{self.code}"

    def document(self) -> dict[str, Any]:
        """The RFC 9457 problem document."""
        return {"type": self.type, "title": self.title, "status": self.status, "detail": self.detail, **self.extra}


class InvalidRequest(HeraldError):
    code, status, title = "invalid-request", 400, "The request is not valid"


class InvalidEvent(HeraldError):
    code, status, title = "invalid-event", 400, "The event is not a valid CloudEvent"


class InvalidCursor(HeraldError):
    code, status, title = "invalid-cursor", 400, "The cursor is not one of ours"


class Unauthenticated(HeraldError):
    code, status, title = "unauthenticated", 401, "A valid token is needed"


TOKEN_NEEDED = "Send a token as `Authorization: Bearer TOKEN` or `?access_token=TOKEN`."  # noqa: S105 - a sentence
"""The detail of an Unauthenticated for a request without a token."""


class TokenRevoked(Unauthenticated):
    code, status, title = "token-revoked", 401, "The token has been revoked"


class Forbidden(HeraldError):
    code, status, title = "forbidden", 403, "This is not allowed to you"


class NotFound(HeraldError):
    code, status, title = "not-found", 404, "There is nothing here"


class MethodNotAllowed(HeraldError):
    code, status, title = "method-not-allowed", 405, "This method is not offered here"


class Conflict(HeraldError):
    code, status, title = "conflict", 409, "This conflicts with what exists"


class Paused(HeraldError):
    """`reason` is what the operator said, for publishers to read; empty for nothing."""

    code, status, title = "paused", 409, "Publishing is paused here"


def paused_here(reason: str) -> Paused:
    """The refusal of a publish at an RP that is paused for this `reason` (may be empty)."""
    why = f" ({reason})" if reason else ""
    return Paused(
        f"An operator of this domain has paused publishing here{why}. Try again once it is resumed; readers stay.",
        reason=reason,
    )


class AudienceMissing(HeraldError):
    """`missing` lists each audience that lacks readers: `label`, `at_least`, `present`."""

    code, status, title = "audience-missing", 409, "Those who must be reading are not"


class Gone(HeraldError):
    code, status, title = "gone", 410, "This has ended"


class Moved(HeraldError):
    """`rp` is the RP's id, `to` the base URLs of other domains that serve it."""

    code, status, title = "moved", 307, "Other domains serve this"


ENDED = frozenset({Moved.status, NotFound.status, Gone.status})  # an RP whose use is answered so is not served here


class PreconditionFailed(HeraldError):
    code, status, title = "precondition-failed", 412, "It has changed since you read it"


class TooLarge(HeraldError):
    code, status, title = "too-large", 413, "The request is too large"


class UnsupportedMediaType(HeraldError):
    code, status, title = "unsupported-media-type", 415, "This content type is not understood here"


class IdempotencyMismatch(HeraldError):
    code, status, title = "idempotency-mismatch", 422, "The idempotency key was used for another request"


class QuotaExceeded(HeraldError):
    code, status, title = "quota-exceeded", 409, "The domain's quota does not allow this"


class PeerUnreachable(HeraldError):
    code, status, title = "peer-unreachable", 424, "The other domain did not answer as one"


class RateLimited(HeraldError):
    code, status, title = "rate-limited", 429, "Too many requests"


class Timeout(HeraldError):
    code, status, title = "timeout", 408, "The request did not arrive in time"


class Unavailable(HeraldError):
    code, status, title = "unavailable", 503, "This is not available right now"


class AckUnavailable(HeraldError):
    code, status, title = "ack-unavailable", 503, "The asked acknowledgement level cannot be given"
