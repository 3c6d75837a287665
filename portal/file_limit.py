"""The limit of open files of a process."""

from __future__ import annotations

import resource


def raise_file_limit() -> int:
    """Take all open files that the hard limit allows: each connection is one. Returns the limit now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # macOS states a limit that it then refuses
        return soft
    return hard
