"""The recipes for load balancers, as they are in deploy/, before three gateways: readers lose and repeat nothing whatever is restarted."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from herald import Client, Gap, Received

from demo.harness.servers import ROOT, Domain, eventually, free_port, wait_for
from portal.supervisor.parent_watchdog import death_signal
from tests.gateway.server import Prepared

pytestmark = [pytest.mark.processes, pytest.mark.long, pytest.mark.soak]

IDLE_S = 70  # longer than the 60 s after which nginx, unless told otherwise, ends a silent connection
EVENTS = 300
PAUSE_S = 0.02


def found(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path="/usr/sbin")


@dataclass(frozen=True)
class Recipe:
    """A balancer: its program, its file in deploy/, how it is started with a file, and how it is told to read the file again."""

    name: str
    file: str
    command: Callable[[str, Path], list[str]]
    reload: Callable[[str, Path, subprocess.Popen[bytes]], None]

    def around(self, text: str, folder: Path) -> str:
        """Return the file as the program takes it alone: nginx's is a part of a larger one."""
        if self.name != "nginx":
            return text
        head = f"daemon off; user root; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1; worker_shutdown_timeout 600s;\n"
        return f"{head}events {{}}\nhttp {{\naccess_log off;\n{text}\n}}\n"


def signalled(number: signal.Signals) -> Callable[[str, Path, subprocess.Popen[bytes]], None]:
    return lambda program, file, process: process.send_signal(number)


RECIPES = (
    Recipe(
        "haproxy",
        "haproxy/haproxy.cfg",
        lambda program, file: [program, "-W", "-f", str(file)],
        signalled(signal.SIGUSR2),
    ),
    Recipe("nginx", "nginx/herald.conf", lambda program, file: [program, "-c", str(file)], signalled(signal.SIGHUP)),
    Recipe(
        "caddy",
        "caddy/Caddyfile",
        lambda program, file: [program, "run", "--adapter", "caddyfile", "--config", str(file)],
        lambda program, file, process: None,
    ),
)


@dataclass(frozen=True)
class Balanced:
    """Gateways of one domain, and the balancer before them."""

    domain: Domain
    gateways: dict[int, subprocess.Popen[bytes]]
    url: str
    recipe: Recipe
    program: str
    file: Path
    process: subprocess.Popen[bytes]

    def reload(self) -> None:
        self.recipe.reload(self.program, self.file, self.process)

    def client(self) -> Client:
        return Client(self.url, token=self.domain.token(admin=True), best_server=False)


@contextmanager
def gateway(domain: Domain, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """One more gateway process of a running domain, on a port of its own, as on another host."""
    log = domain.data_dir.parent / f"gateway-{port}.out"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "portal.gateway"],
            env={
                **domain.env,
                "HERALD_PORT": str(port),
                "HERALD_PROCESS": f"gateway-{port}",
                "DJANGO_SETTINGS_MODULE": "portal.settings",
            },
            cwd=ROOT,
            stdout=output,
            stderr=output,
            preexec_fn=death_signal(signal.SIGTERM),
        )
    try:
        wait_for(
            lambda: process.poll() is not None or answers(f"http://127.0.0.1:{port}/readyz"),
            about="the gateway is ready",
        )
        assert process.poll() is None, log.read_text()
        yield process
    finally:
        process.terminate()
        process.wait(20)


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


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
    program = found(recipe.name)
    if program is None:
        pytest.skip(f"{recipe.name} is not installed (Debian: apt install {recipe.name})")
    domain, numbers = ports
    text, front = (ROOT / "deploy" / recipe.file).read_text(), free_port()
    for stated, used in zip((8080, 8001, 8002, 8003), (front, *numbers), strict=True):
        assert f"127.0.0.1:{stated}" in text
        text = text.replace(f"127.0.0.1:{stated}", f"127.0.0.1:{used}")
    file = tmp_path / Path(recipe.file).name
    file.write_text(recipe.around(text, tmp_path))
    with ExitStack() as stack:
        gateways = {number: stack.enter_context(gateway(domain, number)) for number in numbers}
        output = stack.enter_context((tmp_path / "balancer.out").open("wb"))
        environment = {
            **os.environ,
            "XDG_DATA_HOME": str(tmp_path),
            "XDG_CONFIG_HOME": str(tmp_path),
            "HOME": str(tmp_path),
        }
        process = subprocess.Popen(
            recipe.command(program, file),
            stdout=output,
            stderr=output,
            env=environment,
            preexec_fn=death_signal(signal.SIGTERM),
        )
        try:
            url = f"http://127.0.0.1:{front}"
            wait_for(lambda: process.poll() is not None or answers(f"{url}/readyz"), about="the balancer serves")
            assert process.poll() is None, (tmp_path / "balancer.out").read_text()
            yield Balanced(domain, gateways, url, recipe, program, file, process)
        finally:
            process.terminate()
            process.wait(20)


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
    rp = f"restarts-{balanced.recipe.name}"
    async with balanced.client() as publisher:
        await publisher.rps.create(name=rp, lease_s=3600)
        async with reading(balanced, rp, readers=6) as read:
            for number in range(EVENTS):
                await publisher.publish(rp, {"number": number}, id=str(number), source="urn:balancers")
                if number == EVENTS // 3:
                    next(iter(balanced.gateways.values())).terminate()  # in order: readiness first, then its sessions
                if number == EVENTS * 2 // 3:
                    balanced.reload()
                await asyncio.sleep(PAUSE_S)  # a rate, not a wait: readers follow meanwhile
            wanted = list(range(EVENTS))

            async def all_read() -> bool:
                return all(len(numbers) >= EVENTS for numbers in read)

            await eventually(all_read, 60, about="all readers have all events")
            assert all(numbers == wanted for numbers in read)


async def test_a_silent_websocket_and_a_silent_stream_stay_open(balanced: Balanced) -> None:
    rp = f"silence-{balanced.recipe.name}"
    token = balanced.domain.token(admin=True)
    async with (
        balanced.client() as publisher,
        httpx.AsyncClient(base_url=balanced.url, timeout=IDLE_S * 2, trust_env=False) as http,
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
