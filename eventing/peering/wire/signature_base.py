"""Signature bases (RFC 9421 section 2.5) of the one form that domains sign: fixed components, fixed parameters in a fixed order.

Making and reading this form directly costs a tenth of what the general library does, which parses structured fields. What is signed here
is the same to the byte; what arrives in another form is left to the library (signatures.py). Pure.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from eventing.core.container import memoized

LABEL = "herald"
TAG = "herald"
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_SIGNATURE = re.compile(rf"{LABEL}=:([A-Za-z0-9+/]{{86}}==):", re.ASCII)
_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?", re.ASCII)
"""A field's value without whitespace around it."""


class PlainSignature(NamedTuple):
    """A signature of this form: its parameters, what it signs, and the signature."""

    kid: str
    created: int
    nonce: str
    base: bytes
    signature: bytes


def parameters(components: Sequence[str], created: int, kid: str, nonce: str) -> str:
    """Make the value of @signature-params."""
    return f'({_listed(tuple(components))});created={created};keyid="{kid}";alg="ed25519";nonce="{nonce}";tag="{TAG}"'


def digest(body: bytes) -> str:
    """Make the field Content-Digest of a body (RFC 9530)."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def base_of(message: Any, components: Sequence[str], stated: str) -> bytes | None:
    """Make the base of a message; None if a component is missing, or has a value that needs the general rules.

    Args:
        message: a SignedRequest or SignedAnswer.
        stated: the value of @signature-params.
    """
    lines = []
    for component in components:
        value = _value(message, component)
        if value is None or not _VALUE.fullmatch(value):
            return None
        name = component if component.startswith('"') else f'"{component}"'
        lines.append(f"{name}: {value}")
    lines.append(f'"@signature-params": {stated}')
    return "\n".join(lines).encode("ascii")


def signature_fields(stated: str, signature: bytes) -> dict[str, str]:
    """Make the fields Signature-Input and Signature."""
    return {
        "signature-input": f"{LABEL}={stated}",
        "signature": f"{LABEL}=:{base64.b64encode(signature).decode()}:",
    }


def read(message: Any, components: Sequence[str]) -> PlainSignature | None:
    """Read the signature of a message; None if it has another form than this module makes."""
    headers: Mapping[str, str] = message.headers
    found = _pattern(tuple(components)).fullmatch(headers.get("signature-input", ""))
    signed = _SIGNATURE.fullmatch(headers.get("signature", ""))
    if found is None or signed is None:
        return None
    base = base_of(message, components, found["stated"])
    try:
        signature = base64.b64decode(signed[1], validate=True)
    except binascii.Error:
        return None
    if base is None or base64.b64encode(signature).decode() != signed[1]:
        return None
    return PlainSignature(found["kid"], int(found["created"]), found["nonce"], base, signature)


def _value(message: Any, component: str) -> str | None:
    match component:
        case "@method":
            return str(message.method)
        case "@status":
            return str(message.status_code)
        case "@authority" | "@path":
            return _of_url(str(message.url))[component]
        case '"signature";req':
            value: str | None = message.request.headers.get("signature")
            return value if value is not None and _SIGNATURE.fullmatch(value) else None
    field: str | None = message.headers.get(component)
    return field


@memoized(maxsize=1024)
def _of_url(url: str) -> dict[str, str | None]:
    """Return authority and path of an address; None for those that need the general rules."""
    nothing: dict[str, str | None] = {"@authority": None, "@path": None}
    try:
        parts = urlsplit(url)
    except ValueError:
        return nothing
    authority = parts.netloc.lower().removesuffix(_DEFAULT_PORTS.get(parts.scheme, ":"))
    plain = re.fullmatch(r"[a-z0-9.-]+(:[1-9][0-9]{0,4})?", authority) and re.fullmatch(
        r"(/[A-Za-z0-9._-]+)+", parts.path
    )
    return {"@authority": authority, "@path": parts.path} if plain and parts.netloc.isascii() else nothing


@memoized(maxsize=16)
def _listed(components: tuple[str, ...]) -> str:
    return " ".join(component if component.startswith('"') else f'"{component}"' for component in components)


@memoized(maxsize=16)
def _pattern(components: tuple[str, ...]) -> re.Pattern[str]:
    listed = re.escape(f"({_listed(components)})")
    stated = (
        rf'{listed};created=(?P<created>0|[1-9][0-9]{{0,14}});keyid="(?P<kid>[A-Za-z0-9_-]{{1,64}})"'
        rf';alg="ed25519";nonce="(?P<nonce>[A-Za-z0-9_-]{{16,64}})";tag="{TAG}"'
    )
    return re.compile(rf"{LABEL}=(?P<stated>{stated})", re.ASCII)
