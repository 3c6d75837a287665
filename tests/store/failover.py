"""A primary Redis and its replicas, real servers, behind a link that names the one in use: what a failover leaves to find out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from demo.harness.servers import free_port, wait_for
from tests.store.redis_process import RedisProcess


class Servers:
    """Redis servers of which one is the primary. `path` is a link to its unix socket.

    Args:
        new_redis: the fixture.
        folder: for the link.
        replicas: how many there are at first.
    """

    def __init__(self, new_redis: Callable[..., RedisProcess], folder: Path, replicas: int = 1) -> None:
        self._new_redis = new_redis
        self._ports: dict[RedisProcess, int] = {}
        self.path = folder / "primary.sock"
        self.primary = self._server()
        self.use(self.primary)
        self.replicas = [self.add_replica() for _ in range(replicas)]

    @property
    def url(self) -> str:
        """URL of the primary, whichever it is."""
        return f"unix://{self.path}"

    def _server(self) -> RedisProcess:
        port = free_port()
        made = self._new_redis(port=port, bind="127.0.0.1", **{"repl-diskless-sync-delay": 0})
        self._ports[made] = port
        return made

    def add_replica(self) -> RedisProcess:
        """Start a replica, and wait until it is in step."""
        made = self._server()
        self.follow(made)
        return made

    def follow(self, server: RedisProcess) -> None:
        """Make a server a replica of the primary, and wait until it is in step and counts as one."""
        with server.client() as client, self.primary.client() as primary:
            before = int(primary.info("replication")["connected_slaves"])
            client.replicaof("127.0.0.1", str(self._ports[self.primary]))
            wait_for(lambda: client.info("replication")["master_link_status"] == "up", about="the replica is in step")
            wait_for(
                lambda: (
                    int(primary.info("replication")["connected_slaves"]) > before
                    and "online" in str(primary.info("replication"))
                ),
                about="the primary counts it",
            )

    def in_step(self) -> None:
        """Wait until every replica has all that was written."""
        with self.primary.client() as client:
            client.set("in-step", 1)
            assert client.wait(len(self.replicas), 30_000) == len(self.replicas)

    def cut(self, replica: RedisProcess) -> None:
        """Cut a replica off: it keeps what it has, and gets no more."""
        with replica.client() as client:
            client.replicaof("127.0.0.1", str(free_port()))
            wait_for(lambda: client.info("replication")["master_link_status"] == "down", about="the link is cut")

    def promote(self, replica: RedisProcess) -> None:
        """Make a replica the primary, and the one in use."""
        with replica.client() as client:
            client.replicaof("NO", "ONE")
            wait_for(lambda: client.info("replication")["role"] == "master", about="it is the primary")
        self.primary = replica
        self.use(replica)

    def use(self, server: RedisProcess) -> None:
        """Have the link name a server."""
        link = self.path.with_suffix(".new")
        link.symlink_to(server.url.removeprefix("unix://"))
        link.replace(self.path)
