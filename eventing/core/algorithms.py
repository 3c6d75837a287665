"""Signature algorithms of tokens: the supported ones, and the selection that a setting makes. Pure."""

from __future__ import annotations

from eventing.core.errors import ConfigError

ED25519 = ("Ed25519", "EdDSA")  # RFC 9864, and the name of RFC 8037 that older libraries write
CHOICES = {"Ed25519": ED25519, "ES256": ("ES256",), "RS256": ("RS256",)}


def parse_algorithms(text: str) -> tuple[str, ...]:
    """Parse a setting such as `Ed25519,ES256` into the accepted values of `alg`. Raises ConfigError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or not set(names) <= set(CHOICES):
        raise ConfigError(
            f"HERALD_FOREIGN_ALGORITHMS is {text!r}; use some of {', '.join(CHOICES)}, separated by commas."
        )
    return tuple(algorithm for name in CHOICES if name in names for algorithm in CHOICES[name])
