"""kill -9 of deliverer, worker, gateway and Redis while events are published and delivered: nothing is lost, the order is
kept, and nothing is sent again that was acknowledged.

`PUSH_KILLS=50` has it kill as often; by default each is killed once.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import pytest

from demo.harness.servers import Domain, wait_for
from tests.subscriptions.push.conftest import SETTINGS
from tests.subscriptions.push.owner import Owner
from tests.subscriptions.push.receiver import Receiver

pytestmark = [pytest.mark.processes, pytest.mark.long]

VICTIMS = ("deliverer", "redis", "gateway", "worker")
KILLS = int(os.environ.get("PUSH_KILLS", len(VICTIMS)))
PACE_S = 0.004
GOES_ON = 50  # deliveries after which the next process is killed
TOGETHER = 5


class Publisher:
    """Publishes numbered events in order, each until it is answered; a repetition is recognised by its id."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.published = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(120)

    def _run(self) -> None:
        while not self._ended.is_set():
            numbers = range(self.published, self.published + TOGETHER)
            while not self._sent(numbers):
                time.sleep(0.05)
            self.published += TOGETHER
            time.sleep(PACE_S * TOGETHER)

    def _sent(self, numbers: range) -> bool:
        common = {"specversion": "1.0", "source": "/kills", "type": "t"}
        events = [{**common, "id": str(number), "data": number} for number in numbers]
        kind = {"Content-Type": "application/cloudevents-batch+json"}
        try:
            answer = self._owner.http.post(
                f"/api/v1/rps/{self._owner.rp}/events", content=json.dumps(events), headers=kind
            )
        except httpx.TransportError:
            return False
        assert answer.status_code in (201, 429, 500, 502, 503), answer.text
        return answer.status_code == 201


class Acknowledged:
    """What was acknowledged when so many deliveries had come: what comes later must lie behind it."""

    def __init__(self, owner: Owner, hook: str, receiver: Receiver, path: str) -> None:
        self._owner, self._hook, self._receiver, self._path = owner, hook, receiver, path
        self.seen: list[tuple[int, int]] = []

    def look(self) -> None:
        """Note the acknowledged offset, and then the number of deliveries."""
        try:
            cursor = str(self._owner.endpoint(self._hook)["cursor"])
        except (httpx.TransportError, AssertionError):  # it was killed
            return
        self.seen.append((len(self._receiver.data(self._path)), int(cursor.partition(":")[2].partition("~")[0])))

    def check(self, data: list[int]) -> None:
        """Check that nothing came that had been acknowledged before."""
        for count, offset in self.seen:
            assert all(number + 1 > offset for number in data[count:]), "an acknowledged event was sent again"


def in_order(data: list[int], published: int) -> None:
    """Check that all came, and that after each event the next one came, or one that came before: a repetition."""
    assert sorted(set(data)) == list(range(published)), "all came"
    furthest = -1
    for before, number in zip([-1, *data], data, strict=False):
        assert number == before + 1 or number <= furthest, f"{number} came after {before}"
        furthest = max(furthest, number)


@pytest.fixture
def struck(tmp_path: Path, prepared: Any) -> Iterator[Domain]:
    """A domain of this test's own."""
    with Domain(tmp_path / "var", seed=prepared.migrated, **SETTINGS) as running:
        yield running


def test_kills_under_load_lose_nothing_keep_the_order_and_repeat_only_what_was_not_acknowledged(
    struck: Domain, receiver: Receiver
) -> None:
    chance, owner = random.Random(17), Owner(struck)
    one = owner.hook(receiver.url("/one"))
    many = owner.hook(receiver.url("/many"), format="batch", batch=20)
    for hook in (one, many):
        owner.wait_state(hook, "active")
    looked = [Acknowledged(owner, hook, receiver, path) for hook, path in ((one, "/one"), (many, "/many"))]
    with Publisher(owner) as publisher:
        for kill in range(KILLS):
            before = [len(receiver.data(path)) for path in ("/one", "/many")]
            wait_for(
                lambda before=before: all(  # type: ignore[misc]
                    len(receiver.data(path)) > count + GOES_ON
                    for path, count in zip(("/one", "/many"), before, strict=True)
                ),
                60,
                about="deliveries go on",
            )
            time.sleep(chance.random() / 2)
            for each in looked:
                each.look()
            victim = VICTIMS[kill % len(VICTIMS)]
            struck.wait_replaced(victim, struck.kill(victim))
    wait_for(lambda: struck.is_ready(), about="all is up again")
    for path in ("/one", "/many"):
        wait_for(
            lambda path=path: len(set(receiver.data(path))) == publisher.published,  # type: ignore[misc]
            90,
            every_s=0.2,
            about="all came",
        )
    for each, path in zip(looked, ("/one", "/many"), strict=True):
        data = receiver.data(path)
        in_order(data, publisher.published)
        each.check(data)
        assert len(each.seen) >= KILLS - 1
