"""Descriptors are read together, kept, and forgotten when they change, whatever is under way at that moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from eventing.access.rules.policy import compile_policy
from eventing.core.errors import ApplicationError, NotFound, Unavailable
from eventing.core.events.ack_level import Ack
from eventing.core.events.history import HistoryBounds
from eventing.gateway.admission import access
from eventing.gateway.admission.access import Descriptors
from eventing.rps.rules.descriptor import Descriptor


class Database:
    """Stands where SQL is: counts the queries, answers when told, and knows RPs by number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.queries: list[list[str]] = []
        self.version = 1
        self.asked = asyncio.Event()
        self.answering = asyncio.Event()
        self.answering.set()
        self.error: ApplicationError | None = None
        monkeypatch.setattr(access, "in_database", lambda _selector: self.read)

    async def read(self, references: Sequence[str]) -> list[Any]:
        self.queries.append(list(references))
        self.asked.set()
        version = self.version  # as of the query, not of its answer
        await self.answering.wait()
        if self.error is not None:
            raise self.error
        return [self.row(reference, version) for reference in references]

    def row(self, reference: str, version: int) -> Any:
        if reference.startswith("no"):
            return NotFound("none")
        bounds = HistoryBounds(1, 1024, None)
        return Descriptor(reference, "ann", version, compile_policy([]), Ack(True, 0), bounds, float("inf"))


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    return Database(monkeypatch)


async def test_a_cold_start_asks_for_many_at_once(database: Database) -> None:
    descriptors = Descriptors()
    wanted = [f"rp{number}" for number in range(1200)]
    found = await asyncio.gather(*map(descriptors.get, wanted), *map(descriptors.get, wanted))
    assert [descriptor.id for descriptor in found] == wanted * 2
    assert sorted(reference for query in database.queries for reference in query) == sorted(wanted)
    assert len(database.queries) == 3
    assert await descriptors.get("rp7") is descriptors.peek("rp7")
    assert len(database.queries) == 3


async def test_what_is_forgotten_while_it_is_read_is_not_kept(database: Database) -> None:
    descriptors = Descriptors()
    database.answering.clear()
    early = asyncio.create_task(descriptors.get("rp"))
    await database.asked.wait()
    database.version = 2
    descriptors.forget("rp")
    late = asyncio.create_task(descriptors.get("rp"))
    await asyncio.sleep(0)
    database.answering.set()
    assert ((await early).version, (await late).version) == (1, 2)
    kept = descriptors.peek("rp")
    assert kept is not None
    assert kept.version == 2


async def test_what_is_forgotten_before_it_is_read_is_answered_to_all(database: Database) -> None:
    descriptors = Descriptors()
    database.answering.clear()
    first = asyncio.create_task(descriptors.get("rp0"))
    await database.asked.wait()
    waiting = [asyncio.create_task(descriptors.get("rp"))]
    await asyncio.sleep(0)
    descriptors.forget("")
    waiting.append(asyncio.create_task(descriptors.get("rp")))
    await asyncio.sleep(0)
    database.answering.set()
    async with asyncio.timeout(20):
        await first
        assert {(await one).version for one in waiting} == {1}
    assert descriptors.peek("rp") is not None


async def test_the_unknown_and_the_known_of_one_query_have_their_own_answers(database: Database) -> None:
    descriptors = Descriptors()
    known, unknown = await asyncio.gather(descriptors.get("rp"), descriptors.get("none"), return_exceptions=True)
    assert isinstance(known, Descriptor)
    assert isinstance(unknown, NotFound)


async def test_a_database_that_is_away_is_asked_again_next_time(database: Database) -> None:
    descriptors = Descriptors()
    database.error = Unavailable("away")
    with pytest.raises(Unavailable):
        await descriptors.get("rp")
    database.error = None
    assert (await descriptors.get("rp")).id == "rp"


async def test_what_is_in_use_is_read_again_before_it_ends_and_together(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "GATHER_S", 0.01)
    monkeypatch.setattr(access, "AGAIN_S", 0.1)
    descriptors = Descriptors()
    used, unused = [f"rp{number}" for number in range(100)], "rp-unused"
    await asyncio.gather(*map(descriptors.get, [*used, unused]))
    descriptors._known[unused].used_at -= access.USED_S
    database.version = 2
    async with asyncio.timeout(20):
        while [one for one in used if version_of(descriptors, one) == 1]:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.005)
    assert sorted(database.queries[1]) == sorted(used)
    assert descriptors.peek(unused) is None, "nobody asked for it"
    assert descriptors._references.keys() == set(used), "nothing is left of it"


def version_of(descriptors: Descriptors, reference: str) -> int:
    """The version that is cached, which nobody waits for; a look is a use."""
    kept = descriptors.peek(reference)
    assert kept is not None
    return kept.version


async def test_what_is_read_by_name_is_read_again_by_name_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "GATHER_S", 0.01)
    monkeypatch.setattr(access, "AGAIN_S", 0.05)
    row = database.row("rp", 1)
    monkeypatch.setattr(database, "row", lambda *_: row)
    descriptors = Descriptors()
    assert await descriptors.get("/name/") is descriptors.peek("/name/")
    async with asyncio.timeout(20):
        while len(database.queries) < 4:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.005)
    assert {one for query in database.queries for one in query} == {"/name/"}


async def test_a_database_that_is_away_when_something_is_read_again_is_no_matter_until_it_ends(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "GATHER_S", 0.01)
    monkeypatch.setattr(access, "AGAIN_S", 0.05)
    descriptors = Descriptors()
    await descriptors.get("rp")
    database.error = Unavailable("away")
    database.asked.clear()
    assert descriptors.peek("rp") is not None
    async with asyncio.timeout(20):
        await database.asked.wait()
        while descriptors._reading is not None:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0)
    assert descriptors.peek("rp") is not None


async def test_what_is_gone_when_it_is_read_again_is_known_no_more(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "GATHER_S", 0.01)
    monkeypatch.setattr(access, "AGAIN_S", 0.05)
    descriptors = Descriptors()
    await descriptors.get("rp")
    monkeypatch.setattr(database, "row", lambda *_: NotFound("none"))
    async with asyncio.timeout(20):
        while descriptors.peek("rp") is not None:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.005)
    with pytest.raises(NotFound):
        await descriptors.get("rp")
