"""The identity provider as its discovery document describes it (OpenID Connect Discovery 1.0), and its keys."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eventing.conf import config
from eventing.core.config import Config
from eventing.core.container import per_process
from eventing.core.errors import Unauthenticated, Unavailable
from portal.console.oidc.fetching import fetch_json
from portal.security import secure_url

DISCOVERED_S = 3600
"""A discovery document is read again after this; providers change theirs once in years."""

KEYS_S = 600
KEYS_AGAIN_S = 30
"""An unknown key id triggers a new fetch of the keys, but not more often than this."""

KEYS_MAX = 32
ALGORITHMS = {"RS256": "RSA", "ES256": "EC"}
"""Accepted signature algorithms of id tokens, and the key type of each. Every provider must offer RS256."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Endpoints and algorithm of the provider; `basic`: whether the client secret is sent in a header (the default) or
    in the form."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str
    jwks_uri: str
    algorithm: str
    basic: bool


def client_secret(config: Config) -> str:
    """Return the client secret. Raises Unavailable when its file cannot be read."""
    if config.oidc_client_secret:
        return config.oidc_client_secret
    try:
        return Path(config.oidc_client_secret_file).read_text().strip()
    except (OSError, ValueError):
        raise Unavailable("HERALD_OIDC_CLIENT_SECRET_FILE cannot be read.") from None


class Directory:
    """The configured provider, discovered when first needed; a start never waits for it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: tuple[float, Provider] | None = None
        self._keys: tuple[float, list[dict[str, Any]]] = (float("-inf"), [])

    def provider(self) -> Provider:
        """Return the provider. Raises Unavailable when it does not respond or contradicts the setting."""
        with self._lock:
            now = time.monotonic()
            if self._found is None or now - self._found[0] > DISCOVERED_S:
                self._found = (now, discover(config().oidc_issuer))
            return self._found[1]

    def key(self, key_id: str | None, algorithm: str) -> dict[str, Any]:
        """The public JWK that signs under `key_id`. Raises Unauthenticated when the provider has none, Unavailable."""
        provider = self.provider()
        with self._lock:
            age_s = time.monotonic() - self._keys[0]
            found = _matching(self._keys[1], key_id, algorithm) if age_s <= KEYS_S else None
            if found is None and age_s > KEYS_AGAIN_S:
                keys = fetch_json("GET", provider.jwks_uri).get("keys")
                if not isinstance(keys, list) or len(keys) > KEYS_MAX:
                    raise Unavailable(f"The identity provider's key set is not a list of at most {KEYS_MAX} keys.")
                self._keys = (time.monotonic(), [key for key in keys if isinstance(key, dict)])
                found = _matching(self._keys[1], key_id, algorithm)
        if found is None:
            raise Unauthenticated("The id token is signed with a key that the identity provider does not publish.")
        return found


def discover(issuer: str) -> Provider:
    """Read the discovery document of `issuer`. Raises Unavailable."""
    found = fetch_json("GET", issuer.rstrip("/") + "/.well-known/openid-configuration")
    if found.get("issuer") != issuer:
        raise Unavailable("The identity provider names another issuer than HERALD_OIDC_ISSUER.")
    endpoints = [found.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
    if not all(secure_url(endpoint) for endpoint in endpoints):
        raise Unavailable("The identity provider names endpoints that are missing or not https.")
    userinfo = found.get("userinfo_endpoint", "")
    offered = found.get("id_token_signing_alg_values_supported", ["RS256"])
    algorithm = next((name for name in ALGORITHMS if name in offered), None)
    if algorithm is None:
        raise Unavailable(f"The identity provider signs with none of {', '.join(ALGORITHMS)}.")
    methods = found.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    return Provider(
        issuer=issuer,
        authorization_endpoint=str(endpoints[0]),
        token_endpoint=str(endpoints[1]),
        userinfo_endpoint=str(userinfo) if secure_url(userinfo) else "",
        jwks_uri=str(endpoints[2]),
        algorithm=algorithm,
        basic="client_secret_basic" in methods,
    )


def _matching(keys: list[dict[str, Any]], key_id: str | None, algorithm: str) -> dict[str, Any] | None:
    """The key for signatures of this id and kind; without an id only if there is one to choose from."""
    fit = [
        key
        for key in keys
        if key.get("kty") == ALGORITHMS[algorithm]
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and (key_id is None or key.get("kid") == key_id)
    ]
    return fit[0] if len(fit) == 1 or (fit and key_id is not None) else None


directory = per_process(Directory)
