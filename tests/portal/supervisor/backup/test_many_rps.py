"""A backup of 10,000 rendezvous points is restored elsewhere within two minutes. Prints what it took (pytest -s)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from demo.harness.servers import ROOT, Domain
from tests.gateway.server import Prepared

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.processes]

RPS = 10_000
EVENTS = 20
RESTORED_WITHIN_S = 120.0
_FILL = """
import itertools, os, sys, time, django
django.setup()
from django.db import transaction
from eventing.access.services.keys import ensure_domain_key
from eventing.conf import config
from eventing.core.events.cloudevents import Event
from eventing.core.events.history import HistoryBounds
from eventing.core.principals import Principal
from eventing.log import control
from eventing.replication.services.sealing import seals_own
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from portal.supervisor import data_folder, redis_server
count, events = map(int, sys.argv[1:])
data_folder.prepare(config().data_path)
with data_folder.locked(config().data_path), redis_server.running_alone(config(), loading=True):
    ensure_domain_key()
    admin = Principal(config().domain, "root", True, time.time() + 3600, {"iss": config().domain, "sub": "root"}, None)
    rps = []
    while len(rps) < count:
        with transaction.atomic():
            rps += [str(rendezvous_point_create(principal=admin, history={'max_events': 1000, 'max_bytes': 1 << 20}).id) for _ in range(min(500, count - len(rps)))]
    bounds = HistoryBounds(1000, 1 << 20)
    for rp in rps:
        control.append(rp, [Event("/t", str(n), "t", b"x" * 300) for n in range(events)], bounds)
    seals_own(rps[::2])
"""


def _timed(domain: Domain, *arguments: str) -> tuple[float, float]:
    """Run a command of the domain; return its wall time and the CPU time of it and of what it started."""
    before = os.times()
    begun = time.monotonic()
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    subprocess.run(command, env=domain.env, cwd=ROOT, check=True)
    after = os.times()
    return time.monotonic() - begun, sum(after[2:4]) - sum(before[2:4])


def test_ten_thousand_rendezvous_points_are_restored_within_two_minutes(tmp_path: Path, prepared: Prepared) -> None:
    domain = Domain(tmp_path / "a", seed=prepared.migrated)
    domain._plant()
    command = [sys.executable, "-c", _FILL, str(RPS), str(EVENTS)]
    env = {**domain.env, "DJANGO_SETTINGS_MODULE": "portal.settings", "PYTHONPATH": f"{ROOT}:{ROOT / 'client'}"}
    subprocess.run(command, env=env, cwd=ROOT, check=True)
    load = psutil.getloadavg()[0]
    file = str(tmp_path / "a.tar")
    print(f"\nload of the machine before: {load:.1f} on {psutil.cpu_count()} cores")
    wall, cpu = _timed(domain, "backup", file)
    print(f"backup:  {wall:.1f} s wall, {cpu:.1f} s CPU, {Path(file).stat().st_size / 2**20:.0f} MiB")
    wall, cpu = _timed(Domain(tmp_path / "b"), "restore", file)
    print(f"restore: {wall:.1f} s wall, {cpu:.1f} s CPU")
    assert wall < RESTORED_WITHIN_S
