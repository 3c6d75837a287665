"""A crowd: thousands of readers of one RP, in a few processes of their own (crowd_process.py).

with Crowd(rp, [home.url], processes=2) as crowd:
    crowd.have(5000, over_s=60)
    crowd.state.open, crowd.state.at, crowd.state.missing ...
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import msgspec

from demo.harness.crowd_process import CrowdOrder, CrowdReport
from demo.harness.servers import ROOT
from portal.supervisor.parent_watchdog import death_signal

STOPPED_WITHIN_S = 20.0
DELAYS_MAX = 2_000_000  # bound: delays that are kept; further ones are dropped


class CrowdPart:
    """One process of a crowd. It ends with the thread that made it."""

    def __init__(self, rp: str, urls: Sequence[str], *, measures: bool, nice: int) -> None:
        options = ["--nice", str(nice), *(["--measures"] if measures else [])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "demo.harness.crowd_process", rp, *urls, *options],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=death_signal(signal.SIGTERM),
        )
        self.report = CrowdReport()
        self.delays_ms: list[tuple[str, float, float]] = []
        self.returns: list[tuple[float, float]] = []
        self._listening = threading.Thread(target=self._listen, name="crowd", daemon=True)
        self._listening.start()

    def order(self, order: CrowdOrder) -> None:
        """Send an order."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def is_running(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            report = msgspec.json.decode(line, type=CrowdReport)
            self.delays_ms += report.delays_ms[: DELAYS_MAX - len(self.delays_ms)]
            self.returns += report.returns
            self.report = report


class Crowd:
    """Readers of an RP each, who begin at these URLs in turn, without a token.

    Args:
        rp: the RP, or several, separated by commas, that the readers read in turn.
        processes: among which the readers are divided.
        measures: whether `delays_ms` and `returns` are kept.
        nice: priority of the processes, as of nice(1): what thousands of readers cost is not to slow down the domains.
    """

    def __init__(
        self, rp: str, urls: Sequence[str], *, processes: int = 1, measures: bool = False, nice: int = 0
    ) -> None:
        self._parts = [CrowdPart(rp, urls, measures=measures, nice=nice) for _ in range(processes)]

    def have(self, readers: int, *, over_s: float = 0.0) -> None:
        """Have so many readers, who begin or end within this time; returns at once."""
        each, more = divmod(readers, len(self._parts))
        for number, part in enumerate(self._parts):
            part.order(CrowdOrder(readers=each + (number < more), over_s=over_s))

    @property
    def state(self) -> CrowdReport:
        """Return the state of all, as of their last reports. Fails if a process has ended."""
        assert all(part.is_running for part in self._parts), "a process of the crowd has ended"
        reports = [part.report for part in self._parts]
        at: Counter[str] = Counter()
        for one in reports:
            at.update(one.at)
        least = [one.least for one in reports if one.open]
        return CrowdReport(
            open=sum(one.open for one in reports),
            at=dict(at),
            least=None if not least or None in least else min(number for number in least if number is not None),
            received=sum(one.received for one in reports),
            missing=sum(one.missing for one in reports),
            doubled=sum(one.doubled for one in reports),
            moves=sum(one.moves for one in reports),
            errors=[error for one in reports for error in one.errors],
        )

    @property
    def delays_ms(self) -> list[tuple[str, float, float]]:
        """Return the measured delays: URL of the domain, monotonic seconds of the publish, milliseconds."""
        return [one for part in self._parts for one in list(part.delays_ms)]

    @property
    def returns(self) -> list[tuple[float, float]]:
        """Return when readers were back whose connection was lost, monotonic seconds, and how many seconds they were away."""
        return [one for part in self._parts for one in list(part.returns)]

    def close(self) -> None:
        """End all readers."""
        for part in self._parts:
            part.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
