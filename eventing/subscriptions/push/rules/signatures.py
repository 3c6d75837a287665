"""Signatures of Standard Webhooks: `v1`, an HMAC with a shared secret, and `v1a`, Ed25519. Pure.

The signed text is ID.TIMESTAMP.BODY. While a secret is being replaced, the signatures of both are sent, so a receiver may
change over at any time.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from eventing.core.errors import InvalidRequest

SECRET_PREFIX = "whsec_"  # noqa: S105 - a prefix
PUBLIC_KEY_PREFIX = "whpk_"
SECRET_BYTES = (24, 64)
"""Least and most bytes of a secret, by Standard Webhooks."""


def secret_parse(text: str) -> bytes:
    """Return the bytes of a secret `whsec_BASE64`. Raises InvalidRequest."""
    low, high = SECRET_BYTES
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(SECRET_PREFIX) or not low <= len(key) <= high:
        raise InvalidRequest(f"A secret is {SECRET_PREFIX} and the Base64 form of {low} to {high} random bytes.")
    return key


def signature_key(master: bytes, subscription: str) -> Ed25519PrivateKey:
    """Derive the Ed25519 key of a subscription's signatures from the domain's master key."""
    derive = HKDF(SHA256(), 32, None, b"herald webhook v1a " + subscription.encode())
    return Ed25519PrivateKey.from_private_bytes(derive.derive(master))


def public_key_text(key: Ed25519PrivateKey) -> str:
    """Return the public key as receivers are given it: `whpk_BASE64`."""
    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return PUBLIC_KEY_PREFIX + base64.b64encode(raw).decode()


def signature_field(
    message: str, timestamp: int, body: bytes, secrets: Sequence[bytes], key: Ed25519PrivateKey | None
) -> str:
    """Return the value of `webhook-signature`: one signature of each secret, and of the key.

    Args:
        message: value of `webhook-id`.
        timestamp: value of `webhook-timestamp`, Unix seconds of this attempt.
    """
    signed = b"%b.%d.%b" % (message.encode(), timestamp, body)
    made = ["v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode() for secret in secrets]
    if key is not None:
        made.append("v1a," + base64.b64encode(key.sign(signed)).decode())
    return " ".join(made)
