"""Readers are moved by advice between three real domains, again and again, while events are published at all of them."""

from __future__ import annotations

import time
from collections import Counter

import herald.best_server
import pytest
from herald import Client, Gap, HeraldError, Move
from herald.best_server import ASKS

from demo.harness.network import Network
from demo.harness.servers import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.long]
READERS = 10
_MOVE = """
from datetime import timedelta
from django.utils import timezone
from eventing.replication.services.reader_moves import readers_move
readers_move(rp="{rp}", share=1.0, to=["{to}"], spread_s=2.0, until=timezone.now() + timedelta(seconds=600), reason="test")
"""
_END = """
from eventing.replication.services.reader_moves import reader_moves, readers_move_end
for move in reader_moves(): readers_move_end(move=move.id)
"""


class Program:
    """A program that reads the RP, and publishes to it."""

    def __init__(self, network: Network, rp: str, number: int) -> None:
        self.ids: list[str] = []
        self.moves: list[Move] = []
        self.error: HeraldError | None = None
        self._rp = rp
        token = {network[name].url: network[name].token(subject=f"reader{number}") for name in "abc"}
        self._client = Client(network["a"].url, token=token, on_move=self.moves.append)
        self._background = network.background
        self._background.spawn(self._read())

    def publish(self, id: str) -> None:
        self._background.run(self._publish(id))

    def close(self) -> None:
        self._background.run(self._client.aclose())

    async def _publish(self, id: str) -> None:
        await self._client.publish(self._rp, {}, id=id, source="/program", timeout_s=60.0)

    async def _read(self) -> None:
        try:
            async for item in self._client.subscribe(self._rp, from_="earliest"):
                assert not isinstance(item, Gap), item
                self.ids.append(item.id)
        except HeraldError as error:
            self.error = error


def in_domain(network: Network, name: str, script: str) -> None:
    """Run a script as a process of the domain, as another part of it calls the service."""
    done = network[name].manage("shell", "-v", "0", "-c", script)
    assert done.returncode == 0, done.stderr


@pytest.mark.timeout(900)
@pytest.mark.parametrize("moves", [20, pytest.param(120, marks=pytest.mark.soak)])
def test_live_moves_lose_and_double_nothing(network: Network, monkeypatch: pytest.MonkeyPatch, moves: int) -> None:
    """Each domain asks all readers to go on at the next: honest clients would stop after two, so their memory is short here."""
    monkeypatch.setattr(herald.best_server, "MEMORY_S", 0.5)
    rp = network.replicated_rp("a", "b", "c")
    programs = [Program(network, rp, number) for number in range(READERS)]
    published = network.publish(rp, "b", 3)
    for name, to in zip("abc", "bca", strict=True):
        in_domain(network, name, _MOVE.format(rp=rp, to=network[to].url))
    deadline = time.monotonic() + 600.0
    while sum(move.reason == ASKS for program in programs for move in program.moves) < moves:
        assert time.monotonic() < deadline, [len(program.moves) for program in programs]
        assert not any(program.error for program in programs), [program.error for program in programs]
        for number, name in enumerate("abc"):
            published += network.publish(rp, name, 1)
            published.append(f"program-{len(published)}")
            programs[number].publish(published[-1])
    for name in "abc":
        in_domain(network, name, _END)
    network.converged(rp)
    for program in programs:
        wait_for(lambda program=program: set(published) <= set(program.ids), 120.0, about="all events")  # type: ignore[misc]
        assert [id for id, count in Counter(program.ids).items() if count > 1] == []
        assert program.error is None
        program.close()


@pytest.mark.timeout(900)
@pytest.mark.long
def test_a_domain_with_all_readers_spreads_them_by_itself_and_stays_within_its_bound(network: Network) -> None:
    """All 120 begin at one of three domains, which asks the others and moves the excess: to at most 1.25 times a third of them."""
    rp = network.replicated_rp("a", "b", "c")
    began = time.monotonic()
    programs = [Program(network, rp, number) for number in range(120)]

    def here() -> int:
        return len(programs) - sum(len(program.moves) > 0 for program in programs)

    try:
        wait_for(lambda: here() <= 1.25 * len(programs) / 3, 300.0, about="spread readers")
        print(f"{here()} of {len(programs)} readers are left after {time.monotonic() - began:.0f} s")
        published = network.publish(rp, "b", 3)
        for program in programs:
            wait_for(lambda program=program: set(published) <= set(program.ids), 120.0, about="all events")  # type: ignore[misc]
            assert len(program.ids) == len(set(program.ids))
            assert program.error is None
        sent = sum(move.reason == ASKS for program in programs for move in program.moves)
        assert sent <= len(programs), "nobody is sent to and fro"
    finally:
        for program in programs:
            program.close()
