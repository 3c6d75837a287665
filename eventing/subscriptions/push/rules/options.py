"""The stated options of a webhook: the members of `deliver` with the mode `webhook`. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from eventing.core.errors import InvalidRequest
from eventing.subscriptions.push.rules.addresses import EndpointUrl, endpoint_url
from eventing.subscriptions.push.rules.signatures import secret_parse

FORMATS = ("structured", "binary", "batch", "raw")
SIGNATURES = ("v1", "v1a", "both")
VERIFICATIONS = ("challenge", "cloudevents")
IN_FLIGHT_MAX = 32  # bound: requests of one unordered subscription at once; the request is refused
BATCH_EVENTS_MAX = 100  # bound: events of one delivery; the request is refused
ATTEMPTS_MAX = 10  # bound: attempts after which an event is given up; the request is refused
HEADERS_MAX = 16  # bound: custom headers of an endpoint; the request is refused
HEADER_CHARS_MAX = 1024  # bound: characters of a custom header's value; the request is refused
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)
_VALUE = re.compile(r"[\x20-\x7e]*", re.ASCII)
_OURS = frozenset(
    (
        "accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host",
        "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        "user-agent", "webhook-request-origin",
    )
)  # fmt: skip
"""Fields that a request has of its own."""
_OURS_BEGIN = ("webhook-", "ce-", "proxy-", "sec-")
MEMBERS = (
    "mode", "url", "format", "ordered", "in_flight", "batch", "headers", "secret", "signature", "verification", "max_attempts",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Validated options of a webhook.

    Attributes:
        url: the whole URL as stated, a secret because of its query.
        in_flight: requests at once; 1 for an ordered subscription.
        batch: most events of one request; more than 1 in the format `batch` only.
        headers: custom headers; their values are secrets.
        secret: of the signature v1; empty for none.
        max_attempts: attempts after which an event becomes a dead letter; None: the endpoint is paused when the schedule
            is exhausted.
    """

    url: str
    parts: EndpointUrl
    format: str
    ordered: bool
    in_flight: int
    batch: int
    headers: tuple[tuple[str, str], ...]
    secret: str
    signature: str
    verification: str
    max_attempts: int | None

    @property
    def shown(self) -> dict[str, Any]:
        """The options as answers and administrative events show them: without secrets."""
        return {
            "mode": "webhook",
            "url": self.parts.shown,
            "format": self.format,
            "ordered": self.ordered,
            "in_flight": self.in_flight,
            "batch": self.batch,
            "headers": [name for name, _ in self.headers],
            "signature": self.signature,
            "verification": self.verification,
            "max_attempts": self.max_attempts,
        }


def webhook_options(stated: Mapping[str, Any], *, ports: Collection[int], private: bool) -> WebhookOptions:
    """Validate the members of `deliver`. Raises InvalidRequest."""
    unknown = sorted(set(stated) - set(MEMBERS))
    if unknown:
        raise InvalidRequest(f"deliver has no member {', '.join(unknown)[:100]}.")
    url = stated.get("url")
    if not isinstance(url, str):
        raise InvalidRequest("deliver.url is missing: the address of your endpoint.")
    parts = endpoint_url(url, ports=ports, private=private)
    secret = stated.get("secret") or ""
    if secret:
        secret_parse(secret)
    format_ = _choice(stated, "format", FORMATS, "structured")
    signature = _choice(stated, "signature", SIGNATURES, "v1" if secret else "v1a")
    if signature != "v1a" and not secret:
        raise InvalidRequest(f"deliver.signature {signature} needs deliver.secret.")
    ordered = stated.get("ordered")
    ordered = True if ordered is None else bool(ordered)
    in_flight = _number(stated, "in_flight", 1 if ordered else 8, IN_FLIGHT_MAX)
    if ordered and in_flight != 1:
        raise InvalidRequest("deliver.in_flight is 1 for an ordered subscription; state ordered: false for more.")
    batch = _number(stated, "batch", BATCH_EVENTS_MAX if format_ == "batch" else 1, BATCH_EVENTS_MAX)
    if batch > 1 and format_ != "batch":
        raise InvalidRequest("deliver.batch is for the format `batch`.")
    attempts = stated.get("max_attempts")
    return WebhookOptions(
        url=url,
        parts=parts,
        format=format_,
        ordered=ordered,
        in_flight=in_flight,
        batch=batch,
        headers=custom_headers(stated.get("headers") or {}),
        secret=secret,
        signature=signature,
        verification=_choice(stated, "verification", VERIFICATIONS, "challenge"),
        max_attempts=None if attempts is None else _number(stated, "max_attempts", 1, ATTEMPTS_MAX),
    )


def custom_headers(stated: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Validate custom headers. Raises InvalidRequest."""
    if len(stated) > HEADERS_MAX:
        raise InvalidRequest(f"deliver.headers has at most {HEADERS_MAX} members.")
    seen: set[str] = set()
    for name, value in stated.items():
        low = name.lower()
        if not _NAME.fullmatch(name) or low in seen:
            raise InvalidRequest("deliver.headers has a name that is not a header's, or has it twice.")
        if low in _OURS or low.startswith(_OURS_BEGIN):
            raise InvalidRequest(f"The header {name} is set by Herald.")
        if not isinstance(value, str) or len(value) > HEADER_CHARS_MAX or not _VALUE.fullmatch(value):
            raise InvalidRequest(f"The header {name} is at most {HEADER_CHARS_MAX} printable ASCII characters.")
        seen.add(low)
    return tuple((name, value.strip()) for name, value in stated.items())


def _choice(stated: Mapping[str, Any], name: str, among: tuple[str, ...], default: str) -> str:
    value = stated.get(name)
    if value is None:
        return default
    if value not in among:
        raise InvalidRequest(f"deliver.{name} is one of {', '.join(among)}.")
    return str(value)


def _number(stated: Mapping[str, Any], name: str, default: int, most: int) -> int:
    value = stated.get(name)
    if value is None:
        return default
    if type(value) is not int or not 1 <= value <= most:
        raise InvalidRequest(f"deliver.{name} is from 1 to {most}.")
    return value
