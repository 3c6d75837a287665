"""The recipes for load balancers, as they are in deploy/, before three gateways: readers lose and repeat nothing whatever is restarted."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from herald import Client, Gap, Received

from demo.harness.servers import Domain, eventually, free_port
from tests.deploy.balancers import RECIPES, Balancer, Recipe, balancer, gateway
from tests.gateway.server import Prepared

pytestmark = [pytest.mark.processes, pytest.mark.long, pytest.mark.soak]

IDLE_S = 70  # longer than the 60 s after which nginx, unless told otherwise, ends a silent connection
EVENTS = 300
PAUSE_S = 0.02


@dataclass(frozen=True)
class Balanced:
    """Gateways of one domain, and the balancer before them."""

    domain: Domain
    gateways: dict[int, subprocess.Popen[bytes]]
    front: Balancer

    def client(self) -> Client:
        return Client(self.front.url, token=self.domain.token(admin=True), best_server=False)


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[tuple[Domain, list[int]]]:
    """A domain, and the ports of three gateways of it beside the supervisor's own."""
    domain = Domain(tmp_path_factory.mktemp("balanced") / "var", seed=prepared.migrated, trusted_proxies="127.0.0.1")
    with domain:
        yield domain, [free_port() for _ in range(3)]


@pytest.fixture(params=RECIPES, ids=lambda recipe: recipe.name)
def balanced(request: pytest.FixtureRequest, ports: tuple[Domain, list[int]], tmp_path: Path) -> Iterator[Balanced]:
    """The recipe with the ports of these gateways in it, and everything running."""
    recipe: Recipe = request.param
    domain, numbers = ports
    with ExitStack() as stack:
        gateways = {number: stack.enter_context(gateway(domain, number)) for number in numbers}
        yield Balanced(domain, gateways, stack.enter_context(balancer(recipe, numbers, tmp_path)))


@asynccontextmanager
async def reading(balanced: Balanced, rp: str, readers: int) -> AsyncIterator[list[list[int]]]:
    """Readers through the balancer, each with a client of its own; yields what each has read."""
    read: list[list[int]] = [[] for _ in range(readers)]

    async def follow(into: list[int]) -> None:
        async with balanced.client() as client:
            async for item in client.subscribe(rp, from_="earliest"):
                assert not isinstance(item, Gap)
                into.append(int(item.data["number"]))

    tasks = [asyncio.create_task(follow(into)) for into in read]
    try:
        yield read
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome


async def test_nothing_is_lost_or_repeated_while_gateways_and_balancer_are_restarted(balanced: Balanced) -> None:
    rp = f"restarts-{balanced.front.recipe.name}"
    async with balanced.client() as publisher:
        await publisher.rps.create(name=rp, lease_s=3600)
        async with reading(balanced, rp, readers=6) as read:
            for number in range(EVENTS):
                await publisher.publish(rp, {"number": number}, id=str(number), source="urn:balancers")
                if number == EVENTS // 3:
                    next(iter(balanced.gateways.values())).terminate()  # in order: readiness first, then its sessions
                if number == EVENTS * 2 // 3:
                    balanced.front.reload()
                await asyncio.sleep(PAUSE_S)  # a rate, not a wait: readers follow meanwhile
            wanted = list(range(EVENTS))

            async def all_read() -> bool:
                return all(len(numbers) >= EVENTS for numbers in read)

            await eventually(all_read, 60, about="all readers have all events")
            assert all(numbers == wanted for numbers in read)


async def test_a_silent_websocket_and_a_silent_stream_stay_open(balanced: Balanced) -> None:
    rp = f"silence-{balanced.front.recipe.name}"
    token = balanced.domain.token(admin=True)
    async with (
        balanced.client() as publisher,
        httpx.AsyncClient(base_url=balanced.front.url, timeout=IDLE_S * 2, trust_env=False) as http,
    ):
        await publisher.rps.create(name=rp, lease_s=3600)
        async with balanced.client() as client, client.subscribe(rp, from_="earliest") as items:
            head = {"Authorization": f"Bearer {token}"}
            async with http.stream("GET", f"/api/v1/rps/{rp}%2F/stream?after=earliest", headers=head) as stream:
                assert stream.status_code == 200
                lines = stream.aiter_lines()
                first = asyncio.ensure_future(anext(aiter(items)))
                await asyncio.sleep(IDLE_S)  # nothing is published meanwhile: that is what is tested
                assert not first.done()
                await publisher.publish(rp, {"number": 1})
                item = await asyncio.wait_for(first, 10)
                assert isinstance(item, Received)
                assert item.data == {"number": 1}
                async with asyncio.timeout(10):
                    while '"number"' not in await anext(lines):
                        pass
