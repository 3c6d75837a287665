"""A host of a domain: `manage.py run` in its namespace, at its address and the usual port."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from demo.harness.servers import Domain
from tests.hosts.network import Host

PORT = 8000


class HostDomain(Domain):
    """As Domain, on a host. The test's own requests come from where its thread is: a host of its own, or this one."""

    def __init__(self, host: Host, folder: Path, **settings: Any) -> None:
        super().__init__(folder / host.name / "var", host=host.address, port=PORT, **settings)
        self.host = host

    @property
    def url(self) -> str:
        return f"http://{self.host.address}:{self.port}"

    @property
    def ws_url(self) -> str:
        return f"ws://{self.host.address}:{self.port}/ws"

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start `manage.py run` on the host without waiting."""
        with self.host.inside():
            return super().spawn()

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `manage.py ARGUMENTS` on the host."""
        with self.host.inside():
            return super().manage(*arguments)
