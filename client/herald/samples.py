"""Samples of this host: CPU, memory, disk and network, with the unit in each name. Rates are over the last interval."""

from __future__ import annotations

import os
import re
import socket
import time
from typing import Any

import psutil

DISK_PATH = "/"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._~-]")
KINDS = ("cpu", "memory", "disk", "network")
Sample = dict[str, Any]


def host_segment(name: str | None = None) -> str:
    """Return the host as a part of a name: characters that names cannot have become a dash."""
    return _NOT_IN_NAMES.sub("-", name or socket.gethostname())[:64].strip(".") or "host"


class MachineSampler:
    """Takes samples; the first rates cover the time since the sampler was made."""

    def __init__(self) -> None:
        psutil.cpu_percent(percpu=True)  # the next call covers the time since this one
        self._at = time.monotonic()
        self._disk = psutil.disk_io_counters()
        self._network = psutil.net_io_counters()

    def take(self) -> dict[str, Sample]:
        """Return one sample of each of KINDS."""
        now = time.monotonic()
        elapsed_s = max(now - self._at, 1e-3)
        self._at = now
        return {
            "cpu": _cpu(),
            "memory": _memory(),
            "disk": self._disk_sample(elapsed_s),
            "network": self._network_sample(elapsed_s),
        }

    def _disk_sample(self, elapsed_s: float) -> Sample:
        usage = psutil.disk_usage(DISK_PATH)
        sample: Sample = {
            "path": DISK_PATH,
            "total_bytes": usage.total,
            "used_bytes": usage.used,
            "used_percent": usage.percent,
        }
        before, self._disk = self._disk, psutil.disk_io_counters()
        if before is not None and self._disk is not None:  # some containers show none
            sample["read_bytes_per_s"] = _rate(before.read_bytes, self._disk.read_bytes, elapsed_s)
            sample["written_bytes_per_s"] = _rate(before.write_bytes, self._disk.write_bytes, elapsed_s)
        return sample

    def _network_sample(self, elapsed_s: float) -> Sample:
        before, self._network = self._network, psutil.net_io_counters()
        after = self._network
        return {
            "received_bytes_per_s": _rate(before.bytes_recv, after.bytes_recv, elapsed_s),
            "sent_bytes_per_s": _rate(before.bytes_sent, after.bytes_sent, elapsed_s),
            "received_packets_per_s": _rate(before.packets_recv, after.packets_recv, elapsed_s),
            "sent_packets_per_s": _rate(before.packets_sent, after.packets_sent, elapsed_s),
            "errors_per_s": _rate(before.errin + before.errout, after.errin + after.errout, elapsed_s),
            "dropped_per_s": _rate(before.dropin + before.dropout, after.dropin + after.dropout, elapsed_s),
        }


def _cpu() -> Sample:
    cores = psutil.cpu_percent(percpu=True)
    load = os.getloadavg() if hasattr(os, "getloadavg") else (0.0, 0.0, 0.0)
    return {
        "used_percent": round(sum(cores) / len(cores), 1) if cores else 0.0,
        "used_percent_per_core": cores,
        "load_1_min": round(load[0], 2),
        "load_5_min": round(load[1], 2),
        "load_15_min": round(load[2], 2),
    }


def _memory() -> Sample:
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    return {
        "total_bytes": memory.total,
        "available_bytes": memory.available,
        "used_bytes": memory.used,
        "used_percent": memory.percent,
        "swap_total_bytes": swap.total,
        "swap_used_bytes": swap.used,
    }


def _rate(before: int, after: int, elapsed_s: float) -> float:
    """Return the rate per second; 0 if the counter began anew."""
    return round(max(0, after - before) / elapsed_s, 1)
