"""Which Java Spark would run on. Without one, or with one that is too old, the answer is one sentence, no stack trace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from spark.problems import Problem

JAVA_MAJOR_MIN = 17
"""Source: Spark 4 runs on Java 17 and newer."""

ANSWER_WITHIN_S = 20.0
_VERSION = re.compile(r'version "(?P<first>\d+)(?:\.(?P<second>\d+))?')


def java_major() -> int:
    """The version of JAVA_HOME's Java, else of the first on PATH.

    Raises:
        Problem: there is none, or it does not say which it is.
    """
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if path is None:
        raise Problem(f"Reports need Java {JAVA_MAJOR_MIN} or newer, and there is no `java` on PATH.")
    try:
        answer = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=ANSWER_WITHIN_S, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        where = "JAVA_HOME" if home else "PATH"
        raise Problem(
            f"Reports need Java {JAVA_MAJOR_MIN} or newer, and the one that {where} names, {path}, does not run."
        ) from None
    match = _VERSION.search(answer.stderr + answer.stdout)
    if match is None:
        raise Problem(f"Reports need Java {JAVA_MAJOR_MIN} or newer, and {path} does not say which version it is.")
    first = int(match["first"])
    return int(match["second"] or 0) if first == 1 else first  # 1.8 is Java 8


def java_check() -> None:
    """Raises Problem unless there is a Java that Spark runs on."""
    major = java_major()
    if major < JAVA_MAJOR_MIN:
        raise Problem(
            f"Reports need Java {JAVA_MAJOR_MIN} or newer, and this is Java {major}: set JAVA_HOME or PATH to a newer one."
        )
