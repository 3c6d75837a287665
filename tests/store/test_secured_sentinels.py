"""Servers and Sentinels with users, passwords and TLS, the Sentinels' others than the servers': what an address has to state, that
it lasts through a failover, and that no secret is repeated."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from kombu.exceptions import OperationalError

from demo.harness.network import Network
from demo.harness.servers import free_port, wait_for
from eventing.core.brokers import broker_address
from eventing.core.config import Config
from eventing.log.routed_notifications import notification_channels
from eventing.log.scripts import Appended
from eventing.store import keys
from eventing.store.connection import async_client
from portal import broker
from portal.celery import tls_options, transport_options
from portal.supervisor import redis_server
from portal.supervisor.diagnosis.data_plane import data_plane_findings
from portal.supervisor.errors import StartError
from portal.supervisor.parent_watchdog import death_signal
from tests.gateway.server import Prepared
from tests.log.harness import ALWAYS, BOUNDS, NEW_RP, Harness, descriptor, make_event
from tests.store.certificates import certificate_made
from tests.store.cluster_process import server_program, server_program_with_tls
from tests.store.secured_node import OPERATORS, SecuredNode, files_of

pytestmark = pytest.mark.long

SERVERS, SENTINELS = "s3rvers/with:signs+", "s3ntinels;with&signs+"
SERVERS_ENCODED, SENTINELS_ENCODED = "s3rvers%2Fwith%3Asigns+", "s3ntinels;with%26signs+"
SECRETS = [OPERATORS, SERVERS, SERVERS_ENCODED, SENTINELS, SENTINELS_ENCODED, "wr0ng"]
SERVER_PERMISSIONS = "~herald:* &herald:* +@all -@admin -@dangerous +info +keys +config|get +role"
SENTINEL_PERMISSIONS = "+sentinel|master +sentinel|masters +sentinel|get-master-addr-by-name"
"""Of the users that docs/several-hosts.md recommends."""


class Secured:
    """A primary, its replica, and a Sentinel of them."""

    def __init__(self, folder: Path, program: str, certificate: tuple[Path, Path] | None) -> None:
        self.nodes = [
            SecuredNode(folder / f"node{number}", program, certificate, cluster_enabled="no") for number in range(2)
        ]
        self._admit(*self.nodes)
        self.nodes[1].ask("REPLICAOF", "127.0.0.1", self.nodes[0].port)
        self.port, self._tls = free_port(), certificate is not None
        lines = [f"tls-port {self.port}", "port 0"] if certificate else [f"port {self.port}"]
        if certificate:
            lines += [f"{name.replace('_', '-')} {value}" for name, value in files_of(certificate).items()]
        lines += [
            "bind 127.0.0.1",
            f"dir {folder}",
            f"requirepass {OPERATORS}",
            f'user herald on ">{SENTINELS}" {SENTINEL_PERMISSIONS}',
            f"sentinel monitor herald 127.0.0.1 {self.nodes[0].port} 1",
            f"sentinel auth-pass herald {OPERATORS}",
            "sentinel down-after-milliseconds herald 1000",
            "sentinel failover-timeout herald 3000",
        ]
        stated = folder / "sentinel.conf"
        stated.write_text("\n".join(lines) + "\n")
        self._sentinel = subprocess.Popen(
            [program, str(stated), "--sentinel"],
            stdout=(folder / "sentinel.log").open("ab"),
            preexec_fn=death_signal(signal.SIGKILL),
        )
        self.whole()

    @staticmethod
    def _admit(*nodes: SecuredNode) -> None:
        for node in nodes:
            node.ask("ACL", "SETUSER", "herald", "on", f">{SERVERS}", *SERVER_PERMISSIONS.split())

    def kill_primary(self) -> None:
        """SIGKILL of the primary."""
        next(node for node in self.nodes if role(node) == "master").kill()

    def whole(self) -> None:
        """Start what was killed, and wait until the Sentinel knows of a primary with a replica in step."""
        for node in self.nodes:
            if not role(node):
                node.start()
                self._admit(node)
        wait_for(self._is_whole, about="the Sentinel knows a primary and its replica")

    def _is_whole(self) -> bool:
        with suppress(redis.RedisError), self.nodes[0].client() as client:
            client.connection_pool.connection_kwargs["port"] = self.port
            states = [one["master-link-status"] for one in client.sentinel_slaves("herald")]
            return states == ["ok"] and sorted(map(role, self.nodes)) == ["master", "slave"]
        return False

    def url(self, servers: str = SERVERS_ENCODED, sentinels: str = SENTINELS_ENCODED) -> str:
        """The address with these passwords."""
        scheme, tls = ("rediss", 1) if self._tls else ("redis", 0)
        parameters = f"sentinel_user=herald&sentinel_password={sentinels}&sentinel_tls={tls}"
        return f"{scheme}+sentinel://herald:{servers}@127.0.0.1:{self.port}/herald?{parameters}"

    def kill(self) -> None:
        """SIGKILL of all."""
        for node in self.nodes:
            node.kill()
        self._sentinel.kill()
        self._sentinel.wait()


@pytest.fixture(scope="module", params=["passwords", "passwords and TLS"])
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    with pytest.MonkeyPatch.context() as environment:
        if request.param == "passwords":
            program, certificate = server_program(), None
        else:
            program, certificate = server_program_with_tls(folder), certificate_made(folder / "tls")
            environment.setenv("SSL_CERT_FILE", str(certificate[0]))
        made = Secured(folder, program, certificate)
        yield made
        made.kill()


@pytest.fixture
def says(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """What is said to operators besides the log. In neither of both there is a secret."""
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    yield said
    for secret in SECRETS:
        assert secret not in "\n".join([*said, caplog.text])


@asynccontextmanager
async def publishing(url: str) -> AsyncIterator[tuple[Harness, Callable[[str], Any]]]:
    """A harness, and `publish(rp)`, which repeats: a failover may take longer than a publish is repeated for."""
    harness = Harness(async_client(url), ALWAYS, fenced=True)

    async def publish(rp: str) -> list[int]:
        async with asyncio.timeout(60):
            while True:
                (outcome,) = await asyncio.gather(
                    harness.appender.append_and_wait(descriptor(rp), [make_event(str(next(NEW_RP)))]),
                    return_exceptions=True,
                )
                if isinstance(outcome, Appended):
                    return outcome.offsets

    yield harness, publish
    await harness.appender.close()
    harness.reader.close()
    await harness.client.aclose()


def test_a_wrong_password_of_servers_or_sentinels_is_named_and_not_repeated(secured: Secured, says: list[str]) -> None:
    for url, expected in (
        (secured.url(servers="wr0ng"), "refuses the password"),
        (secured.url(sentinels="wr0ng"), f"Sentinel at 127.0.0.1:{secured.port} refuses"),
    ):
        with pytest.raises(StartError) as refused:
            redis_server.external_version(Config(redis_url=url))
        assert expected in str(refused.value)
        findings = data_plane_findings(Config(redis_url=url))
        assert [(finding.grade, "refuses" in finding.says) for finding in findings] == [("fail", True)]
        with pytest.raises(OperationalError) as failed:
            broker_connection(url).ensure_connection(max_retries=1)
        says += [str(refused.value), repr(failed.value), *(f"{finding.says} {finding.do}" for finding in findings)]


async def test_a_failover_behind_passwords_and_tls_is_followed_and_no_secret_is_repeated(
    secured: Secured, says: list[str]
) -> None:
    secured.whole()
    settings = Config(redis_url=secured.url())
    says += [f"{finding.says} {finding.do}" for finding in data_plane_findings(settings)]
    assert [finding.grade for finding in data_plane_findings(settings) if finding.subject == "redis"] == ["ok"]
    assert redis_server.external_version(settings)
    queues = broker_connection(settings.redis_url)
    says += [queues.as_uri(), repr(queues)]
    async with publishing(settings.redis_url) as (harness, publish):
        rung: list[str] = []
        channels = notification_channels(harness.client, lambda channel, _: rung.append(channel), lambda: None)
        channels.start()
        rp = next(NEW_RP)
        await harness.reader.create(rp, BOUNDS)
        await asyncio.wait_for(channels.subscribe(keys.notification_channel(rp)), 30)
        assert await publish(rp) == [1]
        wait_for(lambda: passes(queues, "before"), about="tasks pass through the primary")
        wait_for(lambda: has_one(secured, rp), about="the event is replicated")
        secured.kill_primary()
        assert await publish(rp) == [2]
        async with asyncio.timeout(60):
            while not rung:  # the channels look for the new primary by themselves
                await publish(rp)
                await asyncio.sleep(0.05)
        await channels.close()

    wait_for(lambda: passes(queues, "after"), about="tasks pass through the new primary")
    queues.close()


def has_one(secured: Secured, rp: str) -> bool:
    """Whether both servers have one event of an RP."""
    return [node.ask("XLEN", keys.log_keys(rp)[0]) for node in secured.nodes] == [1, 1]


def broker_connection(url: str) -> Any:
    """A connection as Celery's processes have it where the task queues are in the domain's Redis."""
    address = broker_address("HERALD_REDIS_URL", url)
    return broker.BrokerConnection(address.url, ssl=tls_options(address), transport_options=transport_options(address))


def passes(queues: Any, text: str) -> bool:
    """Whether a message passes through the broker; False while the Sentinel finds no primary up."""
    with suppress(OperationalError, *queues.connection_errors):
        queues.ensure_connection(max_retries=1)
        queue = queues.SimpleQueue("tasks")
        queue.put(text)
        return str(queue.get(timeout=5).payload) == text
    queues.close()
    return False


@pytest.mark.soak
@pytest.mark.processes
def test_a_domain_behind_passwords_and_tls_outlives_a_failover_and_logs_no_secret(
    secured: Secured, tmp_path: Path, prepared: Prepared
) -> None:
    secured.whole()
    with Network(
        tmp_path, "a", seed=prepared.migrated, redis_url=secured.url(), log_level="debug", records=0
    ) as network:
        rp = network.create_rp("a")
        reader = network.reader(rp, "a")
        network.publish(rp, "a", 3)
        secured.kill_primary()
        network.publish(rp, "a", 3, within_s=90)
        reader.has(network.published[rp])
        doctor = network["a"].manage("doctor")
        assert "sentinel of 1 primaries" in doctor.stdout
        shown = "\n".join([network.logs(), doctor.stdout, doctor.stderr])
    assert not [secret for secret in SECRETS if secret in shown]


def role(node: SecuredNode) -> str:
    """`master`, `slave`; empty where the server is gone."""
    with suppress(redis.RedisError):
        return str(node.ask("INFO", "replication")["role"])
    return ""
