"""store/client.py: one script many times in one round trip, answered in order, whatever becomes of the connection."""

from __future__ import annotations

import pytest
import redis
from redis.exceptions import NoScriptError, ResponseError

from eventing.conf import config
from eventing.store.client import client as own_client
from eventing.store.client import evalsha_all, run_script_all, script_of
from eventing.store.connection import sync_client
from tests.store.homes import home_of, others_disconnected

COUNT = script_of(
    "if ARGV[1] == 'no' then return redis.error_reply('NO it is refused') end return redis.call('INCR', KEYS[1])"
)


@pytest.fixture
def client(redis_url: str) -> redis.Redis:
    found = own_client()
    found.flushdb()
    return found


def test_answers_come_in_order_and_errors_are_among_them(client: redis.Redis) -> None:
    client.script_load(COUNT.text)
    answers = evalsha_all(client, COUNT.sha, [[1, "a", said] for said in ("yes", "no", "yes")])
    assert [answers[0], answers[2]] == [1, 2]
    assert isinstance(answers[1], ResponseError)
    assert client.ping(), "the connection is in step"


def test_a_script_that_the_server_does_not_know_is_an_error_of_each(client: redis.Redis) -> None:
    client.script_flush()
    assert [type(one) for one in evalsha_all(client, COUNT.sha, [[1, "a", ""]] * 2)] == [NoScriptError] * 2
    assert run_script_all(COUNT, [[1, "a", ""]] * 3) == [1, 2, 3]


def test_more_than_the_sockets_hold_goes_both_ways(client: redis.Redis) -> None:
    echo = script_of("return ARGV[1]")
    client.script_load(echo.text)
    said = [bytes([at]) * 200_000 for at in range(40)]
    assert evalsha_all(client, echo.sha, [[0, one] for one in said]) == said


def test_a_connection_that_was_lost_is_made_anew(client: redis.Redis) -> None:
    client.script_load(COUNT.text)
    assert evalsha_all(client, COUNT.sha, [[1, "a", ""]]) == [1]
    with sync_client(config().effective_redis_url) as other:
        others_disconnected(other)
    assert evalsha_all(client, COUNT.sha, [[1, "a", ""]]) == [2]


def test_what_ends_the_wait_leaves_no_answers_behind(client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    client.script_load(COUNT.text)
    pool = home_of(client, "a").connection_pool
    connection = pool.get_connection()
    pool.release(connection)
    with monkeypatch.context() as interrupted:
        interrupted.setattr(connection, "read_response", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            evalsha_all(client, COUNT.sha, [[1, "a", ""]] * 3)
    assert client.get("a") == b"3", "the next answer is the next command's"


def _interrupt() -> None:
    raise KeyboardInterrupt
