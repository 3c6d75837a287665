"""Another domain as tests see it: a name, keys, and the documents that it signs with them."""

from __future__ import annotations

import time
from typing import Any

from joserfc.jwk import OKPKey

from eventing.access.rules import tokens
from eventing.core.signing import Signed
from eventing.peering.rules.domain_documents import make


class OtherDomain:
    """A domain with `keys` (private JWKs, the first key first) that can be rotated."""

    def __init__(self, name: str = "b.test", *, url: str = "https://b.test") -> None:
        self.name, self.url = name, url
        self.serial = 0
        self.keys: list[dict[str, Any]] = []
        self.add_key()

    @property
    def fingerprint(self) -> str:
        return str(self.keys[0]["kid"])

    def add_key(self, *, nbf: int = 0, **window: int) -> dict[str, Any]:
        """A new key, which signs from now on (`sign` uses the newest)."""
        made = OKPKey.generate_key("Ed25519")
        self.keys.append({**made.as_dict(private=True), "kid": made.thumbprint(), "nbf": nbf, **window})
        return self.keys[-1]

    def document(self, **content: Any) -> Signed:
        """Its document with the keys of now, newer than all before."""
        self.serial += 1
        said = {
            "domain": self.name,
            "url": self.url,
            "websocket": f"ws{self.url.removeprefix('http')}/ws",
            "versions": [1],
            "serial": self.serial,
            "issued_at": int(time.time()),
        }
        return make({**said, **content}, self.keys)

    def token(self, subject: str = "bea", *, key: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token for its own people."""
        now = int(time.time())
        made = {
            "iss": self.name,
            "aud": self.name,
            "sub": subject,
            "iat": now,
            "exp": now + 3600,
            "jti": "j1",
            **claims,
        }
        return tokens.sign(made, key or self.keys[-1])
