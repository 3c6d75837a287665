"""/livez: this process answers. /readyz: everything that `make run` starts is up, with what is not yet named."""

from __future__ import annotations

from typing import Any

from django.db import connection
from redis.exceptions import RedisError

from eventing.core.errors import HeraldError
from eventing.edge import http
from eventing.edge.database import in_database
from eventing.edge.gateway import Gateway
from eventing.log.keys import WORKER_PRESENCE_KEY


async def livez(gateway: Gateway, send: http.Send) -> None:
    """200 while the process runs its loop."""
    await http.answer_json(send, 200, {"status": "ok"})


async def readyz(gateway: Gateway, send: http.Send) -> None:
    """200 when Redis, the database and the workers are there, else 503; `checks` says which is not."""
    checks = {"redis": "ok", "database": "ok", "workers": "ok"}
    try:
        durability = await gateway.durability()
        if not await gateway.redis.exists(WORKER_PRESENCE_KEY):
            checks["workers"] = "no Celery worker has done its rounds in the last seconds"
        checks["stored"] = "ok" if durability.stored else "this Redis cannot promise the ack level 'stored'"
    except (RedisError, OSError):
        checks["redis"] = "does not answer"
        checks["workers"] = "unknown while Redis is away"
    try:
        await in_database(_ask_database)()
    except HeraldError:
        checks["database"] = "does not answer"
    ready = all(checks[part] == "ok" for part in ("redis", "database", "workers"))
    body: dict[str, Any] = {"status": "ok" if ready else "unavailable", "checks": checks}
    await http.answer_json(send, 200 if ready else 503, body, [(b"cache-control", b"no-store")])


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
