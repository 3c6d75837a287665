"""Clients move between the replicas of a rendezvous point: two real domains, a subscriber and a publisher of the library.

Nothing is lost and nothing is doubled for a subscriber, whatever happens to the domain that it reads at.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Collection

import herald.rollover
import pytest
from herald import Client, Gap, HeraldError
from herald.rollover import Move, host

from demo.harness.background import Background
from demo.harness.network import Network
from demo.harness.servers import wait_for

pytestmark = pytest.mark.processes
RECEIVED_WITHIN_S = 60.0


SHAPE = [("a", "b")]


@pytest.fixture(autouse=True)
def frequent_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test does not wait for a rare probe."""
    monkeypatch.setattr(herald.rollover, "PROBE_S_MAX", 1.0)


class Mover:
    """A program that reads a rendezvous point at the first of some domains, or else at the others; and may publish."""

    def __init__(self, network: Network, rp: str, at: str = "ab", *, tokens: str = "ab") -> None:
        self.ids: list[str] = []
        self.gaps: list[Gap] = []
        self.moves: list[Move] = []
        self.error: Exception | None = None
        self._rp = rp
        self._background: Background = network.background
        self._numbers = itertools.count(1)
        token = {network[name].url: network[name].token(subject="mover") for name in tokens}
        self._begun = asyncio.Event()
        urls = [network[name].url for name in at]
        self._client = Client(urls, token=token, on_move=self.moves.append)
        self._task = self._background.spawn(self._read())
        self._background.run(self._begun.wait())

    def publish(self, count: int) -> list[str]:
        """Publish events one after the other; their ids."""
        return [self._background.run(self._publish()) for _ in range(count)]

    def has(self, ids: Collection[str]) -> None:
        """Wait until all of these have come; fails if one came twice or was told to be lost."""
        deadline = time.monotonic() + RECEIVED_WITHIN_S
        while missing := set(ids) - set(self.ids):
            assert self.error is None, self.error
            assert time.monotonic() < deadline, f"{sorted(missing)[:10]} did not come; {[str(m) for m in self.moves]}"
            time.sleep(0.02)
        doubled = [id for id, count in Counter(self.ids).items() if count > 1]
        assert not doubled, f"came twice: {doubled}"
        assert not self.gaps, [str(gap) for gap in self.gaps]

    def is_at(self, url: str) -> None:
        """Wait until it goes on at this domain."""
        wait_for(lambda: bool(self.moves) and self.moves[-1].new == url, 60.0, about=f"the client goes on at {url}")

    def close(self) -> None:
        self._background.run(self._client.aclose())

    async def _publish(self) -> str:
        id = f"mover-{next(self._numbers)}"
        await self._client.publish(self._rp, {"by": "mover"}, id=id, source="/mover", timeout_s=30.0)
        return id

    async def _read(self) -> None:
        try:
            subscription = await self._client.subscribe(self._rp, from_="earliest")
            self._begun.set()
            async for item in subscription:
                if isinstance(item, Gap):
                    self.gaps.append(item)
                else:
                    self.ids.append(item.id)
        except HeraldError as error:
            self.error = error
            self._begun.set()


@pytest.mark.long
def test_moves_there_and_back_while_the_domains_cannot_reach_each_other_lose_and_double_nothing(
    network: Network,
) -> None:
    rp = network.replicated_rp("a", "b")
    mover = Mover(network, rp)
    mover.has(mover.publish(3) + network.publish(rp, "b", 3))
    network.converged(rp)
    network.partition("a", "b")
    mover.has(network.publish(rp, "a", 10))  # b does not have these
    there = network.publish(rp, "b", 10)  # nor a these
    assert not set(there) & set(mover.ids)
    with network["a"].away("gateway"):
        mover.is_at(network["b"].url)
        mover.has(there + network.publish(rp, "b", 5))
    mover.is_at(network["a"].url)
    assert mover.moves[-1].back
    mover.has(network.publish(rp, "a", 5))
    mine = mover.publish(5)  # at either: readers and publishers return one after the other
    network.heal()
    network.converged(rp)
    mover.has(network.published[rp] + mine + network.publish(rp, "a", 2) + network.publish(rp, "b", 2))
    mover.close()


def test_what_a_publisher_s_retry_doubled_in_the_log_reaches_a_subscriber_once(network: Network) -> None:
    rp = network.replicated_rp("a", "b")
    mover = Mover(network, rp, "b")
    twice = {"specversion": "1.0", "id": "again", "source": "/retry", "type": "t"}
    network.partition("a", "b")
    for name in "ab":  # as when the answer of the first one was lost
        answer = network[name].admin.post(
            f"/api/v1/rps/{rp}/events", json=twice, headers={"content-type": "application/cloudevents+json"}
        )
        assert answer.status_code == 201, answer.text
    network.heal()
    network.converged(rp)
    assert sum(network.vector(rp, "b").values()) == 2, "both are in the log"
    mover.has(["again", *network.publish(rp, "a", 3)])
    mover.close()


def test_a_replica_that_ends_sends_its_reader_and_publisher_to_another(network: Network) -> None:
    rp = network.replicated_rp("a", "b")
    mover = Mover(network, rp, "b")  # a is learned
    mover.has(mover.publish(3) + network.publish(rp, "a", 3))
    network.converged(rp)
    network["b"].ask("DELETE", f"/api/v1/replicas/{rp}")
    mover.has(network.publish(rp, "a", 3))
    mover.is_at(network["a"].url)
    assert "does not serve it now" in str(mover.moves[-1])
    mover.has(mover.publish(3))
    assert mover.error is None
    mover.close()


def test_a_token_that_one_domain_refuses_is_no_end_while_another_takes_its_own(network: Network) -> None:
    rp = network.create_rp("b", policy=[{"issuer": "domain", "allow": ["publish", "subscribe", "history"]}])
    mover = Mover(network, rp, "ab")  # a does not know the rendezvous point at all
    mover.has(mover.publish(3) + network.publish(rp, "b", 3))
    assert mover.moves[-1].new == network["b"].url
    mover.close()


def test_a_reader_and_a_publisher_go_on_at_another_domain_when_theirs_is_killed(network: Network) -> None:
    rp = network.replicated_rp("a", "b")
    mover = Mover(network, rp)
    mover.has(mover.publish(10) + network.publish(rp, "b", 10))
    network.converged(rp)
    network.kill("a")
    mover.has(mover.publish(10) + network.publish(rp, "b", 10))
    assert str(mover.moves[-1]) == f"{host(network['a'].url)} does not answer; going on at {host(network['b'].url)}"
    mover.close()
