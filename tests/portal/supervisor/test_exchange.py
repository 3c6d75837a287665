"""SIGHUP exchanges a domain's processes, gateways one by one: nobody is refused, and nothing is lost or read twice."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from herald import Client, Gap

from demo.harness.servers import ROOT, Domain, eventually, wait_for
from tests.gateway.server import Prepared

pytestmark = [pytest.mark.processes, pytest.mark.long]

CONNECTS_PER_S = 200
SESSIONS_PER_S = 10  # of these: sessions that read, the others are single requests
EVENTS_PER_S = 100
READERS = 20
TICK_S = 0.1
EXCHANGED_WITHIN_S = 90.0
PUBLISHED_WITHIN_S = 60.0

# A release that does not start, while the file is there.
BROKEN = """
import os, sys
if os.path.exists(os.environ["BROKEN_RELEASE"]) and "portal.gateway" in sys.orig_argv:
    os.write(2, b"This release does not start.\\n")
    os._exit(1)
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Domain]:
    """A domain with two gateways, of which a broken release can be installed."""
    folder = tmp_path_factory.mktemp("exchange")
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(BROKEN)
    path = os.pathsep.join([str(folder / "site"), str(ROOT / "client")])
    extra = {"PYTHONPATH": path, "BROKEN_RELEASE": str(folder / "broken")}
    with Domain(folder / "var", seed=prepared.migrated, extra_env=extra, gateways=2, workers=0) as running:
        yield running


def hang_up(domain: Domain, said: str) -> None:
    """Send SIGHUP, and wait until the supervisor reports the end of the exchange by a line with `said`."""
    before = len(domain.output)
    domain.supervisor.send_signal(signal.SIGHUP)
    wait_for(lambda: said in domain.output[before:], EXCHANGED_WITHIN_S, about=f"{said!r} in the output")


async def ticks() -> AsyncIterator[None]:
    """Yield every TICK_S, however long what is done then takes: a rate, not a wait."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        due += TICK_S
        await asyncio.sleep(max(0.0, due - loop.time()))
        yield


@dataclass
class Load:
    """What connects, publishes and reads while the processes are exchanged.

    Attributes:
        failed: connects that were refused or reset, in words.
        enough: whether no further batch is to be published; the one under way is.
    """

    domain: Domain
    connects: int = 0
    published: int = 0
    failed: list[str] = field(default_factory=list)
    enough: bool = False
    read: list[list[int]] = field(default_factory=lambda: [[] for _ in range(READERS)])

    async def has_read(self, count: int) -> bool:
        """Return whether every reader has at least so many events."""
        return all(len(numbers) >= count for numbers in self.read)

    def client(self) -> Client:
        return Client(self.domain.url, token=self.domain.token(admin=True), best_server=False)

    async def connect(self) -> None:
        """One connection with one request."""
        self.connects += 1
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.domain.port)
            writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = await reader.read()
            writer.close()
            if not answer.startswith(b"HTTP/1.1 200"):
                self.failed.append(repr(answer))
        except OSError as error:
            self.failed.append(repr(error))

    async def open_session(self, token: str) -> None:
        """One WebSocket handshake, by hand: a library might try again."""
        self.connects += 1
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.domain.port)
            writer.write(
                f"GET /ws?access_token={token} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
            )
            answer = await reader.readuntil(b"\r\n\r\n")
            writer.close()
            if not answer.startswith(b"HTTP/1.1 101"):
                self.failed.append(repr(answer))
        except (OSError, asyncio.IncompleteReadError) as error:
            self.failed.append(repr(error))

    async def connect_forever(self) -> None:
        token = self.domain.token(admin=True)
        async with asyncio.TaskGroup() as group:
            async for _ in ticks():
                for number in range(round(CONNECTS_PER_S * TICK_S)):
                    session = number < SESSIONS_PER_S * TICK_S
                    group.create_task(self.open_session(token) if session else self.connect())

    async def publish_forever(self, rp: str) -> None:
        async with self.client() as client:
            async for _ in ticks():
                count = round(EVENTS_PER_S * TICK_S)
                batch = [
                    {"specversion": "1.0", "id": str(number), "source": "urn:exchange", "type": "t", "data": number}
                    for number in range(self.published, self.published + count)
                ]
                await client.publish_many(rp, batch)
                self.published += count
                if self.enough:
                    return

    async def follow(self, rp: str, into: list[int]) -> None:
        async with self.client() as client:
            async for item in client.subscribe(rp, from_="earliest"):
                assert not isinstance(item, Gap)
                into.append(int(item.data))


@asynccontextmanager
async def load(domain: Domain, rp: str) -> AsyncIterator[Load]:
    """Put load on a domain, until all that was published has been read."""
    made = Load(domain)
    async with made.client() as client:
        await client.rps.create(name=rp, lease_s=3600)
    reading = [asyncio.create_task(made.follow(rp, into)) for into in made.read]
    sending = [asyncio.create_task(made.publish_forever(rp)), asyncio.create_task(made.connect_forever())]
    try:
        await eventually(lambda: made.has_read(1), about="everybody reads")
        yield made
        for task in sending:
            assert not task.done() or task.exception() is None, task.exception()
        made.enough = True
        await asyncio.wait_for(sending[0], PUBLISHED_WITHIN_S)
        await eventually(lambda: made.has_read(made.published), about="everything has been read")
    finally:
        for task in (*reading, *sending):
            task.cancel()
        outcomes = await asyncio.gather(*reading, *sending, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


def test_a_new_gateway_that_does_not_start_ends_the_exchange_and_the_present_one_stays(own: Domain) -> None:
    pids = own.pids
    broken = Path(own.env["BROKEN_RELEASE"])
    broken.touch()
    try:
        hang_up(own, "The exchange has ended early")
    finally:
        broken.unlink()
    assert own.pids == pids
    assert own.is_ready()
    assert "gateway-1  the new process ended at once (exit code 1): This release does not start." in own.output


async def test_an_exchange_under_load_refuses_nobody_and_loses_and_repeats_nothing(own: Domain) -> None:
    before = own.pids
    async with load(own, "/localhost/exchange/") as made:
        began, connects, published = time.monotonic(), made.connects, made.published
        await asyncio.to_thread(hang_up, own, "Exchanged.")
        took_s = time.monotonic() - began
        connects_per_s = (made.connects - connects) / took_s
        events_per_s = (made.published - published) / took_s
    assert made.failed == []
    for numbers in made.read:
        assert numbers == list(range(made.published))
    after = own.pids
    assert after.keys() == before.keys()
    assert {name for name in before if before[name] == after[name]} == {"redis"}
    assert own.is_ready()
    print(f"exchanged in {took_s:.1f} s, under {connects_per_s:.0f} connects and {events_per_s:.0f} events a second")
