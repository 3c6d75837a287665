"""/readyz needs everything that `make run` starts: worker, forwarder and schedule say that they are there, each by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from kombu.asynchronous.timer import Timer
from redis.exceptions import ConnectionError as RedisAway

from demo.harness.servers import wait_for
from eventing.store import keys
from portal.supervisor import presence
from portal.supervisor.presence import Presence, present_while_attached
from tests.gateway.server import PLAIN, LiveGateway

CHILDREN = {"worker": "workers", "forwarder": "forwarder", "beat": "beat", "deliverer": "deliverer"}


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory, prepared: Any) -> Iterator[LiveGateway]:
    """A gateway of its own: others look at the shared one's /readyz while nobody is present."""
    with LiveGateway(tmp_path_factory.mktemp("presence") / "data", prepared) as made:
        yield made


def ready(live_gateway: LiveGateway) -> tuple[int, dict[str, str]]:
    answer = httpx.get(f"{live_gateway.url()}/readyz", **PLAIN)
    return answer.status_code, answer.json()["checks"]


@pytest.mark.parametrize("away", CHILDREN)
def test_a_domain_of_which_one_process_is_away_is_not_ready_and_is_again_when_it_is_back(
    quiet: LiveGateway, away: str
) -> None:
    with quiet.redis as redis:
        for child in CHILDREN:
            redis.set(keys.presence_key(child), "1", ex=60)
        wait_for(lambda: ready(quiet)[0] == 200, about="all are there")
        redis.delete(keys.presence_key(away))
        wait_for(lambda: ready(quiet)[0] == 503, about=f"{away} is away")
        checks = ready(quiet)[1]
        assert [name for name, said in checks.items() if said != "ok"] == [CHILDREN[away]]
        redis.set(keys.presence_key(away), "1", ex=60)
        wait_for(lambda: ready(quiet)[0] == 200, about=f"{away} is back")


def test_each_process_of_each_host_counts_for_itself(quiet: LiveGateway) -> None:
    now = time.time()
    with quiet.redis as redis:
        members = {"worker a 1": now + 30, "worker b 1": now + 30, "worker c 1": now - 1, "forwarder a 2": now + 30}
        redis.zadd(keys.PROCESSES_KEY, members)
        wait_for(lambda: counted(quiet) == {"forwarder": 1, "worker": 2}, about="those that are present are counted")


def counted(live_gateway: LiveGateway) -> dict[str, int]:
    return dict(httpx.get(f"{live_gateway.url()}/readyz", **PLAIN).json()["processes"])


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said in Redis."""
    noted: list[str] = []
    monkeypatch.setattr(presence, "present", noted.append)
    return noted


def test_a_worker_is_there_while_it_is_attached_to_its_queue_and_the_schedule_while_it_is_looked_at(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = SimpleNamespace(timer=Timer(), steps=[])
    step = present_while_attached("forwarder")(consumer)
    schedule = Presence("beat")
    assert said == [], "nothing is said before there is a sign"
    step.start(consumer)
    assert said == ["forwarder"]
    ((_, _, entry),) = consumer.timer.queue
    monkeypatch.setattr(presence, "EVERY_S", 0.0)  # long enough after the first sign
    entry()
    assert said == ["forwarder", "forwarder"]
    step.stop(consumer)
    assert entry.canceled, "without a connection it is not there"
    monkeypatch.undo()
    monkeypatch.setattr(presence, "present", said.append)
    for _ in range(20):
        schedule.sign()
    assert said[2:] == ["beat"], "it is looked at often, and says so once"


def test_an_outage_of_redis_is_survived_and_the_next_sign_is_heard(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(child: str) -> None:
        raise RedisAway

    one = Presence("worker")
    noted: Callable[[str], None] = said.append
    monkeypatch.setattr(presence, "present", away)
    one.sign()
    monkeypatch.setattr(presence, "present", noted)
    one.sign()
    assert said == ["worker"]
