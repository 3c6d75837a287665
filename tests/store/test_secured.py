"""Clusters and Sentinels that demand a user with a password, and TLS: what an address has to state, and that nothing more is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from demo.harness.servers import wait_for
from eventing.log.routed_notifications import notification_channels
from eventing.log.scripts import Appended
from eventing.store import keys
from eventing.store.connection import async_client, sync_client
from tests.log.harness import ALWAYS, BOUNDS, NEW_RP, Harness, descriptor, make_event
from tests.store.certificates import certificate_made
from tests.store.cluster_process import ClusterProcesses, Node, server_program_with_tls
from tests.store.secured_node import SecuredNode
from tests.store.tls_proxy import tls_before

pytestmark = pytest.mark.long

PASSWORD = "s3cret/with:signs"
ENCODED = "s3cret%2Fwith%3Asigns"
PERMISSIONS = "~herald:* &herald:* +@all -@admin -@dangerous +info +keys +config|get +role"
"""Of the user that docs/several-hosts.md recommends."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that is its own authority, and its key."""
    return certificate_made(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    """A cluster with a user besides the tests' own."""
    made = ClusterProcesses(tmp_path_factory.mktemp("secured"))
    for node in made.nodes:
        node.ask("ACL", "SETUSER", "herald", "on", f">{PASSWORD}", *PERMISSIONS.split())
    yield made
    made.kill()


@contextmanager
def plain(cluster: ClusterProcesses, certificate: tuple[Path, Path]) -> Iterator[str]:
    """The cluster's address without credentials."""
    yield cluster.url


@contextmanager
def by_tls(cluster: ClusterProcesses, certificate: tuple[Path, Path]) -> Iterator[str]:
    """The address with TLS; meanwhile the nodes state the ports where it is taken."""
    with tls_before([node.port for node in cluster.nodes], *certificate) as ports:
        for node, port in zip(cluster.nodes, ports, strict=True):
            node.ask("CONFIG", "SET", "cluster-announce-port", port)
        wait_for(
            lambda: all(stated(node) == sorted(ports) for node in cluster.nodes), about="the nodes state the ports"
        )
        yield f"rediss+cluster://127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}"
        for node in cluster.nodes:
            node.ask("CONFIG", "SET", "cluster-announce-port", 0)
        own = sorted(node.port for node in cluster.nodes)
        wait_for(lambda: all(stated(node) == own for node in cluster.nodes), about="the nodes state their own ports")


def stated(node: Node) -> list[int]:
    """The ports of the primaries, as a node states them."""
    slots: Any = node.ask("CLUSTER", "SLOTS")
    return sorted(row[2][1] for row in slots)


def with_user(url: str, credentials: str) -> str:
    return url.replace("://", f"://{credentials}@")


@pytest.mark.parametrize("reached", [plain, by_tls])
async def test_a_user_with_the_documented_permissions_is_enough(
    secured: ClusterProcesses,
    certificate: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    reached: Callable[[ClusterProcesses, tuple[Path, Path]], AbstractContextManager[str]],
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with reached(secured, certificate) as url:
        await used(with_user(url, f"herald:{ENCODED}"))


async def used(url: str) -> None:
    """Publish, be notified and read at all primaries."""
    harness = Harness(async_client(url), ALWAYS, fenced=True)
    rung: list[str] = []
    channels = notification_channels(harness.client, lambda channel, _: rung.append(channel), lambda: None)
    channels.start()
    rps = [next(NEW_RP) for _ in range(12)]
    await harness.reader.create_all([(rp, BOUNDS) for rp in rps])
    names = [keys.notification_channel(rp) for rp in rps]
    await asyncio.wait_for(asyncio.gather(*map(channels.subscribe, names)), 30)
    outcomes = await asyncio.gather(
        *(harness.appender.append_and_wait(descriptor(rp), [make_event("a")]) for rp in rps)
    )
    assert all(isinstance(one, Appended) and one.offsets == [1] for one in outcomes)
    async with asyncio.timeout(30):
        while set(rung) != set(names):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert (await harness.reader.durability()).always
    await channels.close()
    await harness.appender.close()
    harness.reader.close()
    await harness.client.aclose()


def test_a_certificate_of_an_unknown_authority_is_refused(
    secured: ClusterProcesses, certificate: tuple[Path, Path]
) -> None:
    with (
        by_tls(secured, certificate) as url,
        sync_client(with_user(url, f"herald:{ENCODED}")) as client,
        pytest.raises(redis.RedisError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        client.get("herald:x")


@pytest.mark.parametrize("credentials", ["herald:wrong", "nobody:x"])
def test_a_wrong_password_is_an_error_that_repeats_no_secret(secured: ClusterProcesses, credentials: str) -> None:
    with sync_client(with_user(secured.url, credentials)) as client, pytest.raises(redis.RedisError) as refused:
        client.get("herald:x")
    assert credentials.partition(":")[2] not in str(refused.value).split()
    assert "WRONGPASS" in str(refused.value) or "username-password" in str(refused.value)


@pytest.mark.soak
async def test_a_cluster_of_servers_with_tls_of_their_own_is_used_also_after_a_failover(
    tmp_path: Path, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    program = server_program_with_tls(tmp_path)
    cluster = ClusterProcesses(
        tmp_path / "nodes",
        replicas=1,
        new_node=lambda folder, **options: SecuredNode(folder, program, certificate, **options),
        tls_cluster="yes",
    )
    try:
        for node in cluster.nodes:
            node.ask("ACL", "SETUSER", "herald", "on", f">{PASSWORD}", *PERMISSIONS.split())
        url = with_user(cluster.url.replace("redis+", "rediss+"), f"herald:{ENCODED}")
        await used(url)
        cluster.primaries[1].kill()
        replica = next(one for one, of in cluster.replica_of.items() if of is cluster.primaries[1])
        wait_for(lambda: replica.ask("INFO", "replication")["role"] == "master", about="the replica is promoted")
        wait_for(lambda: b"cluster_state:ok" in replica.ask("CLUSTER", "INFO"), about="the cluster is whole")
        await used(url)
    finally:
        cluster.kill()
