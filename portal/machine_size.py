"""Size of the machine, or of the container that bounds this process: what the profile `auto` is chosen by.

A control group's limits count where they are lower: a container is as small as it is allowed to be. The processor affinity does not:
a process that is pinned to a core for a while still runs on a large machine.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

SMALL_MEMORY_BYTES_MAX = 2 * 1024**3
"""A machine of at most so much memory is small: five processes of Herald would take a third of it before the first event."""
SMALL_CORES_MAX = 1

_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class MachineSize:
    """Memory in bytes and processor cores that this process may use; None where the system does not state it."""

    memory_bytes: int | None
    cores: int | None

    @property
    def is_small(self) -> bool:
        """True if the profile `small` suits the machine."""
        return (self.memory_bytes is not None and self.memory_bytes <= SMALL_MEMORY_BYTES_MAX) or (
            self.cores is not None and self.cores <= SMALL_CORES_MAX
        )

    def shown(self) -> str:
        """Return the size in words: `24.1 GiB of memory, 2 cores`."""
        memory = "memory unknown" if self.memory_bytes is None else f"{self.memory_bytes / 1024**3:.1f} GiB of memory"
        cores = "cores unknown" if self.cores is None else f"{self.cores} core{'s' if self.cores != 1 else ''}"
        return f"{memory}, {cores}"


def machine_size(cgroups: Path = _CGROUPS) -> MachineSize:
    """Return the size of the machine.

    Args:
        cgroups: where the control groups are mounted.
    """
    memory = [bound for bound in (_physical_memory(), _memory_limit(cgroups)) if bound is not None]
    cores = [bound for bound in (os.cpu_count(), _cores_limit(cgroups)) if bound is not None]
    return MachineSize(min(memory, default=None), min(cores, default=None))


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def _memory_limit(cgroups: Path) -> int | None:
    """Return the limit of version 2, else of version 1; unlimited is a word in the first, and far above any memory in the second."""
    return _number(cgroups / "memory.max") or _number(cgroups / "memory" / "memory.limit_in_bytes")


def _cores_limit(cgroups: Path) -> int | None:
    try:
        quota, period = (cgroups / "cpu.max").read_text().split()
    except (OSError, ValueError):
        quota_us = _number(cgroups / "cpu" / "cpu.cfs_quota_us")
        period_us = _number(cgroups / "cpu" / "cpu.cfs_period_us")
    else:
        quota_us, period_us = (int(part) if part.isdigit() else None for part in (quota, period))
    return math.ceil(quota_us / period_us) if quota_us and period_us else None


def _number(path: Path) -> int | None:
    """Return the positive number in a file; None if there is no file, or something else in it."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() and int(text) else None
