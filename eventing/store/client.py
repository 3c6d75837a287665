"""This process's synchronous connections to Redis, scripts, and many commands in one round trip; only for `store` and
`log`.

Forwarding and receiving query every rendezvous point of a request. redis-py's pipeline packs, checks and reads each
command by itself, and sends them in small pieces. `commands_all` packs them by hiredis and sends them at once
(measured: 6 instead of 12 µs of CPU for a script with ten arguments). Connections, retries and their counting are the
client's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hiredis
import redis
from redis.exceptions import NoScriptError, ResponseError

from eventing.conf import config
from eventing.core.config import Config
from eventing.core.container import memoized
from eventing.store.connection import sync_client
from eventing.store.routed import RoutedRedis
from eventing.store.routed_async import RoutedAsyncRedis
from eventing.store.spreading import Batch


@dataclass(frozen=True, slots=True)
class Script:
    """Text of a script and the SHA-1 under which Redis holds it.

    Attributes:
        sharded: the form for a cluster, which publishes notifications on sharded channels; None for a script that publishes none.
    """

    text: str
    sha: str
    sharded: Script | None = None


def script_of(text: str) -> Script:
    """Make the script with this text."""
    sharded = script_of(text.replace("'PUBLISH'", "'SPUBLISH'")) if "'PUBLISH'" in text else None
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), sharded)


def form_for(client: Any, script: Script) -> Script:
    """Return the form of a script for a client's data plane: a cluster sends what PUBLISH carries to each of its nodes, and SPUBLISH
    to those of one slot (Redis 7 or newer)."""
    if script.sharded is None or not isinstance(client, RoutedRedis | RoutedAsyncRedis):
        return script
    return script.sharded if client.plane.sharded else script


def script_read(folder: Path, *names: str) -> Script:
    """Read the script that these files form, one after the other.

    Args:
        folder: folder of the files.
        names: the files' names without `.lua`; functions that the last file needs are in the others.
    """
    return script_of("".join((folder / f"{name}.lua").read_text() for name in names))


@memoized(maxsize=4)
def _client(settings: Config) -> redis.Redis:
    return sync_client(settings.effective_redis_url)


def client() -> redis.Redis:
    """Return this process's synchronous Redis client."""
    return _client(config())


def run_script(script: Script, args: Sequence[Any]) -> Any:
    """Run `script` with its key count, keys and arguments; load it if the server lacks it."""
    script = form_for(client(), script)
    try:
        return client().evalsha(script.sha, *args)
    except NoScriptError:
        return client().eval(script.text, *args)


def run_script_all(script: Script, arguments: Sequence[Sequence[Any]]) -> list[Any]:
    """Run `script` with each of the arguments, in order, in one round trip; errors are returned among the answers."""
    if not arguments:
        return []
    script = form_for(client(), script)
    answers = evalsha_all(client(), script.sha, arguments)
    missing = [at for at, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
    if missing:  # these did not run; those after them did, if somebody loaded the script meanwhile
        client().script_load(script.text)
        again = evalsha_all(client(), script.sha, [arguments[at] for at in missing])
        for at, answer in zip(missing, again, strict=True):
            answers[at] = answer
    return answers


_pack: Any = hiredis.pack_command  # the stub allows only tuples of one member


def evalsha_all(client: redis.Redis, sha: str, arguments: Sequence[Sequence[Any]]) -> list[Any]:
    """Run the script of that digest with each of the arguments, as `commands_all` does."""
    return commands_all(client, [("EVALSHA", sha, *each) for each in arguments])


def commands_all(client: redis.Redis, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return Redis' answers to these commands, in order; Redis' errors are among them.

    Raises redis.RedisError when there is no connection or it breaks; then some commands may have run.
    """
    if isinstance(client, RoutedRedis):

        def send(node: redis.Redis, batch: Batch) -> list[Any]:
            if not batch.asking:
                return commands_all(node, [commands[at] for at in batch.indexes])
            return commands_all(node, [part for at in batch.indexes for part in (("ASKING",), commands[at])])[1::2]

        return client.spread(commands, send)
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
