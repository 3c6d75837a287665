"""Lua scripts: text, and the digest by which Redis runs a loaded script."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Script:
    """Text of a script and the SHA-1 under which Redis holds it."""

    text: str
    sha: str


def script_of(text: str) -> Script:
    """Make the script with this text."""
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def script_read(folder: Path, *names: str) -> Script:
    """Read the script that these files form, one after the other.

    Args:
        folder: folder of the files.
        names: the files' names without `.lua`; functions that the last file needs are in the others.
    """
    return script_of("".join((folder / f"{name}.lua").read_text() for name in names))
