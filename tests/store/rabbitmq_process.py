"""A RabbitMQ of the tests on loopback, with a port mapper of its own. Takes fifteen seconds to start; skips where it is not installed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from demo.harness.servers import free_port, wait_for
from portal.supervisor.parent_watchdog import death_signal

PROGRAMS = Path("/usr/lib/rabbitmq/bin")  # the packages' wrappers on PATH change the user
STARTED_WITHIN_S = 120


class RabbitMQ:
    """The server; made running. Its user is `guest`."""

    def __init__(self, folder: Path) -> None:
        if not (PROGRAMS / "rabbitmq-server").exists() or shutil.which("erl") is None:
            pytest.skip("needs RabbitMQ (Debian's package rabbitmq-server)")
        folder.mkdir()
        (folder / "plugins").write_text("[].")
        (folder / "env.conf").touch()
        self.port = free_port()
        self._folder, self._pid_file = folder, folder / "pid"
        stated = {
            "HOME": folder,
            "RABBITMQ_BASE": folder,
            "RABBITMQ_MNESIA_BASE": folder / "mnesia",
            "RABBITMQ_LOG_BASE": folder / "log",
            "RABBITMQ_PID_FILE": self._pid_file,
            "RABBITMQ_ENABLED_PLUGINS_FILE": folder / "plugins",
            "RABBITMQ_CONF_ENV_FILE": folder / "env.conf",
            "RABBITMQ_CONFIG_FILE": folder / "none",
            "RABBITMQ_NODENAME": f"herald{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": self.port,
            "RABBITMQ_DIST_PORT": free_port(),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": free_port(),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none",  # its schedulers do not spin
        }
        self._environment = {**os.environ, **{name: str(value) for name, value in stated.items()}}
        # The server's own would outlive it.
        self._mapper = subprocess.Popen(["epmd"], env=self._environment, preexec_fn=death_signal(signal.SIGKILL))
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it on its data, and wait until it takes connections."""
        self._process = subprocess.Popen(
            [PROGRAMS / "rabbitmq-server"],
            env=self._environment,
            stdout=(self._folder / "out").open("ab"),
            stderr=subprocess.STDOUT,
            preexec_fn=death_signal(signal.SIGTERM),
            start_new_session=True,
        )
        wait_for(self._takes_connections, STARTED_WITHIN_S, every_s=0.5, about="RabbitMQ takes connections")

    def _takes_connections(self) -> bool:
        return "completed with" in (self._folder / "out").read_text().rpartition("Starting broker")[2]

    def add_host(self, name: str) -> str:
        """Add a virtual host; return its address in the form of HERALD_BROKER_URL."""
        for command in (["add_vhost", name], ["set_permissions", "-p", name, "guest", ".*", ".*", ".*"]):
            subprocess.run(
                [PROGRAMS / "rabbitmqctl", *command], env=self._environment, check=True, capture_output=True, timeout=60
            )
        return f"amqp://guest:guest@127.0.0.1:{self.port}/{name}"

    def kill(self) -> None:
        """SIGKILL of the server with its helpers."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
            self._pid_file.unlink(missing_ok=True)

    def close(self) -> None:
        """End everything."""
        self.kill()
        self._mapper.kill()
        self._mapper.wait()
