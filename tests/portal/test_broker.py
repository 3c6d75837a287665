"""The connection of Celery's processes to Redis: what outlives the loss of a connection, on a Redis of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portal import broker
from portal.celery import app, broker_url
from tests.store.redis_process import RedisProcess


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisProcess]:
    process = RedisProcess(tmp_path / "redis")
    process.start()
    yield process
    process.kill()


def connection(redis: RedisProcess) -> Any:
    """A connection as workers have it."""
    return app.connection_for_read(broker_url(redis.url))


def test_celery_uses_these_channels_whatever_the_form_of_the_url() -> None:
    for url in (
        "redis://127.0.0.1:6379/0",
        "rediss://127.0.0.1/0?ssl_cert_reqs=required",
        "redis+socket:///tmp/none.sock",
    ):
        made = app.connection_for_write(url)
        assert isinstance(made, broker.BrokerConnection)
        assert made.get_transport_cls() is broker.Transport


@pytest.mark.parametrize("end", ["ack", "reject", "requeue"])
def test_a_task_that_ends_after_its_connection_was_lost_ends_no_worker(redis: RedisProcess, end: str) -> None:
    with connection(redis) as made:
        queue = made.SimpleQueue("tasks")
        queue.put("one")
        message = queue.get(timeout=30)
        redis.kill()
        made.collect(socket_timeout=1.0)
        made.close()
    getattr(message, end)()


def test_other_uses_of_a_lost_channel_are_connection_errors(redis: RedisProcess) -> None:
    made = connection(redis)
    channel = made.channel()
    redis.kill()
    made.collect(socket_timeout=1.0)
    made.close()
    with pytest.raises(made.connection_errors):
        channel.queue_declare("tasks")


def test_redis_is_tried_again_after_pauses_that_stay_short(redis: RedisProcess) -> None:
    redis.kill()
    pauses_s: list[float] = []

    def failed(_: Exception, pause_s: float) -> None:
        pauses_s.append(pause_s)
        if len(pauses_s) == 7:
            redis.start()

    with connection(redis) as made:
        made.ensure_connection(failed)
        assert made.connected
    assert pauses_s[0] <= broker.RETRY_S
    assert max(pauses_s) == broker.RETRY_S_MAX
