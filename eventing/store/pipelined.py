"""Many commands in one round trip, for forwarding and receiving, which query every rendezvous point of a request.

redis-py's pipeline packs, checks and reads each command by itself, and sends them in small pieces. Here commands are
packed by hiredis and sent at once (measured: 6 instead of 12 µs of CPU for a script with ten arguments). Connections,
retries and their counting are the client's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hiredis
import redis
from redis.exceptions import ResponseError

_pack: Any = hiredis.pack_command  # the stub allows only tuples of one member


def evalsha_all(client: redis.Redis, sha: str, arguments: Sequence[Sequence[Any]]) -> list[Any]:
    """Run the script of that digest with each of the arguments, as `commands_all` does."""
    return commands_all(client, [("EVALSHA", sha, *each) for each in arguments])


def commands_all(client: redis.Redis, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return Redis' answers to these commands, in order; Redis' errors are among them.

    Raises redis.RedisError when there is no connection or it breaks; then some commands may have run.
    """
    packed = b"".join([_pack(command) for command in commands])
    connection: Any = client.connection_pool.get_connection()

    def ask() -> list[Any]:
        connection.send_packed_command([packed])
        return [_answer(connection) for _ in commands]

    try:
        found: list[Any] = connection.retry.call_with_retry(ask, lambda _: connection.disconnect())
    except BaseException:
        connection.disconnect()  # unread answers may be on their way
        raise
    finally:
        client.connection_pool.release(connection)
    return found


def _answer(connection: Any) -> Any:
    try:
        return connection.read_response()
    except ResponseError as error:
        return error
