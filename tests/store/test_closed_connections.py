"""Connections that the server closed before something was sent: an error of the connection, after which commands are repeated."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import redis.exceptions
import uvloop

from demo.harness.servers import eventually
from eventing.store.bulk_connection import BulkConnection
from eventing.store.connection import async_client
from tests.store.redis_process import RedisProcess


async def closed(connection: Any) -> None:
    """Close a connection of redis-py as its server does."""
    transport = connection._writer.transport
    transport.abort()

    async def is_closed() -> bool:
        return "closed=True" in repr(transport)

    await eventually(is_closed)


async def bulk_connection(url: str) -> None:
    client = async_client(url)
    connection = BulkConnection(client)
    await connection.open()
    await closed(connection._connection)
    with pytest.raises(redis.exceptions.ConnectionError):
        await connection.ask([("PING",)], 10)
    assert await connection.ask([("PING",)], 10) == [b"PONG"], "it is opened again"
    connection.close()
    await client.aclose()


async def connection_of_the_pool(url: str) -> None:
    client = async_client(url)
    connection: Any = await client.connection_pool.get_connection()
    await closed(connection)
    packed = [b"PING\r\n"]

    async def send() -> None:
        connection._writer.writelines(packed)

    async def failed(error: BaseException) -> None:
        """Nothing."""

    with pytest.raises(redis.exceptions.ConnectionError):
        await connection.retry.call_with_retry(send, failed)
    await client.aclose()


def test_a_closed_bulk_connection_is_an_error_of_the_connection(own_redis: RedisProcess) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(bulk_connection(own_redis.url))


def test_a_closed_connection_of_redis_py_is_an_error_of_the_connection(own_redis: RedisProcess) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(connection_of_the_pool(own_redis.url))


@pytest.fixture
def own_redis(new_redis: Any) -> RedisProcess:
    """A single server, whatever the tests' data plane is."""
    made: RedisProcess = new_redis()
    return made
