"""A forger's tools: Biscuits taken apart and put together by hand, with content that no library would write."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True)
class Chain:
    """A Biscuit's signed blocks, the authority's first, as bytes, and its proof: the secret that signs the next block."""

    kid: str
    blocks: tuple[bytes, ...]
    proof: bytes

    @classmethod
    def of(cls, token: str) -> Chain:
        _, kid, text = token.split(":")
        members = fields(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        blocks = [value for number, value in members if number in (2, 3)]
        (proof,) = [value for number, value in members if number == 4]
        return cls(kid, tuple(blocks), proof)

    @property
    def token(self) -> str:
        authority, *appended = self.blocks
        data = member(2, authority) + b"".join(member(3, block) for block in appended) + member(4, self.proof)
        return textual(self.kid, data)

    def appended(self, content: bytes, *, more: bytes = b"", public: bytes = b"") -> Chain:
        """With a block of any content, signed as a holder signs: with the secret that the token carries.

        `public`: the key that the chain goes on with; empty for a new one.
        """
        ((number, secret),) = fields(self.proof)
        assert number == 1
        key, following = Ed25519PrivateKey.from_private_bytes(secret), Ed25519PrivateKey.generate()
        public = public or following.public_key().public_bytes_raw()
        signature = key.sign(content + struct.pack("<i", 0) + public)
        next_key = b"\x08\x00" + member(2, public)
        block = member(1, content) + member(2, next_key) + member(3, signature) + more
        return replace(self, blocks=(*self.blocks, block), proof=member(1, following.private_bytes_raw()))


def textual(kid: str, data: bytes) -> str:
    return f"biscuit:{kid}:{base64.urlsafe_b64encode(data).decode().rstrip('=')}"


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def member(number: int, value: bytes | int) -> bytes:
    """A field of a Protocol Buffers message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(data: bytes) -> list[tuple[int, bytes]]:
    """The length-delimited fields of a message."""
    found, at = [], 0
    while at < len(data):
        tag, at = _read(data, at)
        value, at = _read(data, at)
        if tag & 7 == 2:
            found.append((tag >> 3, data[at : at + value]))
            at += value
    return found


def _read(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def block(symbols: Sequence[str] = (), *, facts: Sequence[bytes] = (), checks: Sequence[bytes] = ()) -> bytes:
    """The content of a block of schema version 3."""
    parts = [member(1, symbol.encode()) for symbol in symbols] + [member(3, 3)]
    return b"".join([*parts, *(member(4, fact) for fact in facts), *(member(6, check) for check in checks)])
