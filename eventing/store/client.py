"""This process's synchronous connections to Redis, and scripts run on them; only for `store` and `log`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis
from redis.exceptions import NoScriptError

from eventing.conf import config
from eventing.core.config import Config
from eventing.core.container import memoized
from eventing.store.connection import sync_client
from eventing.store.pipelined import evalsha_all
from eventing.store.scripts import Script


@memoized(maxsize=4)
def _client(settings: Config) -> redis.Redis:
    return sync_client(settings.effective_redis_url)


def client() -> redis.Redis:
    """Return this process's synchronous Redis client."""
    return _client(config())


def run_script(script: Script, args: Sequence[Any]) -> Any:
    """Run `script` with its key count, keys and arguments; load it if the server lacks it."""
    try:
        return client().evalsha(script.sha, *args)
    except NoScriptError:
        return client().eval(script.text, *args)


def run_script_all(script: Script, arguments: Sequence[Sequence[Any]]) -> list[Any]:
    """Run `script` with each of the arguments, in order, in one round trip; errors are returned among the answers."""
    if not arguments:
        return []
    answers = evalsha_all(client(), script.sha, arguments)
    missing = [at for at, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
    if missing:  # no call ran: the server lacks the script
        client().script_load(script.text)
        again = evalsha_all(client(), script.sha, [arguments[at] for at in missing])
        for at, answer in zip(missing, again, strict=True):
            answers[at] = answer
    return answers
