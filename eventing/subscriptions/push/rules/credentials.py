"""Credentials of a sink by the CloudEvents Subscriptions API (section 3.2.3), and the Authorization field made of them. Pure.

A refresh token is refused: Herald fetches no tokens from elsewhere.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from eventing.core.errors import InvalidRequest
from eventing.core.timestamps import timestamp

PLAIN, ACCESS_TOKEN = "PLAIN", "ACCESSTOKEN"
CREDENTIAL_TYPES = (PLAIN, ACCESS_TOKEN)
CREDENTIAL_CHARS_MAX = 4096  # bound: characters of an identifier, a secret or an access token; the request is refused
BEARER = "bearer"
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)
_TEXT = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]*")
# The last day of the year 9999, beyond which no moment can be written.
UNTIL_MAX = 253_402_214_400.0  # bound: Unix seconds at which a token expires; the request is refused


@dataclass(frozen=True, slots=True)
class StatedCredential:
    """A credential of a sink.

    Attributes:
        type: of CREDENTIAL_TYPES.
        identifier: account of a plain credential; empty for a token.
        field: value of the Authorization field, a secret.
        until: Unix seconds at which a token expires; None for never.
    """

    type: str
    identifier: str
    field: str
    until: float | None = None


def stated_credential(stated: Mapping[str, Any]) -> StatedCredential:
    """Validate the members of `sinkcredential`; `accesstokenexpiresutc` is Unix seconds. Raises InvalidRequest."""
    kind = stated.get("credentialtype")
    if kind not in CREDENTIAL_TYPES:
        raise InvalidRequest(
            f"sinkcredential.credentialtype is one of {', '.join(CREDENTIAL_TYPES)}; tokens are not refreshed here: "
            "update the subscription with another one."
        )
    if kind == PLAIN:
        identifier, secret = _text(stated, "identifier"), _text(stated, "secret")
        if ":" in identifier:
            raise InvalidRequest("sinkcredential.identifier has no colon (RFC 7617, section 2).")
        encoded = base64.b64encode(f"{identifier}:{secret}".encode()).decode()
        return StatedCredential(PLAIN, identifier, f"Basic {encoded}")
    token, until = _text(stated, "accesstoken"), stated.get("accesstokenexpiresutc")
    if str(stated.get("accesstokentype") or BEARER).lower() != BEARER:
        raise InvalidRequest("sinkcredential.accesstokentype is bearer.")
    if not _TOKEN.fullmatch(token):
        raise InvalidRequest("sinkcredential.accesstoken is not a bearer token (RFC 6750, section 2.1).")
    if until is None or not 0 <= until <= UNTIL_MAX:
        raise InvalidRequest(
            "sinkcredential.accesstokenexpiresutc is missing, or no moment that a token can expire at."
        )
    return StatedCredential(ACCESS_TOKEN, "", f"Bearer {token}", float(until))


def credential_shown(credential: StatedCredential) -> dict[str, Any]:
    """Return what is shown of a credential."""
    until = credential.until
    return {
        "type": credential.type,
        "identifier": credential.identifier,
        "expires_at": None if until is None else timestamp(datetime.fromtimestamp(until, tz=UTC)),
    }


def _text(stated: Mapping[str, Any], name: str) -> str:
    value = stated.get(name)
    if not isinstance(value, str) or not 1 <= len(value) <= CREDENTIAL_CHARS_MAX or not _TEXT.fullmatch(value):
        raise InvalidRequest(f"sinkcredential.{name} is a text of 1 to {CREDENTIAL_CHARS_MAX} characters.")
    return value
