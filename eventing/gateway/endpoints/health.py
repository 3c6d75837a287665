"""/livez: this process answers. /readyz: its dependencies are available, each part by name, with the reason where it is
not.

An unavailable part never causes a restart of a process: `/livez` depends on nothing. `/readyz` checks each part at most
once in KEPT_S and answers within ANSWER_S, however many probes there are: the database's cost does not grow with
probes, and no request waits for a check that hangs. A part that is available again is found by the next check; nothing
has to be reset.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from eventing.access.selectors.keys import is_prepared
from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.errors import ApplicationError
from eventing.gateway import http
from eventing.gateway.gateway import Gateway
from eventing.sql.read_only import is_read_only
from eventing.sql.threads import in_database
from eventing.store import presence
from eventing.store.errors import RedisError
from eventing.telemetry import metrics

KEPT_S = 0.25  # bound: seconds that an answer of `/readyz` is reused; the parts are checked again
# Probes commonly give up after 2 s.
ANSWER_S = 1.5  # bound: seconds of one check of `/readyz`; a part that has not answered counts as unavailable

OK = "ok"
SILENT = "does not answer"
READ_ONLY = "takes no writes: it is a standby, or was set read-only"
Check = Callable[[Gateway], Awaitable[str]]
log = logging.getLogger(__name__)


@per_process
def _database() -> ThreadPoolExecutor:
    """Thread of the check's own: a check that hangs must not hold a thread of requests."""
    return ThreadPoolExecutor(1, thread_name_prefix="health")


async def livez(gateway: Gateway, send: http.Send) -> None:
    """Answer 200 while the process runs its loop."""
    await http.answer_json(send, 200, {"status": OK}, [(b"cache-control", b"no-store")])


async def readyz(gateway: Gateway, send: http.Send) -> None:
    """Answer 200 if all of NEEDED are available, else 503; `checks` names the others, with the reason."""
    checks = await _checked(gateway)
    processes = _checks()[gateway].processes
    if gateway.stopping:
        checks = {**checks, "gateway": "is stopping"}
    ready = not gateway.stopping and all(checks.get(part, OK) == OK for part in NEEDED)
    body: dict[str, Any] = {"status": OK if ready else "unavailable", "checks": checks, "processes": processes}
    await http.answer_json(send, 200 if ready else 503, body, [(b"cache-control", b"no-store")])


async def _redis(gateway: Gateway) -> str:
    """Ask for what all hosts state of their processes."""
    _checks()[gateway].processes = await presence.processes_present(gateway.redis, time.time())
    return OK


async def _sql(gateway: Gateway) -> str:
    """Read a table of Herald: if the file of SQLite is missing, an empty one would be created and would appear healthy."""
    if not await in_database(is_prepared, threads=_database())():
        return "has no key of this domain: it is not the database that was prepared at the start"
    return READ_ONLY if await in_database(is_read_only, threads=_database())() else OK


def _present(child: str, sentence: str) -> Check:
    """Make the check whether a child of the supervisor has recently reported that it works."""

    async def check(gateway: Gateway) -> str:
        return OK if await presence.child_present(gateway.redis, child) else sentence

    return check


async def _stored(gateway: Gateway) -> str:
    durability = await gateway.durability.get()
    return OK if durability.stored else "this Redis does not provide the ack level 'stored'"


CHECKS: dict[str, Check] = {
    "redis": _redis,
    "database": _sql,
    "workers": _present("worker", "no Celery worker serves its queue"),
    "forwarder": _present("forwarder", "nothing serves the queue of forwarding"),
    "beat": _present("beat", "nothing begins the periodic tasks"),  # the schedule, once Celery's process of that name
    "deliverer": _present("deliverer", "nothing delivers to endpoints of subscribers"),
    "stored": _stored,
}
"""Each returns `ok` or a sentence for the operator; an exception, or no answer within ANSWER_S, is `does not answer`."""

NEEDED = ("redis", "database", "workers", "forwarder", "beat", "deliverer")
"""Checks without which the gateway is not ready; others are only reported."""

WORKERS = ("workers", "beat")
"""Checks of what a domain without workers does not have (HERALD_WORKERS=0)."""

PUSH = ("deliverer",)
"""The check of the process that a domain without push does not have (HERALD_PUSH=0)."""

IN_REDIS = ("workers", "forwarder", "beat", "deliverer", "stored")
"""Checks whose result is unknown while Redis is unreachable."""


class _Checks:
    """The newest result of each check, and checks in progress: one that hangs is not started a second time."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.processes: dict[str, int] = {}
        self.at = float("-inf")
        self.running: asyncio.Task[dict[str, str]] | None = None
        self.under_way: dict[str, asyncio.Task[str]] = {}


@per_process
def _checks() -> dict[Gateway, _Checks]:
    """By gateway: one, except in tests."""
    return {}


async def _checked(gateway: Gateway) -> dict[str, str]:
    """Return the result of each check, at most KEPT_S old."""
    state = _checks().setdefault(gateway, _Checks())
    if time.monotonic() - state.at < KEPT_S:
        return state.found
    if state.running is None:
        state.running = asyncio.get_running_loop().create_task(_check(gateway, state))
    return await asyncio.shield(state.running)


async def _check(gateway: Gateway, state: _Checks) -> dict[str, str]:
    try:
        loop = asyncio.get_running_loop()
        for name, check in _wanted().items():
            if name not in state.under_way:
                state.under_way[name] = loop.create_task(_one(check, gateway))
        asked = dict(state.under_way)
        await asyncio.wait(asked.values(), timeout=ANSWER_S)
        found = {name: task.result() if task.done() else SILENT for name, task in asked.items()}
        if found["redis"] != OK:
            found |= {name: "unknown while Redis is away" for name in IN_REDIS if name in found}
        state.found = found
        for name, task in asked.items():
            if task.done():
                del state.under_way[name]
            metrics.READY.labels(name).set(state.found[name] == OK)
        state.at = time.monotonic()
        return state.found
    finally:
        state.running = None


def _wanted() -> dict[str, Check]:
    """Return the checks of this domain."""
    left_out = (*(() if config().workers else WORKERS), *(() if config().push else PUSH))
    return {name: check for name, check in CHECKS.items() if name not in left_out}


async def _one(check: Check, gateway: Gateway) -> str:
    """Return the result of the check. The reason is never the error's own text: that may contain addresses and users."""
    try:
        return await check(gateway)
    except (RedisError, OSError, ApplicationError):
        return SILENT
    except Exception:
        log.exception("A check of /readyz failed")
        return "cannot be checked; see the gateway's log"
