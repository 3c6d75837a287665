"""Checks of the stores: Redis and its guarantees, the database."""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError

from eventing.core.config import Config
from eventing.core.events.ack_level import Ack
from eventing.core.redis_version import VERSION_MIN
from eventing.store.connection import Durability, durability
from eventing.store.errors import RedisError
from eventing.store.inspection import inspected
from portal.installation import run_command, server_command
from portal.supervisor import redis_server
from portal.supervisor.data_folder import is_locked
from portal.supervisor.diagnosis.findings import DiagnosisFinding, fail, ok, warn
from portal.supervisor.diagnosis.settings_table import masked_url
from portal.supervisor.errors import StartError
from portal.supervisor.preparation import database_state

_WANTED = ".".join(map(str, VERSION_MIN))


def redis_findings(config: Config) -> list[DiagnosisFinding]:
    """Check Redis: reachable, version, persistence, and the guarantee of each acknowledgement level."""
    embedded = not config.redis_url
    if embedded and not is_locked(config.data_path):
        return _embedded_stopped()
    where = "the embedded server" if embedded else masked_url(config.redis_url)
    try:
        info, append, _ = inspected(config.effective_redis_url)
    except ValueError as error:
        return [
            fail(
                "redis",
                f"HERALD_REDIS_URL cannot be read: {error}.",
                "Use redis://HOST:PORT/0 or unix:///path/of.sock.",
            )
        ]
    except (RedisError, OSError) as error:
        do = "Look at logs/redis.log in the data folder." if embedded else "Start it, or correct HERALD_REDIS_URL."
        return [fail("redis", f"Redis ({where}) does not answer: {error}.", do)]
    found = durability(info, append, config.redis_replicas)
    version = redis_server.server_version(info)
    if found.version < VERSION_MIN:
        return [fail("redis", f"Redis ({where}) is {version}; {_WANTED} or newer is needed.", "Update it.")]
    return [
        ok("redis", f"{version} ({where}), {int(info['used_memory']) / 1024**2:.0f} MiB in memory"),
        persistence_finding(info, append, found),
        *memory_findings(info),
        *acknowledgements(found),
        *replication(found, Ack.parse(config.ack_default)),
    ]


def acknowledgements(found: Durability) -> list[DiagnosisFinding]:
    """Return what each acknowledgement level guarantees on this Redis."""
    levels = [ok("ack accepted", "the event is in Redis's memory; a crash of Redis may lose it")]
    if found.always:
        levels[0] = ok("ack accepted", "as stored: this Redis fsyncs every write before it answers")
        levels.append(ok("ack stored", "the event is fsynced to disk: it survives a crash and a power cut"))
    elif found.waitaof:
        levels.append(
            ok("ack stored", "Herald waits for the fsync (WAITAOF): the event survives a power cut; up to 1 s slower")
        )
    else:
        levels.append(
            fail(
                "ack stored",
                "This Redis cannot promise it, so publishing with the default level is refused.",
                "Set appendonly yes and appendfsync always in its configuration, or use Redis 7.2 or newer with appendonly yes.",
            )
        )
    if found.replicas:
        levels.append(ok("ack replicated:n", f"n up to {found.replicas}: stored, and held by n replicas of this Redis"))
    else:
        levels.append(
            ok("ack replicated:n", "refused: this Redis has no replicas (attach some to a Redis of your own to use it)")
        )
    return levels


def replication(found: Durability, default: Ack) -> list[DiagnosisFinding]:
    """Return what is to be known where the server has replicas, or is to have some."""
    findings: list[DiagnosisFinding] = []
    if found.replicas < found.replicas_known:
        findings.append(
            warn(
                "replicas",
                f"{found.replicas} of {found.replicas_known} replicas are connected: publishing at replicated:all is refused.",
                "Start the others, or correct HERALD_REDIS_REPLICAS.",
            )
        )
    if found.replicas_known and not default.all:
        findings.append(
            warn(
                "ack default",
                f"This Redis has replicas, and events acknowledged as {default} may be lost when one of them takes its place.",
                "Set HERALD_ACK_DEFAULT=replicated:all and HERALD_REDIS_REPLICAS, or accept it (docs/what-survives-what.md).",
            )
        )
    return findings


