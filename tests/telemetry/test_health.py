"""/livez and /readyz: each part by name, away and back, within two seconds whatever hangs, and cheap however many ask."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from demo.harness.servers import wait_for
from tests.gateway.server import PLAIN, LiveGateway, Prepared

pytestmark = pytest.mark.processes

WITHIN_S = 20.0  # a second or two on a machine that does nothing else


@pytest.fixture(scope="module")
def health(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    with LiveGateway(tmp_path_factory.mktemp("health") / "var", prepared) as running:
        yield running


def checks(live_gateway: LiveGateway) -> dict[str, str]:
    """What /readyz says; it says it in time."""
    began = time.monotonic()
    answer = httpx.get(f"{live_gateway.url()}/readyz", **PLAIN)
    assert time.monotonic() - began < WITHIN_S
    assert answer.headers["cache-control"] == "no-store"
    said: dict[str, Any] = answer.json()
    assert answer.status_code == (200 if said["status"] == "ok" else 503)
    assert httpx.get(f"{live_gateway.url()}/livez", **PLAIN).status_code == 200, (
        "a process is not ended for what it needs"
    )
    found: dict[str, str] = said["checks"]
    return found


def says(live_gateway: LiveGateway, part: str, what: str) -> bool:
    return checks(live_gateway)[part] == what


def test_each_part_is_named_with_its_reason(health: LiveGateway) -> None:
    wait_for(lambda: says(health, "redis", "ok") and says(health, "database", "ok"))
    assert checks(health)["workers"].startswith("no Celery worker")


def test_redis_that_hangs_is_away_in_time_and_back_by_itself(health: LiveGateway) -> None:
    health.pause_redis(True)
    try:
        wait_for(lambda: says(health, "redis", "does not answer"))
        assert checks(health)["workers"] == "unknown while Redis is away"
        assert checks(health)["database"] == "ok"
    finally:
        health.pause_redis(False)
    wait_for(lambda: says(health, "redis", "ok"))


def test_redis_that_is_gone_and_comes_again(health: LiveGateway) -> None:
    health.kill_redis()
    wait_for(lambda: says(health, "redis", "does not answer"))
    health.start_redis()
    wait_for(lambda: says(health, "redis", "ok"))


def test_a_database_that_is_gone_and_comes_again(health: LiveGateway) -> None:
    database = health.data_dir / "herald.sqlite3"
    aside = database.with_suffix(".aside")
    database.rename(aside)
    wait_for(lambda: checks(health)["database"] != "ok")
    said = checks(health)
    assert said["redis"] == "ok"
    assert str(health.data_dir) not in json.dumps(said), "no address of ours"
    aside.replace(database)
    wait_for(lambda: says(health, "database", "ok"))


def test_a_thousand_probes_are_few_questions_to_redis(health: LiveGateway) -> None:
    wait_for(lambda: says(health, "redis", "ok"))
    with health.redis as redis, httpx.Client(**PLAIN) as http, ThreadPoolExecutor(8) as many:
        asked = redis.info("commandstats")["cmdstat_ping"]["calls"]
        began = time.monotonic()
        answers = list(many.map(lambda _: http.get(f"{health.url()}/readyz").status_code, range(300)))
        took_s = time.monotonic() - began
        assert set(answers) == {503}, "no worker runs here"
        more = redis.info("commandstats")["cmdstat_ping"]["calls"] - asked
    assert more <= 2 + took_s / 0.25
