"""Secrets of other systems in SQL: written once, sealed with the domain's secret key, opened only to be used.

A sealed secret is `v1` + nonce + AES-256-GCM of the text. The key is derived from HERALD_SECRET_KEY (HKDF, RFC 5869), so a
copy of the database alone opens nothing. Each is bound to its place, a text that names table, row and column: a
sealed secret that is moved to another row does not open there.

After a change of HERALD_SECRET_KEY the secrets have to be stated again.
"""

from __future__ import annotations

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from eventing.core.container import memoized

NONCE_BYTES = 12  # of AES-GCM (NIST SP 800-38D, section 5.2.1.1)
KEY_BYTES = 32
KEYS_REMEMBERED = 2  # bound: derived keys in memory; the key is derived again
_VERSION = b"v1"
_PURPOSE = b"herald sealed secrets v1"


class SealBroken(ValueError):
    """The bytes do not open here: another secret key, another place, or altered."""


def sealed(secret: str, place: str) -> bytes:
    """Seal `secret` for `place`, for example `intake:in_abc:secret`."""
    nonce = os.urandom(NONCE_BYTES)
    key = _key(str(settings.SECRET_KEY))
    return _VERSION + nonce + AESGCM(key).encrypt(nonce, secret.encode(), place.encode())


def opened(data: bytes, place: str) -> str:
    """Open what `sealed` made for the same place. Raises SealBroken."""
    nonce, text = data[len(_VERSION) : len(_VERSION) + NONCE_BYTES], data[len(_VERSION) + NONCE_BYTES :]
    if not data.startswith(_VERSION) or len(nonce) != NONCE_BYTES:
        raise SealBroken("not a sealed secret")
    try:
        return AESGCM(_key(str(settings.SECRET_KEY))).decrypt(nonce, text, place.encode()).decode()
    except InvalidTag:
        raise SealBroken("sealed with another secret key, or for another place") from None


@memoized(maxsize=KEYS_REMEMBERED)
def _key(secret_key: str) -> bytes:
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=_PURPOSE).derive(secret_key.encode())
