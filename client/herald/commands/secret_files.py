"""Secrets given to commands by file or standard input; never on the command line, which other users of the machine can read."""

from __future__ import annotations

import sys
from pathlib import Path

import click

STDIN = "-"


def secret_read(file: str | None, chars_max: int) -> str | None:
    """Return the secret in a file, or of standard input for `-`; None without a file. Raises UsageError: it cannot be read.

    Args:
        chars_max: characters that a secret may have; of a longer one only so much is read that the domain refuses it.
    """
    if file is None:
        return None
    try:
        if file == STDIN:
            return sys.stdin.read(chars_max + 2).strip()
        with Path(file).open(encoding="utf-8") as opened:
            return opened.read(chars_max + 2).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"The secret cannot be read: {error}") from None
