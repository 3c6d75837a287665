"""Check of the installed Java before Spark starts: a missing or old one is reported in one sentence, not by a stack trace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from spark.problems import JobProblem

JAVA_MAJOR_MIN = 17
"""Source: Spark 4 runs on Java 17 and newer."""

ANSWER_WITHIN_S = 20.0
_VERSION = re.compile(r'version "(?P<first>\d+)(?:\.(?P<second>\d+))?')


def java_path() -> str | None:
    """Return JAVA_HOME's Java, else the first on PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def java_identity() -> tuple[object, ...]:
    """Return what changes when another Java takes the place of this one: path, file and time of change."""
    path = java_path()
    if path is None:
        return (None,)
    try:
        found = Path(path).stat()
    except OSError:
        return (path,)
    return path, found.st_dev, found.st_ino, found.st_mtime_ns


def java_major() -> int:
    """Return the version of JAVA_HOME's Java, else of the first on PATH.

    Raises:
        Problem: there is none, or it does not state its version.
    """
    home, path = os.environ.get("JAVA_HOME"), java_path()
    if path is None:
        raise JobProblem(f"Reports need Java {JAVA_MAJOR_MIN} or newer, but there is no `java` on PATH.")
    try:
        answer = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=ANSWER_WITHIN_S, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        where = "JAVA_HOME" if home else "PATH"
        raise JobProblem(
            f"Reports need Java {JAVA_MAJOR_MIN} or newer, but the one in {where}, {path}, does not run."
        ) from None
    match = _VERSION.search(answer.stderr + answer.stdout)
    if match is None:
        raise JobProblem(f"Reports need Java {JAVA_MAJOR_MIN} or newer, but {path} does not state its version.")
    first = int(match["first"])
    return int(match["second"] or 0) if first == 1 else first  # 1.8 is Java 8


def java_check() -> None:
    """Raise Problem unless there is a Java that Spark runs on."""
    major = java_major()
    if major < JAVA_MAJOR_MIN:
        raise JobProblem(
            f"Reports need Java {JAVA_MAJOR_MIN} or newer, but this is Java {major}. Set JAVA_HOME or PATH to a newer "
            "one."
        )
