"""The domain under test: gateways, one of which may be of another version, over a cluster of Valkey servers or one Redis, and proxies
between clients, gateways and servers.

Clients reach a gateway through a proxy of its own. Every server states the address of its proxies to the others, and so to gateways:
what is cut are the way to a server (commands and replication) and its cluster bus.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis

from demo.harness.background import Background
from demo.harness.proxy import Proxy
from demo.harness.servers import wait_for
from portal.supervisor.parent_watchdog import death_signal
from tests.gateway.server import LiveGateway, Prepared
from tests.store.cluster_process import ClusterProcesses, Node

RP_SETTINGS: dict[str, Any] = {"lease_s": 7200, "history": {"max_events": 100_000, "max_bytes": 64 * 1024**2}}
"""Nothing leaves the history during a run."""
ANY_REPLICA: dict[str, int] = {"cluster-replica-validity-factor": 0}
"""Every replica may be promoted, also one with old data; and one that was too slow in an election tries again."""
WHOLE_WITHIN_S = 90.0
SETTINGS: dict[str, Any] = {"heartbeat_s": 5, "drain_s": 2}


class ProxiedNode(Node):
    """A server that the others and gateways reach through proxies: `ways` to its port, and to its port of the cluster bus."""

    def __init__(self, folder: Path, background: Background, **options: str | int) -> None:
        self.ways = [Proxy(background, lambda: self.port), Proxy(background, lambda: self.bus)]
        ports: dict[str, str | int] = {
            "cluster_announce_port": self.ways[0].port,
            "cluster_announce_bus_port": self.ways[1].port,
        }
        super().__init__(folder, cluster_announce_ip="127.0.0.1", **ports, **options)

    @property
    def reached_at(self) -> tuple[int, int]:
        """The ports of its proxies."""
        return self.ways[0].port, self.ways[1].port


class Gateways(LiveGateway):
    """Gateways, of which the last one is of another source tree if there is one, `older`."""

    older: Path | None = None

    def spawn_gateway(self, gateway: int = 0) -> None:
        """Start a gateway without waiting."""
        if self.older is None or gateway < len(self._gateways) - 1:
            super().spawn_gateway(gateway)
            return
        descriptor = self._sockets[gateway].fileno()
        with self.log_path.with_name("older.log").open("ab") as output:
            self._gateways[gateway] = subprocess.Popen(
                [sys.executable, *self._program, str(descriptor)],
                env={**self._env, "PYTHONPATH": str(self.older / "client")},
                cwd=self.older,
                stdout=output,
                stderr=output,
                pass_fds=(descriptor,),
                preexec_fn=death_signal(signal.SIGKILL),
            )


class GatewaysOnServers(Gateways):
    """Gateways on servers that are there already."""

    def start_redis(self) -> None:
        """They run."""


class FaultyDomain:
    """The domain. A context manager; everything is stopped at its end.

    Args:
        folder: for all its files.
        replicas: of each of the three primaries.
        gateways: how many.
        cuts: whether the ways to servers can be cut: proxies cost CPU, for the cluster bus even while nothing happens.
        older: a source tree of which the last gateway is. None: all are of this tree.
        clustered: whether the data plane is a cluster; else it is one embedded Redis.
    """

    cluster: ClusterProcesses | None = None

    def __init__(
        self,
        folder: Path,
        prepared: Prepared,
        *,
        replicas: int = 1,
        gateways: int = 2,
        cuts: bool = True,
        older: Path | None = None,
        clustered: bool = True,
    ) -> None:
        self._folder, self._prepared = folder, prepared
        self._replicas, self._gateways, self._cuts = replicas, gateways, cuts
        self._older, self._is_clustered = older, clustered

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.threads = ThreadPoolExecutor(8)  # a process dies with the thread that started it
            stack.callback(self.threads.shutdown)
            self.background = Background()
            stack.callback(self.background.stop)
            self.gateways = self._clustered(stack) if self._is_clustered else self._on_one()
            self.gateways.older = self._older
            stack.enter_context(self.gateways)
            self.entrances = [
                Proxy(self.background, partial(self.gateways.port, number)) for number in range(self._gateways)
            ]
            self._stack = stack.pop_all()
        return self

    def _clustered(self, stack: contextlib.ExitStack) -> Gateways:
        new_node = partial(ProxiedNode, background=self.background) if self._cuts else Node
        self.cluster = ClusterProcesses(
            self._folder / "cluster", replicas=self._replicas, new_node=new_node, **ANY_REPLICA
        )
        stack.callback(self.cluster.kill)
        servers: dict[str, Any] = {
            "redis_url": self.cluster.url,
            "broker_url": "redis://127.0.0.1:1/0",
            "redis_replicas": self._replicas,
        }
        return GatewaysOnServers(self._folder / "var", self._prepared, gateways=self._gateways, **SETTINGS, **servers)

    def _on_one(self) -> Gateways:
        return Gateways(self._folder / "var", self._prepared, gateways=self._gateways, **SETTINGS)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def urls(self) -> list[str]:
        """Where clients reach the gateways."""
        return [entrance.url for entrance in self.entrances]

    def ways_of(self, node: Node) -> list[Proxy]:
        """The proxies in front of a server, if there are any: to its port, and to its port of the cluster bus."""
        return node.ways if isinstance(node, ProxiedNode) else []

    def wait_whole(self) -> None:
        """Wait until every server is there, and every replica connected."""
        if self.cluster is None:
            return
        nodes = self.cluster.nodes
        with_replicas = len(nodes) // (1 + self._replicas)

        def whole() -> bool:
            found = [replication_of(node) for node in nodes]
            primaries = [one for one in found if one is not None and one["role"] == "master"]
            counts = {one["connected_slaves"] for one in primaries}
            return None not in found and len(primaries) == with_replicas and counts == {self._replicas}

        wait_for(whole, WHOLE_WITHIN_S, every_s=0.2, about="the cluster is whole")

    def create_rps(self, level: str, count: int) -> list[str]:
        """RPs at this level; each primary has some of `count` of at least 3, usually."""
        return [self.gateways.create_rp(ack=level, **RP_SETTINGS) for _ in range(count)]

    def create_subscription(self, rp: str) -> str:
        """A durable subscription from the earliest event on."""
        answer = self.gateways.admin.post(f"/api/v1/rps/{rp}/subscriptions", json={"lease_s": 7200, "from": "earliest"})
        answer.raise_for_status()
        return str(answer.json()["id"])


def replication_of(node: Node) -> dict[str, Any] | None:
    """What a server states of its replication; None if it does not answer."""
    try:
        with redis.Redis(port=node.port, socket_timeout=1, socket_connect_timeout=1, protocol=2) as client:
            found: dict[str, Any] = client.info("replication")
    except (redis.RedisError, OSError):
        return None
    return found


def role_of(node: Node) -> str | None:
    """`master` or `slave`; None if the server does not answer."""
    found = replication_of(node)
    return None if found is None else str(found["role"])
