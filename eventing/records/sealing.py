"""Segments made by a short-lived process, so that a process that stays never loads Arrow: `python -m eventing.records.sealing ROOT [URL]`.

The process takes every spool whose writer has finished or ended, as the start of a gateway does, and ends. One that is killed leaves
spools for the next one.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from eventing.records import segments
from eventing.records.spool import FOLDER, SUFFIX

NICE = 10
"""Of the process: making Parquet takes half a second of a core, which the domain needs first."""
AGAIN_S = 60.0
"""Seconds after a process that failed, because a disk is full, before the next one."""
TREE = Path(__file__).resolve().parents[2]
log = logging.getLogger(__name__)


class SealingProcess:
    """The process that makes segments for one writer; one at a time.

    Args:
        root: local folder of the records.
        url: object store for the segments; empty: `root` has them.
    """

    def __init__(self, root: Path, url: str = "") -> None:
        self._root = root
        self._url = url
        self._not_before = float("-inf")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        """Return whether the process runs. One that ended is noted."""
        if self._process is not None and (status := self._process.poll()) is not None:
            self._process = None
            if status:
                self._not_before = time.monotonic() + AGAIN_S
                log.warning("Segments of access records were not made (status %d); next try in %g s.", status, AGAIN_S)
        return self._process is not None

    def start(self) -> None:
        """Start the process, unless it runs or has failed just now. Raises OSError."""
        if not self.runs and time.monotonic() >= self._not_before:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "eventing.records.sealing", str(self._root), self._url],
                cwd=TREE,
                stdin=subprocess.DEVNULL,
            )

    def start_if_needed(self) -> None:
        """Start the process if there are spools. Raises OSError."""
        if next((self._root / FOLDER).glob(f"*{SUFFIX}"), None) is not None:
            self.start()


def main(root: str, url: str = "") -> int:
    """Make segments of every spool that is free. Returns the exit status."""
    with suppress(OSError):
        os.nice(NICE)
    try:
        segments.recover(Path(root), url)
    except OSError as error:
        log.error("Segments cannot be made in %s: %s", url or root, error.strerror or error)
        return 1
    return 0


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    sys.exit(main(*sys.argv[1:]))
