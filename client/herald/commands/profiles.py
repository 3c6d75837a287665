"""Profiles: addresses and tokens of domains by name, in ~/.config/herald/profiles.json, which only its owner can read.

The folder follows the XDG Base Directory Specification (XDG_CONFIG_HOME). What the command line and the environment state
wins; a profile's token is sent to that profile's addresses only.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from herald.errors import InputError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
FILE_BYTES_MAX = 1024 * 1024  # bound: bytes of the file of profiles; a larger one is not read
PROFILES_MAX = 1000  # bound: profiles; `add` refuses further ones


@dataclass(frozen=True, slots=True)
class Profile:
    """Addresses of a domain, the preferred one first, and the token for them."""

    urls: tuple[str, ...]
    token: str | None = field(default=None, repr=False)


@dataclass(slots=True)
class Profiles:
    """The profiles by name, and the name of the one in use."""

    path: Path
    items: dict[str, Profile] = field(default_factory=dict)
    used: str | None = None

    def save(self) -> None:
        """Write the file, complete or not at all. Raises InputError."""
        profiles = {name: {"url": list(one.urls), "token": one.token} for name, one in sorted(self.items.items())}
        text = json.dumps({"use": self.used, "profiles": profiles}, indent=2) + "\n"
        unfinished = None
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, unfinished = tempfile.mkstemp(prefix=".profiles-", dir=self.path.parent)  # mode 0600
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                out.write(text)
            Path(unfinished).replace(self.path)
        except OSError as error:
            if unfinished is not None:
                with suppress(OSError):
                    Path(unfinished).unlink()
            raise InputError(f"{self.path} cannot be written: {error.strerror}.") from None


def profiles_path() -> Path:
    """Return the path of the file."""
    stated = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(stated) if Path(stated).is_absolute() else Path.home() / ".config"
    return folder / "herald" / "profiles.json"


def profiles_load() -> Profiles:
    """Read the file; no profiles if there is none. Raises InputError for a file that others can read, or that is none."""
    path = profiles_path()
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            if os.name == "posix" and stat.S_IMODE(about.st_mode) & 0o077:
                raise InputError(f"{path} holds tokens and others can access it: chmod 600 {path}")
            content = file.read(FILE_BYTES_MAX + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Profiles(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        if len(content) > FILE_BYTES_MAX:
            raise ValueError(f"it is larger than {FILE_BYTES_MAX} bytes")
        document = json.loads(content)
        items = {str(name): _profile(one) for name, one in document["profiles"].items()}
        used = document.get("use")
        return Profiles(path, items, used if used in items else None)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is no file of profiles ({error}). Mend or remove it.") from None


def _profile(document: Any) -> Profile:
    urls, token = document["url"], document.get("token")
    if not urls or not all(isinstance(url, str) for url in urls) or not isinstance(token, str | None):
        raise ValueError("a profile has a list of addresses and a token")
    return Profile(tuple(urls), token)


def profile_of(name: str | None) -> Profile | None:
    """Return the profile of this name; without a name the one in use, None if there is none. Raises InputError."""
    found = profiles_load()
    if name is None:
        return found.items.get(found.used) if found.used is not None else None
    if name not in found.items:
        there = ", ".join(sorted(found.items)) or "none yet: herald profile add NAME --url URL"
        raise InputError(f"There is no profile {name!r}. Profiles: {there}.")
    return found.items[name]
