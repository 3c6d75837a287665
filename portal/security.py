"""What makes a domain weak, found before it starts and by `doctor`: guessable secrets, readable files, clear text.

A domain is *exposed* when others than this machine's users reach it: it listens on an address that is not loopback, or
HERALD_PUBLIC_URL names another machine's. There, a weakness that hands the domain to whoever finds it refuses the start; one
that may be right in its place (clear text inside a private network, which cannot be told from here) is a loud warning.
On loopback nothing is refused: what `make run` starts on a laptop is nobody else's.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from eventing.core.config import Config
from portal.console.oidc.fetching import is_loopback, secure_url

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
"""Whoever reads these signs sessions and tokens."""


@dataclass(frozen=True, slots=True)
class Weakness:
    """What is weak: `says` and `do` one sentence each; `grave` refuses the start of an exposed domain."""

    subject: str
    says: str
    do: str
    grave: bool


def is_exposed(config: Config) -> bool:
    """Whether others than this machine's users reach the domain."""
    try:
        named = urlsplit(config.base_url).hostname or ""
    except ValueError:
        named = ""  # no address at all: taken for one that others reach
    return not is_loopback(config.host) or not is_loopback(named)


def weaknesses(config: Config) -> list[Weakness]:
    """All that is weak, whether the domain is exposed or not; the gravest first."""
    found = [
        *_secret_key(config),
        *_files(config),
        *_stores(config),
        *_oidc(config),
        *_exposure(config),
    ]
    return sorted(found, key=lambda weakness: not weakness.grave)


def refusal(config: Config) -> str | None:
    """One sentence that says why the domain must not start; None when it may."""
    if not is_exposed(config):
        return None
    grave = next((weakness for weakness in weaknesses(config) if weakness.grave), None)
    return f"{grave.says} {grave.do}" if grave else None


def warnings(config: Config) -> list[Weakness]:
    """What to say aloud at the start of an exposed domain; nothing on loopback."""
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
            "HERALD_SECRET_KEY can be guessed, and whoever has it makes themself administrator.",
            "Use a long random one, or leave it empty and one is made.",
            True,
        )
    ]


def _files(config: Config) -> list[Weakness]:
    """Modes of the data folder and what it holds; a folder that others cannot enter protects all within."""
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
    for name, url in (("HERALD_DATABASE_URL", config.database_url), ("HERALD_REDIS_URL", config.redis_url)):
        try:
            parts = urlsplit(url)
            host, user, password = parts.hostname or "", parts.username or "", unquote(parts.password or "")
        except ValueError:
            continue  # its own check says so
        if not host or is_loopback(host):
            continue
        if password and (password.lower() in DEFAULT_PASSWORDS or password == unquote(user)):
            found.append(
                Weakness(
                    "store passwords",
                    f"The password in {name} is one that everybody tries first.",
                    "Set a random one.",
                    True,
                )
            )
        elif not password:
            found.append(
                Weakness(
                    "store passwords",
                    f"{name} names another machine and no password.",
                    "Set one there, unless that machine knows this one otherwise (a certificate, a private network).",
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
            "HERALD_OIDC_ISSUER is not https, so whoever is on the way chooses who logs in.",
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
                "HERALD_DEV shows code and settings to whoever meets an error, and others reach this domain.",
                "Remove HERALD_DEV, or listen on 127.0.0.1 only.",
                True,
            )
        )
    if not config.base_url.startswith("https:"):
        found.append(
            Weakness(
                "clear text",
                f"Tokens and sessions of {config.base_url} travel in clear text.",
                "Put TLS in front and set HERALD_PUBLIC_URL to its https:// address (docs/security.md).",
                False,
            )
        )
    return found


def _mode(path: Path) -> int:
    """The permission bits; 0 for what is not there."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0
