"""URL, addresses and signing secret of a contact point, sealed as one text (sql/sealed.py)."""

from __future__ import annotations

import msgspec

from eventing.core.decoding import Undecodable, json_reader
from eventing.sql.sealed import SealBroken, opened, sealed


class SealedTarget(msgspec.Struct, array_like=True, frozen=True):
    """The target of a contact point. Members are added at the end only."""

    url: str = ""
    secret: str = ""
    to: tuple[str, ...] = ()


class TargetNotOpened(Exception):
    """The target was sealed with another HERALD_SECRET_KEY: it has to be stated again."""


_encode = msgspec.json.Encoder().encode
_decode = json_reader(SealedTarget)


def seal(contact_point: str, target: SealedTarget) -> bytes:
    """Encrypt the target of the contact point with this id."""
    return sealed(_encode(target).decode(), _place(contact_point))


def unseal(contact_point: str, data: bytes) -> SealedTarget:
    """Decrypt what `seal` made. Raises TargetNotOpened."""
    try:
        return _decode(opened(data, _place(contact_point)).encode())
    except (SealBroken, Undecodable):
        raise TargetNotOpened from None


def _place(contact_point: str) -> str:
    return f"contact point:{contact_point}:sealed"
