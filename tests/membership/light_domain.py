"""A domain as Redis, a gateway and the process of the overlay only: a third of the processor time of a whole one."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from joserfc.jwk import OKPKey

from demo.harness.servers import ROOT
from portal.supervisor.parent_watchdog import death_signal
from tests.gateway.server import LiveGateway, Prepared

_OVERLAY = """
import time, django
django.setup()
from eventing.membership.process.running import LeaseLost, OverlayRun
while True:
    try:
        again = OverlayRun(lambda: False).run()
    except LeaseLost:
        again = False
    time.sleep(0 if again else 1)
"""


class LightDomain(LiveGateway):
    """NAME.test, with a key of its own. `overlay` starts the process that runs the overlay."""

    def __init__(self, folder: Path, name: str, prepared: Prepared, **settings: Any) -> None:
        self.name = f"{name}.test"
        self.overlay_process: subprocess.Popen[bytes] | None = None
        keyed = _with_a_key_of_its_own(prepared, folder / f"{name}-prepared")
        super().__init__(folder / name / "var", keyed, domain=self.name, records=0, **settings)

    def overlay(self) -> None:
        """Start the process that runs the overlay."""
        with (self.data_dir / "overlay.log").open("ab") as output:
            self.overlay_process = subprocess.Popen(
                [sys.executable, "-c", _OVERLAY],
                env=self._env,
                cwd=ROOT,
                stdout=output,
                stderr=output,
                preexec_fn=death_signal(signal.SIGKILL),
            )

    def ask(self, method: str, path: str, members: Any = None) -> Any:
        """Send a REST request as administrator; return its JSON. Fails unless it succeeds."""
        answer = self.admin.request(method, path, json=members)
        assert answer.is_success, f"{self.name}: {method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def approve(self, other: LightDomain) -> None:
        """Add another domain as a peer, as an administrator here does."""
        seen = self.ask("POST", "/api/v1/peers/look", {"url": other.url()})
        self.ask("POST", "/api/v1/peers", {"url": other.url(), "fingerprint": seen["fingerprint"]})

    def linked_to(self) -> set[str]:
        """Names of the domains with which this one has a link."""
        return {link["peer"] for link in self.ask("GET", "/api/v1/overlay/links")["items"] if link["up"]}

    def kill_everything(self) -> None:
        """Send SIGKILL to all its processes."""
        self._kill_overlay()
        self.kill_gateway()
        self.kill_redis()

    def stop(self) -> None:
        """End all its processes that run."""
        self._kill_overlay()
        super().stop()

    def _kill_overlay(self) -> None:
        if self.overlay_process is not None:
            self.overlay_process.kill()
            self.overlay_process.wait()


def _with_a_key_of_its_own(prepared: Prepared, folder: Path) -> Prepared:
    shutil.copytree(prepared.data_dir, folder)
    made = OKPKey.generate_key("Ed25519")
    private, public, kid = made.as_dict(private=True), made.as_dict(private=False), made.thumbprint()
    with closing(sqlite3.connect(folder / "herald.sqlite3", timeout=60)) as database, database:
        keys = (kid, json.dumps(private), json.dumps(public))
        database.execute("UPDATE eventing_domainkey SET kid = ?, private_jwk = ?, public_jwk = ?", keys)
        database.execute("DELETE FROM eventing_domaindocument")
    return Prepared(folder, {**private, "kid": kid}, prepared.migrated)
