"""Verification of webhooks by the signature schemes of their senders. Pure: secrets and the time are arguments.

Every comparison of a secret or a signature takes the same time wherever they differ (hmac.compare_digest). Several
secrets may be valid at once: those of a rotation.

Sources: GitHub, "Validating webhook deliveries"; Stripe, "Check the webhook signatures"; the Standard Webhooks
specification; Grafana, "Configure webhook notifications", HMAC signature.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence

from cryptography.exceptions import InvalidSignature

from eventing.core.ed25519 import BadPublicKey, public_key, public_key_check, public_key_text
from eventing.core.errors import InvalidRequest, SignatureInvalid
from eventing.intakes.rules.formats import (
    FORMATS,
    GITHUB,
    GRAFANA,
    SECRET_CHARS_MAX,
    SECRET_CHARS_MIN,
    STANDARD,
    STRIPE,
    WEBSUB,
)

# Of Stripe's and Standard Webhooks' own libraries; it covers clocks that differ, and bounds replays.
TOLERANCE_S = 300  # bound: seconds between the signature's time and now; `signature-invalid`
SIGNATURES_MAX = 16  # bound: signatures in one header; the others are not examined
STANDARD_SECRET_BYTES = (24, 64)  # bound: bytes of a Standard Webhooks secret; another length is refused
SYMMETRIC_PREFIX, PUBLIC_PREFIX = "whsec_", "whpk_"
GITHUB_HEADER = "x-hub-signature-256"
STRIPE_HEADER = "stripe-signature"
GRAFANA_HEADER = "x-grafana-alerting-signature"
WEBSUB_HEADER = "x-hub-signature"
WEBSUB_METHODS = (
    "sha1",
    "sha256",
    "sha384",
    "sha512",
)  # the hub chooses; HMAC with SHA-1 is still in use and not broken

Headers = Mapping[str, str]
"""Lower-case names, and the first value of each."""

_UNIX_S = re.compile(r"[0-9]{1,12}", re.ASCII)


def check_secret(kind: str, secret: str) -> None:
    """Refuse a secret that the format cannot have. Raises InvalidRequest; the text does not repeat the secret."""
    if not SECRET_CHARS_MIN <= len(secret) <= SECRET_CHARS_MAX or not secret.isascii() or not secret.isprintable():
        raise InvalidRequest(
            f"secret has {SECRET_CHARS_MIN} to {SECRET_CHARS_MAX} printable ASCII characters; make a long random one."
        )
    if kind == STANDARD:
        _standard_key(secret)


def verify(
    kind: str, secrets: Sequence[str], headers: Headers, body: bytes, *, now: float, timestamp_header: str = ""
) -> None:
    """Verify a webhook. Raises SignatureInvalid, which states what is missing or wrong and nothing of the secret.

    Args:
        kind: name of the format.
        secrets: those that are valid now; none only where the format needs none, and then nothing is verified.
        body: the bytes as received.
        now: Unix seconds.
        timestamp_header: of Grafana: lower-case name of the header with the signature's time; empty: the body alone is
            signed.
    """
    if not secrets:
        if FORMATS[kind].secret_needed:
            raise SignatureInvalid("This intake has no secret to verify with; state one.")
        return
    if kind == GITHUB:
        _github(secrets, headers, body)
    elif kind == STRIPE:
        _stripe(secrets, headers, body, now)
    elif kind == STANDARD:
        _standard(secrets, headers, body, now)
    elif kind == GRAFANA:
        _grafana(secrets, headers, body, now, timestamp_header)
    elif kind == WEBSUB:
        _websub(secrets, headers, body)
    else:
        _authorization(secrets, headers)


def _github(secrets: Sequence[str], headers: Headers, body: bytes) -> None:
    stated = _stated(headers, GITHUB_HEADER)
    if not stated.startswith("sha256="):
        raise SignatureInvalid(f"{GITHUB_HEADER} is sha256=HEX.")
    _require_hex(secrets, body, [stated.removeprefix("sha256=")], GITHUB_HEADER)


def _stripe(secrets: Sequence[str], headers: Headers, body: bytes, now: float) -> None:
    pairs = [part.strip().partition("=") for part in _stated(headers, STRIPE_HEADER).split(",")]
    moments = [value for name, _, value in pairs if name == "t"]
    if len(moments) != 1:
        raise SignatureInvalid(f"{STRIPE_HEADER} states one time, t=SECONDS.")
    _require_recent(moments[0], STRIPE_HEADER, now)
    signatures = [value for name, _, value in pairs if name == "v1"]
    _require_hex(secrets, f"{moments[0]}.".encode() + body, signatures, STRIPE_HEADER)


def _grafana(secrets: Sequence[str], headers: Headers, body: bytes, now: float, timestamp_header: str) -> None:
    signed = body
    if timestamp_header:
        moment = _stated(headers, timestamp_header)
        _require_recent(moment, timestamp_header, now)
        signed = f"{moment}:".encode() + body
    _require_hex(secrets, signed, [_stated(headers, GRAFANA_HEADER)], GRAFANA_HEADER)


def _websub(secrets: Sequence[str], headers: Headers, body: bytes) -> None:
    method, _, stated = _stated(headers, WEBSUB_HEADER).partition("=")
    if method not in WEBSUB_METHODS:
        raise SignatureInvalid(f"{WEBSUB_HEADER} is METHOD=HEX with a method of {', '.join(WEBSUB_METHODS)}.")
    _require_hex(secrets, body, [stated], WEBSUB_HEADER, method)


def _standard(secrets: Sequence[str], headers: Headers, body: bytes, now: float) -> None:
    message, moment = _stated(headers, "webhook-id"), _stated(headers, "webhook-timestamp")
    _require_recent(moment, "webhook-timestamp", now)
    signed = f"{message}.{moment}.".encode("latin-1") + body
    stated = [one.partition(",") for one in _stated(headers, "webhook-signature").split(" ")[:SIGNATURES_MAX]]
    keys = [_standard_key(secret) for secret in secrets]
    good = False
    for version, _, text in stated:
        try:
            signature = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            continue
        for symmetric, key in keys:
            if symmetric and version == "v1":
                good |= hmac.compare_digest(hmac.digest(key, signed, hashlib.sha256), signature)
            elif not symmetric and version == "v1a":
                good |= _ed25519(key, signature, signed)
    if not good:
        raise SignatureInvalid("No signature in webhook-signature is valid for this body, id and time.")


def _authorization(secrets: Sequence[str], headers: Headers) -> None:
    scheme, _, credentials = _stated(headers, "authorization").partition(" ")
    shown = credentials.strip().encode("latin-1")
    if scheme.lower() == "basic":
        try:
            shown = base64.b64decode(shown, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            raise SignatureInvalid("Authorization: Basic is not base64.") from None
    elif scheme.lower() != "bearer":
        raise SignatureInvalid("Send the intake's secret as the password of Authorization: Basic, or as Bearer.")
    if not _any([hmac.compare_digest(shown, secret.encode()) for secret in secrets]):
        raise SignatureInvalid("The secret in Authorization is not this intake's.")


def _stated(headers: Headers, name: str) -> str:
    value = headers.get(name, "").strip()
    if not value:
        raise SignatureInvalid(f"The header {name} is missing.")
    return value


def _require_recent(text: str, where: str, now: float) -> None:
    if _UNIX_S.fullmatch(text) is None:
        raise SignatureInvalid(f"The time in {where} is a number of Unix seconds.")
    if abs(now - int(text)) > TOLERANCE_S:
        raise SignatureInvalid(f"The time in {where} differs from this domain's clock by more than {TOLERANCE_S} s.")


def _require_hex(
    secrets: Sequence[str], signed: bytes, stated: Sequence[str], where: str, method: str = "sha256"
) -> None:
    expected = [hmac.digest(secret.encode(), signed, method).hex().encode() for secret in secrets]
    shown = [one.strip().encode("latin-1") for one in stated[:SIGNATURES_MAX]]
    if not _any([hmac.compare_digest(one, good) for one in shown for good in expected]):
        raise SignatureInvalid(f"The signature in {where} is not valid for this body and the intake's secret.")


def _any(results: list[bool]) -> bool:
    """Return True if one is True, after all of them were computed."""
    return True in results


def _standard_key(secret: str) -> tuple[bool, bytes]:
    """Return whether the key is symmetric, and its bytes. Raises InvalidRequest."""
    public = secret.startswith(PUBLIC_PREFIX)
    text = secret.removeprefix(PUBLIC_PREFIX).removeprefix(SYMMETRIC_PREFIX)
    try:
        key = base64.b64decode(text, validate=True)
        if public:
            public_key_check(key)
    except (binascii.Error, BadPublicKey, ValueError):
        raise InvalidRequest(
            f"secret is {SYMMETRIC_PREFIX}BASE64, or {PUBLIC_PREFIX}BASE64 of an Ed25519 key."
        ) from None
    low, high = STANDARD_SECRET_BYTES
    if not public and not low <= len(key) <= high:
        raise InvalidRequest(f"A Standard Webhooks secret has {low} to {high} bytes, in base64.")
    return not public, key


def _ed25519(key: bytes, signature: bytes, signed: bytes) -> bool:
    try:
        public_key(public_key_text(key)).verify(signature, signed)
    except InvalidSignature:
        return False
    return True
