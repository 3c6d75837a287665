"""State of the running domain as seen from this machine: processes, queues, Redis, database, versions."""

from __future__ import annotations

import platform
import time
from contextlib import suppress
from importlib import metadata
from typing import Any

import django
import psutil
from django.conf import settings
from django.db import DatabaseError, connection

from eventing.core.config import Config
from eventing.store.errors import RedisError
from eventing.store.forward_queue import forwards_queued
from eventing.store.inspection import inspected
from portal.queues import BrokerAway, waiting
from portal.supervisor import redis_server
from portal.supervisor.data_folder import is_locked, read_table
from portal.supervisor.diagnosis.settings_table import masked_url
from workers.schedule import FORWARD_QUEUE

SAME_START_S = 1.0
"""A pid alone is reused by the system; with its start time it names one process."""

PACKAGES = ("django", "djangorestframework", "uvicorn", "celery", "redis", "psycopg")


def document(config: Config) -> dict[str, Any]:
    """Return {"at": seconds since 1970, "state", "processes", "queues", "redis", "database"}; an unavailable store is
    {"problem"}."""
    return {
        "at": time.time(),
        "state": str(read_table(config.data_path).get("state", "")) if is_locked(config.data_path) else "",
        "processes": processes(config),
        **_of_redis(config),
        "database": _of_database(config),
    }


def versions() -> list[tuple[str, str]]:
    """Return names and versions of Herald and its runtime."""
    found = [("Herald", str(settings.SPECTACULAR_SETTINGS["VERSION"])), ("Python", platform.python_version())]
    found.append(("Django", django.get_version()))
    for name in PACKAGES[1:]:
        with suppress(metadata.PackageNotFoundError):
            found.append((name, metadata.version(name)))
    return [*found, ("System", f"{platform.system()} {platform.release()}")]


def processes(config: Config) -> list[dict[str, Any]]:
    """Return the processes started by the supervisor of this data folder: {"name", "pid", "alive", "since", "cpu_s",
    "rss_bytes", "threads"}.

    Where gateways run without it (another supervisor, containers) there is no table, and the list is empty.
    """
    table = read_table(config.data_path) if is_locked(config.data_path) else {}
    named = {"supervisor": table.get("supervisor"), **(table.get("processes") or {})}
    return [_process(name, identity) for name, identity in named.items() if isinstance(identity, dict)]


def _process(name: str, identity: dict[str, Any]) -> dict[str, Any]:
    pid, started = identity.get("pid"), identity.get("started")
    found: dict[str, Any] = {"name": name, "pid": pid, "alive": False}
    with suppress(psutil.Error, TypeError, ValueError):
        process = psutil.Process(int(pid or 0))
        with process.oneshot():
            if abs(process.create_time() - float(started or 0)) >= SAME_START_S:
                return found
            times = process.cpu_times()
            found |= {
                "alive": process.status() != psutil.STATUS_ZOMBIE,
                "since": process.create_time(),
                "cpu_s": times.user + times.system,
                "rss_bytes": process.memory_info().rss,
                "threads": process.num_threads(),
            }
    return found


def _of_redis(config: Config) -> dict[str, Any]:
    where = masked_url(config.redis_url) if config.redis_url else "embedded"
    from portal.celery import app as celery  # Celery costs 0.1 s to import, and few gateways are ever asked

    served = ((celery.conf.task_default_queue, "worker"), (FORWARD_QUEUE, "forwarder"))
    hashes = []
    if not config.broker_url:
        hashes.append(f"{celery.conf.broker_transport_options['global_keyprefix']}unacked")
    try:
        info, _, taken = inspected(config.effective_redis_url, (), hashes)
    except ValueError:
        return {"redis": {"where": where, "problem": "HERALD_REDIS_URL cannot be read."}, "queues": []}
    except (RedisError, OSError):
        return {"redis": {"where": where, "problem": "Redis does not answer."}, "queues": []}
    queues = []
    with suppress(BrokerAway, RedisError):
        queues = [{"name": name, "by": by, "waiting": _waiting(name, config)} for name, by in served]
        queues += [{"name": "with a worker", "by": "", "waiting": count} for count in taken]
    shown = {
        "where": where,
        "version": redis_server.server_version(info),
        "up_s": int(info.get("uptime_in_seconds", 0)),
        "used_bytes": int(info.get("used_memory", 0)),
        "peak_bytes": int(info.get("used_memory_peak", 0)),
        "most_bytes": int(info.get("maxmemory", 0)) or None,
        "clients": int(info.get("connected_clients", 0)),
        "ops_s": int(info.get("instantaneous_ops_per_sec", 0)),
        "keys": sum(
            int(each.get("keys", 0)) for name, each in info.items() if name.startswith("db") and isinstance(each, dict)
        ),
        "append_only": str(info.get("aof_enabled", 0)) == "1",
        "last_write": str(info.get("aof_last_write_status", "ok")),
    }
    return {"redis": shown, "queues": queues}


def _waiting(queue: str, config: Config) -> int:
    """Count what waits for the worker or the forwarder. Raises BrokerAway, RedisError."""
    return forwards_queued() if queue == FORWARD_QUEUE and config.is_one_process else waiting(queue)


def _of_database(config: Config) -> dict[str, Any]:
    where = masked_url(config.database_url) if config.database_url else str(connection.settings_dict.get("NAME", ""))
    shown: dict[str, Any] = {"where": where, "kind": connection.vendor}
    try:
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute(
                    "SELECT sqlite_version(), page_count * page_size FROM pragma_page_count(), pragma_page_size()"
                )
            else:
                cursor.execute("SELECT current_setting('server_version'), pg_database_size(current_database())")
            version, size = cursor.fetchone()
    except DatabaseError:
        return {**shown, "problem": "The database does not answer."}
    return {**shown, "version": str(version), "bytes": int(size)}
