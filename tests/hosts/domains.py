"""Hosts of one domain: `manage.py run` in the namespaces of a host, at its address and the usual port, with stores on other hosts."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from demo.harness.background import Background
from demo.harness.servers import Domain
from tests.hosts.network import Host, HostNetwork
from tests.hosts.stores import HostPostgres, WatchedRedis

PORT = 8000
REPLICAS_NEEDED = 1
"""Of two: while the lost primary is away, one replica must do."""
REPLICAS_CLOCK_S = -30
"""Offset of their clocks: the promoted server is behind the one before it."""


class HostDomain(Domain):
    """As Domain, on a host. The test's own requests come from the host where its thread is."""

    ready_within_s = 270.0  # three hosts start at once, on a machine that may be busy

    def __init__(self, host: Host, folder: Path, postgres: HostPostgres, **settings: Any) -> None:
        stated = {"host": host.address, "port": PORT, "database_url": postgres.host_url, **settings}
        super().__init__(folder / host.name / "var", **stated)
        self.host = host
        self._postgres = postgres

    @property
    def url(self) -> str:
        return f"http://{self.host.address}:{self.port}"

    @property
    def ws_url(self) -> str:
        return f"ws://{self.host.address}:{self.port}/ws"

    @property
    def signing_key(self) -> dict[str, Any]:
        """Return the present private signing key, of the database that all hosts share."""
        with self._postgres.connect() as connection:
            row = connection.execute(
                "SELECT private_jwk, kid FROM eventing_domainkey WHERE not_before <= now()"
                " AND (not_after IS NULL OR not_after > now()) ORDER BY not_before DESC"
            ).fetchone()
        assert row is not None, "the domain has no key yet"
        return {**row[0], "kid": row[1]}

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start `manage.py run` on the host without waiting."""
        with self.host.inside():
            return super().spawn()

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `manage.py ARGUMENTS` on the host."""
        with self.host.inside():
            return super().manage(*arguments)


class SpreadDomain:
    """One domain at `replicated:all`, with a gateway, forwarder and worker on each of the hosts g1 to g3, and PostgreSQL, a Redis with two replicas and three
    Sentinels on the hosts s1 to s3 (PostgreSQL and the first primary on s1). The test is at `desk`.

    Attributes:
        network, postgres, redis: what it is made of.
        gateways: its hosts by name.
        background: a loop at the desk.
    """

    GATEWAYS, STORES, DESK = ("g1", "g2", "g3"), ("s1", "s2", "s3"), "desk"

    def __init__(self, network: HostNetwork, postgres: HostPostgres, redis: WatchedRedis, folder: Path) -> None:
        self.network, self.postgres, self.redis = network, postgres, redis
        settings: dict[str, Any] = {
            "redis_url": redis.url,
            "redis_replicas": REPLICAS_NEEDED,
            "ack_default": "replicated:all",
            "secret_key": secrets.token_urlsafe(48),
            "public_url": "https://herald.test",
            "records": 0,
            "reports": "off",
        }
        self.gateways = {name: HostDomain(network[name], folder, postgres, **settings) for name in self.GATEWAYS}
        with network[self.DESK].inside():
            self.background = Background()

    def _start(self) -> None:
        for one in self.gateways.values():
            one.spawn()
        for one in self.gateways.values():
            one.wait_up()

    def _stop(self) -> None:
        self.background.stop()
        for one in self.gateways.values():
            one.kill_everything()

    def cut_off(self, name: str, others: Sequence[str], ways: str) -> None:
        """Cut a host from others: "both" ways, what it sends them ("out"), or what they send it ("in")."""
        for other in others:
            if ways in ("both", "out"):
                self.network.cut_one_way(name, other)
            if ways in ("both", "in"):
                self.network.cut_one_way(other, name)

    def logs(self) -> str:
        """Return what all hosts printed and logged, for a failure's report."""
        return "\n".join(f"===== {name}\n{one.logs()}" for name, one in self.gateways.items())


@contextmanager
def spread_domain(folder: Path, seed: int = 0) -> Iterator[SpreadDomain]:
    """Run a SpreadDomain, from hosts to gateways."""
    with ExitStack() as stack:
        network = stack.enter_context(
            HostNetwork([*SpreadDomain.GATEWAYS, *SpreadDomain.STORES, SpreadDomain.DESK], seed=seed)
        )
        postgres = HostPostgres(network["s1"])
        stack.enter_context(postgres)
        redis = WatchedRedis([network[name] for name in SpreadDomain.STORES], REPLICAS_CLOCK_S)
        stack.callback(redis.remove)
        made = SpreadDomain(network, postgres, redis, folder)
        stack.callback(made._stop)
        with network[SpreadDomain.DESK].inside():
            made._start()
        yield made
