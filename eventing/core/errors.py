"""Errors of the application. One handler per surface turns them into a problem document, a WebSocket error or a CLI
line.

`code` is stable and part of the wire contract: the problem document's `type` is `urn:herald:problem:CODE`, and the same
string is the `type` of a WebSocket error (docs/protocol.md lists all codes). `status` is the HTTP status of the code.
"""

from __future__ import annotations

from typing import Any, ClassVar


class ConfigError(Exception):
    """A setting is wrong; raised only at start. The message is one sentence for the operator."""


class ApplicationError(Exception):
    """Refusal or failure of a client's request.

    Args:
        detail: what is wrong with this request, then what to do.
        retry_after_s: seconds after which the client may try again; None if a retry is pointless or the delay unknown.
        extra: further members of the problem document.
    """

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"

    def __init__(self, detail: str, *, retry_after_s: int | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.extra = extra

    @property
    def type(self) -> str:
        """Stable `type` URI of the problem document."""
        return f"urn:herald:problem:{self.code}"

    def document(self) -> dict[str, Any]:
        """Make the problem document (RFC 9457)."""
        return {"type": self.type, "title": self.title, "status": self.status, "detail": self.detail, **self.extra}


class InvalidRequest(ApplicationError):
    code, status, title = "invalid-request", 400, "Invalid request"


class InvalidEvent(ApplicationError):
    code, status, title = "invalid-event", 400, "Invalid CloudEvent"


class InvalidCursor(ApplicationError):
    code, status, title = "invalid-cursor", 400, "Invalid cursor"


class Unauthenticated(ApplicationError):
    code, status, title = "unauthenticated", 401, "Valid token required"


TOKEN_NEEDED = "Send a token as `Authorization: Bearer TOKEN` or `?access_token=TOKEN`."  # noqa: S105 - a sentence
"""Detail of an Unauthenticated for a request without a token."""


class TokenRevoked(Unauthenticated):
    code, status, title = "token-revoked", 401, "Token revoked"


class Forbidden(ApplicationError):
    code, status, title = "forbidden", 403, "Operation not permitted"


class SignatureInvalid(ApplicationError):
    code, status, title = "signature-invalid", 403, "Signature not valid"


class NotFound(ApplicationError):
    code, status, title = "not-found", 404, "Resource not found"


class MethodNotAllowed(ApplicationError):
    code, status, title = "method-not-allowed", 405, "Method not allowed"


class Conflict(ApplicationError):
    code, status, title = "conflict", 409, "Conflict with the current state"


class Paused(ApplicationError):
    """Publishing is paused. The member `reason` is the operator's explanation to publishers; may be empty."""

    code, status, title = "paused", 409, "Publishing paused"


def paused_here(reason: str) -> Paused:
    """Make the refusal of a publish at a paused RP."""
    why = f" ({reason})" if reason else ""
    return Paused(
        f"An operator of this domain has paused publishing here{why}. Try again later; reading continues.",
        reason=reason,
    )


class AudienceMissing(ApplicationError):
    """An audience lacks readers. The member `missing` lists each such audience: `label`, `at_least`, `present`."""

    code, status, title = "audience-missing", 409, "Required audience is not present"


class Gone(ApplicationError):
    code, status, title = "gone", 410, "Resource no longer exists"


class Moved(ApplicationError):
    """Other domains serve the RP. The members are `rp`, the RP's id, and `to`, base URLs of these domains."""

    code, status, title = "moved", 307, "Resource served by other domains"


ENDED = frozenset(
    {Moved.status, NotFound.status, Gone.status}
)  # statuses of an answer by which an RP is not served here


class PreconditionFailed(ApplicationError):
    code, status, title = "precondition-failed", 412, "Resource changed since it was read"


class TooLarge(ApplicationError):
    code, status, title = "too-large", 413, "Request too large"


class UnsupportedMediaType(ApplicationError):
    code, status, title = "unsupported-media-type", 415, "Unsupported content type"


class IdempotencyMismatch(ApplicationError):
    code, status, title = "idempotency-mismatch", 422, "Idempotency key used for another request"


class QuotaExceeded(ApplicationError):
    code, status, title = "quota-exceeded", 409, "Quota exceeded"


class PeerUnreachable(ApplicationError):
    code, status, title = "peer-unreachable", 424, "No valid answer from the other domain"


class RateLimited(ApplicationError):
    code, status, title = "rate-limited", 429, "Too many requests"


class Timeout(ApplicationError):
    code, status, title = "timeout", 408, "Request timeout"


class Unavailable(ApplicationError):
    code, status, title = "unavailable", 503, "Service temporarily unavailable"


class AckUnavailable(ApplicationError):
    code, status, title = "ack-unavailable", 503, "Requested acknowledgement level not available"


def problem_types() -> list[str]:
    """Return the types of all problems, in alphabetical order."""
    found, kinds = {ApplicationError}, [ApplicationError]
    while kinds:
        below = kinds.pop().__subclasses__()
        found.update(below)
        kinds += below
    return sorted(f"urn:herald:problem:{kind.code}" for kind in found if kind.__module__ == __name__)
