"""Ports of replication are imported by a process that has not loaded Django's models yet."""

from __future__ import annotations

import subprocess
import sys


def test_a_process_of_celery_connects_the_ports_before_models_are_loaded() -> None:
    code = "import eventing.replication.forwarding.wakeups, sys; assert 'eventing.outbox.models' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
