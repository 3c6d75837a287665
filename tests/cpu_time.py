"""CPU time of a block of a test."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class CpuTime:
    """CPU seconds of a block: 0 until it ends."""

    seconds: float = 0.0


@contextmanager
def cpu_time() -> Iterator[CpuTime]:
    """Measure the CPU time that this thread spends in the block, without collections of garbage: a full one takes half a second in
    a process that has run a thousand tests, whatever the block does.
    """
    measured, collected = CpuTime(), gc.isenabled()
    gc.disable()
    began = time.thread_time()
    try:
        yield measured
    finally:
        measured.seconds = time.thread_time() - began
        if collected:
            gc.enable()
