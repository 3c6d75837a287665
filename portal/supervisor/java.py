"""Detection of Java, which only reports (Spark) need; everything else runs without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

JAVA_MAJOR_MIN = 17
"""Source: Spark 4 runs on Java 17 and newer."""

ANSWER_WITHIN_S = 10.0
_VERSION = re.compile(r'version "(?P<first>\d+)(?:\.(?P<second>\d+))?')


@dataclass(frozen=True, slots=True)
class Java:
    """The Java found: `major` is None when there is none or when it prints no version."""

    path: str | None
    major: int | None

    @property
    def good(self) -> bool:
        """Return whether reports can run."""
        return self.major is not None and self.major >= JAVA_MAJOR_MIN

    def sentence(self) -> str:
        """The state of reports in one clear sentence."""
        if self.good:
            return f"Java {self.major}"
        if self.major is not None:
            return f"Java {self.major} found, {JAVA_MAJOR_MIN} or newer is needed; everything else runs"
        return f"no Java {JAVA_MAJOR_MIN} or newer found; everything else runs"


def java_path() -> str | None:
    """The `java` that Spark would use: JAVA_HOME's, else the first on PATH."""
    home = os.environ.get("JAVA_HOME")
    if home and os.access(Path(home) / "bin" / "java", os.X_OK):
        return str(Path(home) / "bin" / "java")
    return shutil.which("java")


def java_found() -> Java:
    """Asks `java -version`. Takes some 100 ms, ANSWER_WITHIN_S at most; a Java that fails counts as none."""
    path = java_path()
    if path is None:
        return Java(None, None)
    try:
        answer = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=ANSWER_WITHIN_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return Java(path, None)
    return Java(path, version_major(answer.stderr + answer.stdout))


def version_major(text: str) -> int | None:
    """Return 17 for `openjdk version "17.0.15"`, and 8 for `java version "1.8.0_392"`, the old numbering."""
    found = _VERSION.search(text)
    if found is None:
        return None
    first = int(found["first"])
    return int(found["second"]) if first == 1 and found["second"] else first
