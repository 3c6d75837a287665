"""Client certificates of mutual TLS (RFC 8446, section 4.4.2): the checks of those that an owner states. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509 import load_pem_x509_certificates

from eventing.core.errors import InvalidRequest

PEM_CHARS_MAX = 16_384  # bound: characters of a certificate chain, or of its key; the request is refused
CHAIN_MAX = 4  # bound: certificates of a chain; the request is refused
RSA_BITS = (2048, 4096)
"""Least and most bits of an RSA key: a shorter one is forged, a longer one slows each handshake."""


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """A certificate chain, the leaf first, and the private key of the leaf, as PEM.

    Attributes:
        digest: SHA-256 of the leaf and of the key in hexadecimal; connections of different identities are never shared.
    """

    certificate: str
    key: str
    digest: str


def client_identity(certificate: str, key: str) -> ClientIdentity:
    """Validate a client certificate and its unencrypted key. Raises InvalidRequest."""
    if max(len(certificate), len(key)) > PEM_CHARS_MAX:
        raise InvalidRequest(f"deliver.client_certificate and client_key have at most {PEM_CHARS_MAX} characters each.")
    try:
        chain = load_pem_x509_certificates(certificate.encode())
    except ValueError:
        raise InvalidRequest("deliver.client_certificate is one or more certificates as PEM, the leaf first.") from None
    if len(chain) > CHAIN_MAX:
        raise InvalidRequest(f"deliver.client_certificate has at most {CHAIN_MAX} certificates.")
    try:
        private = load_pem_private_key(key.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidRequest("deliver.client_key is a private key as PEM, without a passphrase.") from None
    if not isinstance(private, RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey):
        raise InvalidRequest("deliver.client_key is an RSA, elliptic curve or Ed25519 key.")
    low, high = RSA_BITS
    if isinstance(private, RSAPrivateKey) and not low <= private.key_size <= high:
        raise InvalidRequest(f"deliver.client_key of RSA has {low} to {high} bits.")
    public = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if chain[0].public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) != public:
        raise InvalidRequest("deliver.client_key is not the key of the first certificate.")
    pem = "".join(one.public_bytes(Encoding.PEM).decode() for one in chain)
    text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return ClientIdentity(pem, text, hashlib.sha256((pem + text).encode()).hexdigest())


def certificate_shown(identity: ClientIdentity) -> str:
    """Return what is shown of a client certificate: `sha256:` and the fingerprint of the leaf."""
    leaf = load_pem_x509_certificates(identity.certificate.encode())[0]
    return f"sha256:{leaf.fingerprint(SHA256()).hex()}"
