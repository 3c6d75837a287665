"""The servers of RPs are looked up together, however many readers ask at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from eventing.core.errors import Unavailable
from eventing.gateway.delivery import redirects
from eventing.gateway.delivery.redirects import READ_AT_ONCE, Redirects
from eventing.replication.rules.ranking import ReplicaServer


class Database:
    """Stands where SQL is: keeps which RPs were read together."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads: list[list[str]] = []
        self.away = False
        monkeypatch.setattr(redirects, "in_database", lambda _selector: self.read)

    async def read(self, rps: Sequence[str]) -> dict[str, list[ReplicaServer]]:
        self.reads.append(list(rps))
        await asyncio.sleep(0)
        if self.away:
            raise Unavailable("away")
        return {rp: [ReplicaServer("b.test", f"https://b.test/{rp}", 1000)] for rp in rps}


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    return Database(monkeypatch)


async def test_the_servers_of_many_rps_are_read_together(database: Database) -> None:
    found = Redirects("a.test")
    wanted = [f"rp{number}" for number in range(READ_AT_ONCE * 2 + 10)]
    await asyncio.gather(*map(found.looked_up, wanted), *map(found.looked_up, wanted))
    assert [len(read) for read in database.reads] == [READ_AT_ONCE, READ_AT_ONCE, 10]
    assert [found.known(rp, "reader") for rp in wanted] == [[f"https://b.test/{rp}"] for rp in wanted]
    await found.looked_up(wanted[0])
    assert len(database.reads) == 3, "it is known"


async def test_readers_are_answered_without_servers_where_these_cannot_be_read(database: Database) -> None:
    found = Redirects("a.test")
    database.away = True
    await asyncio.gather(found.looked_up("rp1"), found.looked_up("rp2"))
    assert found.known("rp1", "reader") == []
    database.away = False
    await found.looked_up("rp1")
    assert found.known("rp1", "reader") == ["https://b.test/rp1"]


async def test_what_is_looked_up_anew_is_read_after_the_call(database: Database) -> None:
    found = Redirects("a.test")
    first = asyncio.create_task(found.looked_up("rp"))
    await asyncio.sleep(0)
    await found.looked_up_anew("rp")
    await first
    assert database.reads == [["rp"], ["rp"]]
