"""The connection of Celery's processes to Redis: what outlives the loss of a connection, on a Redis of the test's own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from demo.harness.servers import free_port, wait_for
from eventing.core.brokers import broker_address
from portal import broker
from portal.celery import app, transport_options
from portal.supervisor import redis_server
from tests.store.redis_process import RedisProcess


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisProcess]:
    process = RedisProcess(tmp_path / "redis")
    process.start()
    yield process
    process.kill()


def connection(redis: RedisProcess) -> Any:
    """A connection as workers have it."""
    return app.connection_for_read(broker_address("HERALD_BROKER_URL", redis.url).url)


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


def test_tasks_pass_through_the_redis_that_sentinels_name(tmp_path: Path) -> None:
    program, port, watching = redis_server.find_server().path, free_port(), free_port()
    stated = tmp_path / "sentinel.conf"
    stated.write_text(f"port {watching}\nbind 127.0.0.1\ndir {tmp_path}\nsentinel monitor herald 127.0.0.1 {port} 1\n")
    commands = [
        [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)],
        [program, str(stated), "--sentinel"],
    ]
    with ExitStack() as stack:
        for command in commands:
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            stack.callback(process.terminate)
        address = broker_address("HERALD_BROKER_URL", f"sentinel://127.0.0.1:{watching}/herald")
        made = broker.BrokerConnection(address.url, transport_options=transport_options(address))
        stack.callback(made.close)
        assert made.get_transport_cls() is broker.SentinelTransport

        def connects() -> bool:
            try:
                made.ensure_connection(max_retries=1)
            except made.connection_errors:
                return False
            return True

        wait_for(connects, about="the Sentinel names the Redis")
        queue = made.SimpleQueue("tasks")
        queue.put("one")
        assert queue.get(timeout=30).payload == "one"
