"""The stated options of an endpoint: the members of `deliver` with the mode `webhook` or `cloudevents-http`. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from eventing.core.errors import InvalidRequest
from eventing.subscriptions.push.rules.addresses import EndpointUrl, endpoint_url
from eventing.subscriptions.push.rules.client_identities import ClientIdentity, certificate_shown, client_identity
from eventing.subscriptions.push.rules.credentials import StatedCredential, credential_shown, stated_credential
from eventing.subscriptions.push.rules.request_rates import RATE_MAX
from eventing.subscriptions.push.rules.signatures import secret_parse

WEBHOOK, CLOUDEVENTS_HTTP = "webhook", "cloudevents-http"
MODES = (WEBHOOK, CLOUDEVENTS_HTTP)
FORMATS = ("structured", "binary", "batch", "raw")
CLOUDEVENTS_FORMATS = FORMATS[:3]
"""Formats of the mode `cloudevents-http`: the content modes of the HTTP protocol binding."""
SIGNATURES = ("v1", "v1a", "both")
CHALLENGE, HANDSHAKE = "challenge", "cloudevents"
VERIFICATIONS = (CHALLENGE, HANDSHAKE)
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
HIDDEN = "\u2026"
"""The value of a custom header in place of the one that the endpoint has: no header can have it as a value."""
_OURS_BEGIN = ("webhook-", "ce-", "proxy-", "sec-")
_MEMBERS = (
    "mode", "url", "format", "ordered", "in_flight", "batch", "headers", "secret", "signature", "max_attempts", "rate",
    "client_certificate", "client_key", "warn_url",
)  # fmt: skip
MEMBERS = {WEBHOOK: (*_MEMBERS, "verification"), CLOUDEVENTS_HTTP: (*_MEMBERS, "credential")}
"""Members of `deliver`, by mode."""


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Validated options of an endpoint.

    Attributes:
        mode: of MODES.
        url: the whole URL as stated, a secret because of its query.
        in_flight: requests at once; 1 for an ordered subscription.
        batch: most events of one request; more than 1 in the format `batch` only.
        headers: custom headers; their values are secrets.
        secret: of the signature v1; empty for none.
        max_attempts: attempts after which an event becomes a dead letter; None: the endpoint is paused when the schedule
            is exhausted.
        rate: most requests a minute; None for no bound of the owner's.
        identity: client certificate and key of mutual TLS, secrets.
        warn_url: address that gets a warning when the endpoint is paused, a secret because of its query; empty for none.
        credential: of the sink, by the CloudEvents Subscriptions API.
    """

    mode: str
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
    rate: int | None = None
    identity: ClientIdentity | None = None
    warn_url: str = ""
    warn_parts: EndpointUrl | None = None
    credential: StatedCredential | None = None

    @property
    def shown(self) -> dict[str, Any]:
        """The options as answers and administrative events show them: without secrets, and optional ones where stated."""
        shown: dict[str, Any] = {
            "mode": self.mode,
            "url": self.parts.shown,
            "format": self.format,
            "ordered": self.ordered,
            "in_flight": self.in_flight,
            "batch": self.batch,
            "headers": [name for name, _ in self.headers],
            "signature": self.signature,
            "max_attempts": self.max_attempts,
        }
        if self.mode == WEBHOOK:
            shown["verification"] = self.verification
        if self.rate is not None:
            shown["rate"] = self.rate
        if self.identity is not None:
            shown["client_certificate"] = certificate_shown(self.identity)
        if self.warn_parts is not None:
            shown["warn_url"] = self.warn_parts.shown
        if self.credential is not None:
            shown["credential"] = credential_shown(self.credential)
        return shown


def webhook_options(stated: Mapping[str, Any], *, ports: Collection[int], private: bool) -> WebhookOptions:
    """Validate the members of `deliver`. Raises InvalidRequest."""
    mode = _choice(stated, "mode", MODES, WEBHOOK)
    unknown = sorted(set(stated) - set(MEMBERS[mode]))
    if unknown:
        raise InvalidRequest(f"deliver has no member {', '.join(unknown)[:100]} with the mode {mode}.")
    url = stated.get("url")
    if not isinstance(url, str):
        raise InvalidRequest("deliver.url is missing: the address of your endpoint.")
    parts = endpoint_url(url, ports=ports, private=private)
    secret = stated.get("secret") or ""
    if secret:
        secret_parse(secret)
    format_ = _choice(stated, "format", FORMATS if mode == WEBHOOK else CLOUDEVENTS_FORMATS, "structured")
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
    headers, credential = custom_headers(stated.get("headers") or {}), _credential(stated)
    if credential is not None and any(name.lower() == "authorization" for name, _ in headers):
        raise InvalidRequest("State either the header Authorization or a credential.")
    warn_url = stated.get("warn_url") or ""
    return WebhookOptions(
        mode=mode,
        url=url,
        parts=parts,
        format=format_,
        ordered=ordered,
        in_flight=in_flight,
        batch=batch,
        headers=headers,
        secret=secret,
        signature=signature,
        verification=_choice(stated, "verification", VERIFICATIONS, CHALLENGE if mode == WEBHOOK else HANDSHAKE),
        max_attempts=_number_or_none(stated, "max_attempts", ATTEMPTS_MAX),
        rate=_number_or_none(stated, "rate", RATE_MAX),
        identity=_identity(stated, parts),
        warn_url=warn_url,
        warn_parts=endpoint_url(warn_url, ports=ports, private=private, member="deliver.warn_url")
        if warn_url
        else None,
        credential=credential,
    )


def _identity(stated: Mapping[str, Any], parts: EndpointUrl) -> ClientIdentity | None:
    certificate, key = stated.get("client_certificate"), stated.get("client_key")
    if certificate is None and key is None:
        return None
    if not isinstance(certificate, str) or not isinstance(key, str):
        raise InvalidRequest("deliver.client_certificate and deliver.client_key are stated together.")
    if not parts.is_tls:
        raise InvalidRequest("deliver.client_certificate is for an https URL.")
    return client_identity(certificate, key)


def _credential(stated: Mapping[str, Any]) -> StatedCredential | None:
    """Return the credential: members as stated, or the one that the endpoint has already."""
    found = stated.get("credential")
    if found is None or isinstance(found, StatedCredential):
        return found
    return stated_credential(found)


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


def _number_or_none(stated: Mapping[str, Any], name: str, most: int) -> int | None:
    return None if stated.get(name) is None else _number(stated, name, 1, most)