def broker_findings(config: Config) -> list[DiagnosisFinding]:
    """Check that the broker of HERALD_BROKER_URL answers; nothing where the queues are in the domain's Redis."""
    if not config.broker_url:
        return []
    try:
        state, about = redis_server.broker_state(config)
    except StartError as error:
        return [fail("broker", str(error), "Correct HERALD_BROKER_URL.")]
    if state != "ready":
        return [
            warn("broker", "The broker at HERALD_BROKER_URL does not answer.", "Start it; forwarding waits for it.")
        ]
    return [ok("broker", f"answers, {about}")]


def database_finding(config: Config) -> DiagnosisFinding:
    """Check the database: reachable, and with the tables of this version."""
    if not config.database_url and not (config.data_path / "herald.sqlite3").exists():
        return ok("database", f"SQLite, not created yet ({run_command()} creates it)")
    try:
        state = database_state()
    except DatabaseError as error:
        do = "Check HERALD_DATABASE_URL and that the server runs." if config.database_url else "Check the data folder."
        return fail("database", f"The database does not answer: {' '.join(str(error).split())[:300]}.", do)
    if state.incompatible:
        return fail(
            "database",
            f"{state.vendor} was used by a newer Herald (it has {state.incompatible[-1]}).",
            "Start that version, or restore a backup.",
        )
    if state.pending:
        return warn(
            "database",
            f"{state.vendor}, {len(state.pending)} migrations are not applied yet.",
            f"{server_command()} migrate applies them."
            if config.migrate == "never"
            else f"{run_command()} applies them; or: {server_command()} migrate.",
        )
    if state.unknown:
        return ok("database", f"{state.vendor}, of a newer version that this one is compatible with")
    return ok("database", f"{state.vendor}, up to date")


def _embedded_stopped() -> list[DiagnosisFinding]:
    try:
        server = redis_server.find_server()
    except StartError as error:
        return [fail("redis", str(error), "Without Redis nothing runs.")]
    promised = Durability(version=server.version[:2], always=True, waitaof=False, replicas=0)
    return [
        ok("redis", f"not running; {run_command()} starts the embedded {server.version_text} ({server.path})"),
        *acknowledgements(promised),
    ]


def persistence_finding(info: dict[str, object], append: dict[str, str] | None, found: Durability) -> DiagnosisFinding:
    """Return what a server keeps of what it accepted."""
    if str(info.get("aof_last_write_status", "ok")) != "ok":
        return fail(
            "persistence",
            "Redis could not write its append-only file the last time.",
            "Look at its log; usually the disk is full.",
        )
    if found.always:
        return ok("persistence", "append-only file, fsync before every answer")
    if str(info.get("aof_enabled", 0)) == "1":
        policy = (append or {}).get("appendfsync", "unknown")
        return warn(
            "persistence",
            f"Append-only file, appendfsync {policy}: events that were only accepted may be lost in a crash.",
            "Set appendfsync always.",
        )
    return fail(
        "persistence",
        "Redis keeps no append-only file: a restart of Redis loses events.",
        "Set appendonly yes and appendfsync always.",
    )


def memory_findings(info: dict[str, Any]) -> list[DiagnosisFinding]:
    """Return the problem of a server that discards keys; nothing for one that refuses writes instead."""
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if int(info.get("maxmemory", 0)) and policy != "noeviction":
        return [
            fail(
                "redis memory",
                f"Redis evicts keys when its memory is full (maxmemory-policy {policy}), so histories would be lost.",
                "Set maxmemory-policy noeviction.",
            )
        ]
    return []
