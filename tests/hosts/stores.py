"""Stores on hosts: Redis with replicas and Sentinels, PostgreSQL. They are reached by TCP from other hosts; the test itself looks by their
unix sockets, which no fault of the network concerns.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import redis

from demo.harness.servers import wait_for
from portal.supervisor.parent_watchdog import death_signal
from tests.hosts.clocks import offset_environment
from tests.hosts.network import NETWORK, Host
from tests.sql.postgres_server import OWNER, PostgresServer
from tests.store.cluster_process import server_program

REDIS_PORT, SENTINEL_PORT, POSTGRES_PORT = 6379, 26379, 5432
DOWN_AFTER_MS = 1500
"""Time without an answer after which a Sentinel counts a server as down: longer than a busy machine stops one."""
PRIMARY = "herald"


class _Server:
    """A process of a host, and a unix socket of it for the test."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.folder = Path(mkdtemp(prefix=f"herald-{host.name}-", dir="/tmp"))
        self._process: subprocess.Popen[bytes] | None = None

    def _start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        with self.host.inside(), (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [server_program(), *arguments],
                env={**os.environ, **(environment or {})},
                stdout=log,
                stderr=log,
                preexec_fn=death_signal(signal.SIGKILL),
            )
        wait_for(self._answers, about=f"{self.host.name}: the server answers")

    def _answers(self) -> bool:
        try:
            return bool(self.ask("PING"))
        except redis.RedisError:
            return False

    def ask(self, *command: Any) -> Any:
        """Send one command."""
        with redis.Redis(unix_socket_path=str(self.folder / "sock"), socket_timeout=10, protocol=2) as client:
            return client.execute_command(*command)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        """Kill it, and remove its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class HostRedis(_Server):
    """A primary, or a replica of one, at the usual port; running.

    Args:
        clock_offset_s: of its clock from the machine's; without effect where there is no C compiler.
    """

    def __init__(self, host: Host, primary: Host | None = None, clock_offset_s: int = 0) -> None:
        super().__init__(host)
        options: dict[str, object] = {
            "port": REDIS_PORT,
            "bind": host.address,
            "protected-mode": "no",
            "unixsocket": self.folder / "sock",
            "dir": self.folder,
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
            "repl-diskless-sync-delay": 0,
            "repl-timeout": 10,
        }
        following = [] if primary is None else ["--replicaof", primary.address, str(REDIS_PORT)]
        self._start(
            *(part for name, value in options.items() for part in (f"--{name}", str(value))),
            *following,
            environment=offset_environment(self.folder, clock_offset_s),
        )

    def replication(self) -> dict[str, Any]:
        """Return INFO replication."""
        found: dict[str, Any] = self.ask("INFO", "replication")
        return found


class HostSentinel(_Server):
    """A Sentinel at the usual port, of a quorum of two; running."""

    def __init__(self, host: Host, primary: Host) -> None:
        super().__init__(host)
        file = self.folder / "sentinel.conf"
        file.write_text(
            f"port {SENTINEL_PORT}\nbind {host.address}\nprotected-mode no\nunixsocket {self.folder}/sock\ndir {self.folder}\n"
            f"sentinel monitor {PRIMARY} {primary.address} {REDIS_PORT} 2\n"
            f"sentinel down-after-milliseconds {PRIMARY} {DOWN_AFTER_MS}\nsentinel failover-timeout {PRIMARY} 5000\n"
        )
        self._start(str(file), "--sentinel")

    def primary(self) -> str:
        """Return the address of the primary, as this Sentinel knows it."""
        return str(self.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", PRIMARY)[0].decode())

    def state(self) -> dict[str, Any]:
        """Return what it knows of the primary."""
        found = self.ask("SENTINEL", "MASTER", PRIMARY)
        if isinstance(found, list):
            found = dict(zip(found[::2], found[1::2], strict=True))
        return {_text(name): _text(value) for name, value in found.items()}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


class WatchedRedis:
    """A primary on the first of three hosts, replicas on the others, a Sentinel on each; all know each other.

    Args:
        replicas_clock_s: offset of the replicas' clocks.
    """

    def __init__(self, hosts: Sequence[Host], replicas_clock_s: int = 0) -> None:
        primary, *others = hosts
        self.servers: list[HostRedis] = []
        self.sentinels: list[HostSentinel] = []
        try:
            self.servers.append(HostRedis(primary))
            self.servers += [HostRedis(host, primary, replicas_clock_s) for host in others]
            wait_for(lambda: self.replicas() == len(others), about="the replicas are in step")
            self.sentinels += [HostSentinel(host, primary) for host in hosts]
            wait_for(self._know_each_other, about="the Sentinels know each other and the replicas")
        except BaseException:
            self.remove()
            raise

    @property
    def url(self) -> str:
        """Address in the form of HERALD_REDIS_URL."""
        places = ",".join(f"{one.host.address}:{SENTINEL_PORT}" for one in self.sentinels)
        return f"redis+sentinel://{places}/{PRIMARY}"

    def primary(self) -> HostRedis:
        """Return the server that most Sentinels call the primary."""
        named = [one.primary() for one in self.sentinels]
        return next(one for one in self.servers if named.count(one.host.address) >= 2)

    def replicas(self) -> int:
        """Count the replicas that are in step with the primary (the first server while there are no Sentinels)."""
        found = (self.primary() if self.sentinels else self.servers[0]).replication()
        return sum(
            value["state"] == "online"
            for name, value in found.items()
            if name.startswith("slave") and name[5:].isdigit()
        )

    def is_whole(self) -> bool:
        """Return whether all servers follow one primary, in step, and all Sentinels name it."""
        return (
            len({one.primary() for one in self.sentinels}) == 1
            and self.replicas() == len(self.servers) - 1
            and sum(one.replication()["role"] == "master" for one in self.servers) == 1
            and self._know_each_other()
        )

    def _know_each_other(self) -> bool:
        states = [one.state() for one in self.sentinels]
        others = str(len(self.servers) - 1)
        return all(
            (one["num-slaves"], one["num-other-sentinels"], one["flags"]) == (others, others, "master")
            for one in states
        )

    def remove(self) -> None:
        """Kill all, and remove their data."""
        for one in (*self.sentinels, *self.servers):
            one.remove()


class HostPostgres(PostgresServer):
    """PostgreSQL at a host's address and the usual port, open to all hosts. Use it as a context manager."""

    def __init__(self, host: Host) -> None:
        super().__init__(listen_addresses=host.address, port=POSTGRES_PORT, max_connections=200)
        self._host = host
        with (self.folder / "data/pg_hba.conf").open("a") as file:
            file.write(f"host all all {NETWORK}.0/24 trust\n")

    @property
    def host_url(self) -> str:
        """Address for other hosts, in the form of HERALD_DATABASE_URL."""
        return f"postgres://{OWNER}@{self._host.address}:{POSTGRES_PORT}/postgres"

    def start(self) -> None:
        """Start it on its host."""
        with self._host.inside():
            super().start()
