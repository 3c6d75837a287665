"""Operating system measures of this process, copied into the metrics once a second."""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import psutil

from eventing.conf import config
from eventing.core.container import per_process
from eventing.telemetry import folder, metrics

PERIOD_S = 1.0
SMALL_PERIOD_S = 5.0
"""Seconds between two copies in a small domain's processes without an event loop: a copy takes a third of a millisecond."""


_no_fork = per_process(threading.Lock)
"""Held while values are written: a process forked at that time would find their lock held for ever."""


os.register_at_fork(before=lambda: _no_fork().acquire(), after_in_parent=lambda: _no_fork().release())


def build_version() -> str:
    """Version of Herald: that of the client library, which is released together with the server."""
    try:
        return version("herald-client")
    except PackageNotFoundError:
        return "unknown"


class ProcessMeasures:
    """Measures of one process; make the object in that process.

    Args:
        name: name of the process in the domain; several of one name are added up.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._process = psutil.Process()
        self._cpu_s = 0.0
        metrics.STARTED.labels(name).set(self._process.create_time())
        metrics.BUILD_INFO.labels(build_version(), platform.python_version(), config().domain).set(1)

    def copy(self) -> None:
        """Copy the present values into the metrics."""
        with self._process.oneshot():
            times = self._process.cpu_times()
            resident_bytes = self._process.memory_info().rss
        cpu_s = times.user + times.system
        metrics.CPU.labels(self._name).inc(max(0.0, cpu_s - self._cpu_s))
        self._cpu_s = cpu_s
        metrics.MEMORY.labels(self._name).set(resident_bytes)
        metrics.FILES.labels(self._name).set(self._process.num_fds())


def measure_in_background(*copies: Callable[[], None], name: str = "") -> threading.Event:
    """Call the process's measures, and `copies`, once a second (in a small domain each five) on a thread of its own, for processes
    without an event loop.

    Setting the returned event ends the thread.
    """
    measures = ProcessMeasures(name or folder.process_name())
    ended = threading.Event()
    period_s = SMALL_PERIOD_S if config().is_small else PERIOD_S

    def run() -> None:
        while True:
            with _no_fork():
                for copy in (measures.copy, *copies):
                    copy()
            if ended.wait(period_s):
                return

    threading.Thread(target=run, name="measuring", daemon=True).start()
    return ended
