"""The DATABASES of Django's settings, made of HERALD_DATABASE_URL: SQLite in the data folder, or PostgreSQL with a pool."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from eventing.core.config import Config
from eventing.core.errors import ConfigError
from workers.schedule import FORWARDERS_PERIODIC, PERIODS_S

ENGINE = "eventing.sql.postgresql"
WORKER_SPARE = 2
"""Connections of a worker or forwarder beyond one for each thread: for what its tasks do side by side."""
KEPT_S = 60
"""Seconds that a thread of the forwarder keeps its connection to SQLite between periodic tasks: opening one costs as much as
the queries of most of them.
"""
CONNECT_S = 5  # bound: seconds to connect; the server counts as away
UNANSWERED_MS = 20_000  # bound: milliseconds that sent bytes stay unconfirmed; the connection counts as lost
ABANDONED_S = 10.0  # bound: seconds in which a transaction sends nothing; the server ends it, with the locks of a host that was cut off
OPTIONS = frozenset(
    {
        *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "channel_binding", "target_session_attrs"),
        *("application_name", "connect_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count"),
    }
)
"""Parameters that the query of an address may have besides `host`: names of libpq."""


def connections_max(config: Config, process: str) -> int:
    """Return the most connections to PostgreSQL of the process of this name; of a worker, of each process of its pool."""
    if process.startswith("worker"):
        return WORKER_SPARE + 1
    if process.startswith("forwarder"):
        return WORKER_SPARE + config.forwarders + len(FORWARDERS_PERIODIC if config.workers else PERIODS_S)
    return config.database_connections


def database_settings(config: Config, process: str) -> dict[str, Any]:
    """Return the entry of DATABASES. Raises ConfigError for an address that cannot be read."""
    if not config.database_url:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": config.data_path / "herald.sqlite3",
            "CONN_MAX_AGE": KEPT_S if process.startswith("forwarder") else 0,
            "OPTIONS": {
                # Readers never block the writer, writers queue, and a committed write survives a power cut.
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA busy_timeout=10000;",
                "transaction_mode": "IMMEDIATE",
                "timeout": 10,
            },
        }
    return {
        "ENGINE": ENGINE,
        **_place("HERALD_DATABASE_URL", config.database_url),
        "CONN_MAX_AGE": 0,
        "POOL": {"max_size": connections_max(config, process)},
        "ABANDONED_S": ABANDONED_S,
        "DIRECT": _place("HERALD_MIGRATION_DATABASE_URL", config.migration_database_url)
        if config.migration_database_url
        else {},
        "DISABLE_SERVER_SIDE_CURSORS": True,  # a pooler in transaction mode gives the next query another connection
    }


def _place(name: str, url: str) -> dict[str, Any]:
    """Return the members of DATABASES that name a server, a user and a database."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    host = query.pop("host", None)
    unknown = sorted(query.keys() - OPTIONS)
    if unknown:
        raise ConfigError(
            f"{name} has the parameter {unknown[0]!r}; the known ones are host, {', '.join(sorted(OPTIONS))}."
        )
    try:
        port = parts.port
    except ValueError:
        raise ConfigError(f"{name} has a port that is no number up to 65535.") from None
    return {
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host if host is not None else parts.hostname or "",
        "PORT": str(port or ""),
        "OPTIONS": {
            "connect_timeout": CONNECT_S,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": UNANSWERED_MS,
            **query,
        },
    }
