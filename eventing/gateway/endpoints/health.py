"""/livez: this process answers. /readyz: what it needs is there, each part by name, with the reason where it is not.

A part that is away never makes a process be started anew: `/livez` depends on nothing. `/readyz` asks each part anew at
most once in KEPT_S and is done within ANSWER_S, however many ask: a probe costs the database nothing that grows with
probes, and one that hangs is waited for by nobody. What is back is found at the next look; nothing has to be reset.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakKeyDictionary

from redis.exceptions import RedisError

from eventing.access.selectors.keys import is_prepared
from eventing.core.errors import HeraldError
from eventing.gateway import http
from eventing.gateway.gateway import Gateway
from eventing.sql.threads import in_database
from eventing.store.keys import presence_key
from eventing.telemetry import metrics

KEPT_S = 0.25  # an answer that is younger is given again
ANSWER_S = 1.5  # after which what has not answered counts as away; probes commonly give up after 2 s

OK = "ok"
SILENT = "does not answer"
Check = Callable[[Gateway], Awaitable[str]]
log = logging.getLogger(__name__)
_database = ThreadPoolExecutor(1, thread_name_prefix="health")  # its own: a hung one must not take those of requests


async def livez(gateway: Gateway, send: http.Send) -> None:
    """200 while the process runs its loop."""
    await http.answer_json(send, 200, {"status": OK}, [(b"cache-control", b"no-store")])


async def readyz(gateway: Gateway, send: http.Send) -> None:
    """200 when all of NEEDED are there, else 503; `checks` says which is not, and why."""
    checks = await _looked_at(gateway)
    if gateway.stopping:
        checks = {**checks, "gateway": "is stopping"}
    ready = not gateway.stopping and all(checks[part] == OK for part in NEEDED)
    body: dict[str, Any] = {"status": OK if ready else "unavailable", "checks": checks}
    await http.answer_json(send, 200 if ready else 503, body, [(b"cache-control", b"no-store")])


async def _redis(gateway: Gateway) -> str:
    await gateway.redis.ping()
    return OK


async def _sql(gateway: Gateway) -> str:
    """A table of ours is read: of a file of SQLite that is gone, an empty one would be made and found well."""
    prepared = await in_database(is_prepared, threads=_database)()
    return OK if prepared else "has no key of this domain: it is not the database that was prepared at the start"


def _present(child: str, sentence: str) -> Check:
    """Whether a child of the supervisor has said lately that it does its part."""

    async def check(gateway: Gateway) -> str:
        return OK if await gateway.redis.exists(presence_key(child)) else sentence

    return check


async def _stored(gateway: Gateway) -> str:
    durability = await gateway.durability()
    return OK if durability.stored else "this Redis cannot promise the ack level 'stored'"


CHECKS: dict[str, Check] = {
    "redis": _redis,
    "database": _sql,
    "workers": _present("worker", "no Celery worker serves its queue"),
    "forwarder": _present("forwarder", "nothing serves the queue of what goes to peers"),
    "beat": _present("beat", "nothing sends the periodic tasks"),
    "stored": _stored,
}
"""Each answers `ok` or a sentence for the operator; what it raises or does not answer within ANSWER_S is `does not answer`."""

NEEDED = ("redis", "database", "workers", "forwarder", "beat")
"""Without these the gateway is not ready; what else is checked is told."""

IN_REDIS = ("workers", "forwarder", "beat", "stored")
"""Nobody knows of these while Redis is away."""


class _Looks:
    """The newest look at everything, and those under way: a check that hangs is not begun a second time."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.at = float("-inf")
        self.look: asyncio.Task[dict[str, str]] | None = None
        self.under_way: dict[str, asyncio.Task[str]] = {}


_looks: WeakKeyDictionary[Gateway, _Looks] = WeakKeyDictionary()


async def _looked_at(gateway: Gateway) -> dict[str, str]:
    """What each check says, as it was at most KEPT_S ago."""
    looks = _looks.setdefault(gateway, _Looks())
    if time.monotonic() - looks.at < KEPT_S:
        return looks.found
    if looks.look is None:
        looks.look = asyncio.get_running_loop().create_task(_look(gateway, looks))
    return await asyncio.shield(looks.look)


async def _look(gateway: Gateway, looks: _Looks) -> dict[str, str]:
    try:
        loop = asyncio.get_running_loop()
        for name, check in CHECKS.items():
            if name not in looks.under_way:
                looks.under_way[name] = loop.create_task(_one(check, gateway))
        asked = dict(looks.under_way)
        await asyncio.wait(asked.values(), timeout=ANSWER_S)
        found = {name: task.result() if task.done() else SILENT for name, task in asked.items()}
        if found["redis"] != OK:
            found |= dict.fromkeys(IN_REDIS, "unknown while Redis is away")
        looks.found = found
        for name, task in asked.items():
            if task.done():
                del looks.under_way[name]
            metrics.READY.labels(name).set(looks.found[name] == OK)
        looks.at = time.monotonic()
        return looks.found
    finally:
        looks.look = None


async def _one(check: Check, gateway: Gateway) -> str:
    """What the check says. The reason is never the error's own text: that may name addresses and users."""
    try:
        return await check(gateway)
    except (RedisError, OSError, HeraldError):
        return SILENT
    except Exception:
        log.exception("A check of /readyz failed")
        return "cannot be checked; the gateway's log says why"
