"""Idle domain: what a whole domain with 100 rendezvous points costs while nothing happens, in each profile.

| value | what is measured |
|---|---|
| MiB | proportional set size (`/proc/PID/smaps_rollup`) of the supervisor and all that it started, Redis too: a page that several processes share counts once |
| ms/s | processor time of all of them during the idle time, of one core |
| wake-ups/s | voluntary context switches of all their threads |
| first publish | milliseconds to the answer of one publish at level `stored` over a new connection, after the idle time |
| start | from the command to `/readyz` for the second start, with everything in the page cache |

The domain is left alone for SETTLE_S after its RPs were made, then measured for IDLE_S. Nothing is pinned. The machine's load
during the measurement is a note of the row: on a busy machine, times are longer and processor time is dearer.
"""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Bench, BenchMeasurement
from bench.peers.base import BenchServer
from bench.peers.herald import Herald
from bench.processes import idle_costs

PROFILES = ("small", "standard")
RPS = 100
SETTLE_S = 30.0
IDLE_S = 60.0


class IdleDomain(Herald):
    """A whole domain in one profile, on all cores, with push, as `make run` starts it."""

    all_cores = True

    def __init__(self, folder: Path, profile: str) -> None:
        super().__init__(folder / profile)
        self.folder.mkdir()
        self._profile = profile
        self.processes.folder = self.folder

    def _environment(self) -> dict[str, str]:
        return super()._environment() | {"HERALD_PROFILE": self._profile}

    def restart(self) -> float:
        """Stop and start it; return the seconds from the command to `/readyz`."""
        self.processes.stop()
        began = time.monotonic()
        self.spawn()
        self._until(lambda: self._status("/readyz") == 200, 60.0, "ready")
        return time.monotonic() - began

    def family(self) -> list[int]:
        """Return the supervisor and every process below it."""
        return self.processes.family()

    def publish(self) -> float:
        """Publish one event over a new connection; return the seconds to its answer."""
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            self._ask(connection, "POST", f"/api/v1/rps/{self.rps[0]}/events", b'{"idle": "over"}')
        finally:
            connection.close()
        return time.monotonic() - began


def run(bench: Bench, server: BenchServer) -> Iterator[BenchMeasurement]:
    """Yield one row per profile; none for other servers."""
    if not isinstance(server, Herald):
        return
    for profile in PROFILES:
        with IdleDomain(server.folder, profile) as domain:
            start_s = domain.restart()
            domain.prepare(RPS)
            domain.publish()
            time.sleep(SETTLE_S)
            costs = idle_costs(domain.family, IDLE_S)
            values = {
                "processes": costs.processes,
                "pss_mib": costs.pss_bytes / 1024**2,
                "cpu_ms_per_s": costs.cpu_ms_per_s,
                "wakeups_per_s": costs.wakeups_per_s,
                "first_publish_ms": domain.publish() * 1000,
                "start_s": start_s,
            }
        load = os.getloadavg()[0]
        yield BenchMeasurement(
            "idle-domain", f"{RPS} RPs, {profile}", server.name, values, (), (f"load of the machine {load:.1f}",)
        )
