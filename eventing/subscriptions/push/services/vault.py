"""Secrets of an endpoint, which are never shown: sealed as one text (sql/sealed.py), bound to its subscription.

With another HERALD_SECRET_KEY endpoints must be stated anew.
"""

from __future__ import annotations

import time

import msgspec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from eventing.core.container import per_process
from eventing.core.decoding import Undecodable, json_reader
from eventing.sql.sealed import SealBroken, opened, sealed

SECRETS_MAX = 2  # bound: secrets of an endpoint that sign at once; the oldest is dropped


class SealedSecret(msgspec.Struct, array_like=True, frozen=True):
    """A secret that signs, and until when; None: until it is replaced."""

    value: str
    until: float | None = None


class SealedIdentity(msgspec.Struct, array_like=True, frozen=True):
    """A client certificate and its key, as PEM."""

    certificate: str
    key: str
    digest: str


class SealedCredential(msgspec.Struct, array_like=True, frozen=True):
    """A credential: its type, account, value of the Authorization field, and until when it is valid; None: for ever."""

    type: str
    identifier: str
    field: str
    until: float | None = None


class EndpointSecrets(msgspec.Struct, array_like=True, frozen=True):
    """Secrets of an endpoint, which are never shown. The newest secret is first. Members are added at the end only.

    `mode_data` is data of the mode's own, such as the sink of WS-Eventing.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    secrets: tuple[SealedSecret, ...] = ()
    identity: SealedIdentity | None = None
    warn_url: str = ""
    credential: SealedCredential | None = None
    mode_data: str = ""

    def signing(self, now: float | None = None) -> tuple[str, ...]:
        """Return the secrets that sign at a time, Unix seconds."""
        at = time.time() if now is None else now
        return tuple(one.value for one in self.secrets if one.until is None or one.until > at)


class SecretsNotOpened(Exception):
    """The secrets of an endpoint were sealed with another key."""


_encode = msgspec.json.Encoder().encode
_decode = json_reader(EndpointSecrets)


@per_process
def signing_master() -> bytes:
    """Return the key from which the keys of the signatures v1a are derived."""
    return HKDF(SHA256(), 32, None, b"herald push signatures").derive(str(settings.SECRET_KEY).encode())


def seal(subscription: str, secrets: EndpointSecrets) -> bytes:
    """Encrypt the secrets of a subscription's endpoint."""
    return sealed(_encode(secrets).decode(), _place(subscription))


def unseal(subscription: str, data: bytes) -> EndpointSecrets:
    """Decrypt what `seal` made. Raises SecretsNotOpened."""
    try:
        return _decode(opened(bytes(data), _place(subscription)).encode())
    except (SealBroken, Undecodable):
        raise SecretsNotOpened from None


def _place(subscription: str) -> str:
    return f"push endpoint:{subscription}:sealed"
