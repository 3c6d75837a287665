"""Weaknesses of a domain, found before it starts and by `doctor`: guessable secrets, readable files, clear text.

A domain is *exposed* when other machines can reach it: it listens on an address that is not loopback, or
HERALD_PUBLIC_URL names another machine's. There, a weakness that gives an attacker control of the domain refuses the
start; a weakness that may be acceptable in its place (clear text inside a private network, which cannot be detected
here) is a prominent warning. On loopback nothing is refused: only its user reaches a domain on a laptop.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from eventing.core.client_address import is_loopback as is_local_address
from eventing.core.config import Config

SECRET_CHARACTERS_MIN = 12
"""Different characters that a random text of 32 or more has all but certainly; `aaaa...` and `1234...` have not."""

WEAK_SECRETS = (
    "secret",
    "changeme",
    "change-me",
    "change_me",
    "password",
    "insecure",
    "example",
    "0123456789",
    "abcdef",
)
DEFAULT_PASSWORDS = frozenset(
    {"", "postgres", "password", "herald", "admin", "root", "secret", "changeme", "example", "123456", "test", "redis"}
)
PRIVATE_FILES = ("secret_key", "herald.sqlite3", "herald.sqlite3-wal")
"""Files whose reader can sign sessions and tokens."""


@dataclass(frozen=True, slots=True)
class Weakness:
    """A weakness: `says` and `do` are one sentence each; `grave` refuses the start of an exposed domain."""

    subject: str
    says: str
    do: str
    grave: bool


def is_exposed(config: Config) -> bool:
    """Return whether the domain is reachable from other machines."""
    try:
        named = urlsplit(config.base_url).hostname or ""
    except ValueError:
        named = ""  # no address at all: taken for one that others reach
    return not is_loopback(config.host) or not is_loopback(named)


def weaknesses(config: Config) -> list[Weakness]:
    """Return all weaknesses, whether the domain is exposed or not; the gravest first."""
    found = [
        *_secret_key(config),
        *_files(config),
        *_stores(config),
        *_oidc(config),
        *_exposure(config),
    ]
    return sorted(found, key=lambda weakness: not weakness.grave)


def refusal(config: Config) -> str | None:
    """Return one sentence why the domain must not start; None when it may."""
    if not is_exposed(config):
        return None
    grave = next((weakness for weakness in weaknesses(config) if weakness.grave), None)
    return f"{grave.says} {grave.do}" if grave else None


def warnings(config: Config) -> list[Weakness]:
    """Return the warnings for the start of an exposed domain; none on loopback."""
    return [weakness for weakness in weaknesses(config) if not weakness.grave] if is_exposed(config) else []


def _secret_key(config: Config) -> list[Weakness]:
    if not config.secret_key:
        return []
    key = config.secret_key.lower()
    if len(set(config.secret_key)) >= SECRET_CHARACTERS_MIN and not any(word in key for word in WEAK_SECRETS):
        return []
    return [
        Weakness(
            "secret key",
            "HERALD_SECRET_KEY can be guessed, and anyone who has it can become administrator.",
            "Set a long random value, or leave it empty to have one generated.",
            True,
        )
    ]


def _files(config: Config) -> list[Weakness]:
    """Check the modes of the data folder and its files; a folder that others cannot enter protects its contents."""
    found = []
    folder = _mode(config.data_path)
    if folder & stat.S_IWOTH:
        found.append(
            Weakness(
                "data folder",
                f"Everybody on this machine can write the data folder {config.data_path}.",
                f"Run: chmod 700 {config.data_path}.",
                True,
            )
        )
    files = [(config.data_path / name) for name in PRIVATE_FILES] if folder & stat.S_IXOTH else []
    if config.oidc_client_secret_file and not config.oidc_client_secret:
        files.append(Path(config.oidc_client_secret_file))
    for path in files:
        if _mode(path) & (stat.S_IROTH | stat.S_IWOTH):
            found.append(
                Weakness(
                    "private files", f"Everybody on this machine can read {path}.", f"Run: chmod 600 {path}.", True
                )
            )
    return found


def _stores(config: Config) -> list[Weakness]:
    found = []
    for name, url in (
        ("HERALD_DATABASE_URL", config.database_url),
        ("HERALD_MIGRATION_DATABASE_URL", config.migration_database_url),
        ("HERALD_BROKER_URL", config.broker_url),
        ("HERALD_REDIS_URL", config.redis_url),
    ):
        try:
            parts = urlsplit(url)
            host, user, password = parts.hostname or "", parts.username or "", unquote(parts.password or "")
        except ValueError:
            continue  # reported by its own check
        if not host or is_loopback(host):
            continue
        if password and (password.lower() in DEFAULT_PASSWORDS or password == unquote(user)):
            found.append(
                Weakness(
                    "store passwords",
                    f"The password in {name} is among the first that attackers try.",
                    "Set a random password.",
                    True,
                )
            )
        elif not password:
            found.append(
                Weakness(
                    "store passwords",
                    f"{name} names another machine without a password.",
                    "Set a password there, unless access is restricted otherwise (by certificates or a private network).",
                    False,
                )
            )
    return found


def _oidc(config: Config) -> list[Weakness]:
    if not config.oidc_issuer or secure_url(config.oidc_issuer):
        return []
    return [
        Weakness(
            "identity provider",
            "HERALD_OIDC_ISSUER is not https, so an attacker on the network path decides who logs in.",
            "Use the provider's https address.",
            True,
        )
    ]


def _exposure(config: Config) -> list[Weakness]:
    if not is_exposed(config):
        return []
    found = []
    if config.dev:
        found.append(
            Weakness(
                "development",
                "HERALD_DEV shows code and settings on error pages, and other machines can reach this domain.",
                "Remove HERALD_DEV, or listen on 127.0.0.1 only.",
                True,
            )
        )
    if not config.base_url.startswith("https:"):
        found.append(
            Weakness(
                "clear text",
                f"Tokens and sessions of {config.base_url} travel in clear text, and no domain accepts it as a peer's address.",
                "Put TLS in front and set HERALD_PUBLIC_URL to its https:// address (docs/security.md).",
                False,
            )
        )
    return found


def _mode(path: Path) -> int:
    """Return the permission bits; 0 for a missing file."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine's own."""
    return is_local_address(host) or host.endswith(".localhost")


def secure_url(url: Any) -> bool:
    """Return whether a secret may be sent to `url`: https, or http on this machine."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and (
            parts.scheme == "https" or (parts.scheme == "http" and is_loopback(str(parts.hostname)))
        )
    except (ValueError, TypeError, AttributeError):
        return False
