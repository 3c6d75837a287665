"""Backups of a domain on PostgreSQL: where the tests run on one (HERALD_DATABASE_URL; .ci/run does so)."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from demo.harness.servers import Domain
from tests.portal.supervisor.backup.test_backup import done, refused

URL = os.environ.get("HERALD_DATABASE_URL", "")
pytestmark = [
    pytest.mark.sql,
    pytest.mark.skipif(not URL, reason="no PostgreSQL: set HERALD_DATABASE_URL to one that may make databases"),
]


@contextlib.contextmanager
def connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url.replace("postgres://", "postgresql://"), autocommit=True) as connection:
        yield connection


@pytest.fixture
def databases() -> Iterator[list[str]]:
    """Addresses of two empty databases."""
    names = [f"herald_backup_{secrets.token_hex(4)}" for _ in range(2)]
    with connected(URL) as server:
        for name in names:
            server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield [
            re.sub(r"(?<=/)[^/?]*(?=\?|$)", name, URL, count=1) if "?" not in URL else _named(name) for name in names
        ]
        for name in names:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _named(name: str) -> str:
    address, _, query = URL.partition("?")
    return f"{address.rpartition('/')[0]}/{name}?{query}"


def rows(url: str) -> dict[str, list[Any]]:
    """All rows of all tables, as text."""
    with connected(url) as database:
        tables = database.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
        return {
            name: sorted(str(row) for row in database.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(name))))
            for (name,) in tables
            if name != "django_migrations"
        }


def test_the_rows_of_a_domain_are_restored_into_another_database(tmp_path: Path, databases: list[str]) -> None:
    first, second = databases
    domain = Domain(tmp_path / "a", database_url=first)
    assert domain.manage("migrate").returncode == 0
    assert domain.manage("token_create", "--admin").returncode == 0
    assert domain.manage("login_link").returncode == 0
    (domain.data_dir / "redis").mkdir(exist_ok=True)
    (domain.data_dir / "logs").mkdir(exist_ok=True)
    file = str(tmp_path / "a.tar")
    made = done(domain, "backup", file)
    assert made["rows"] > 100

    other = Domain(tmp_path / "b", database_url=second)
    assert done(other, "restore", file)["rows"] == made["rows"]
    assert rows(second) == rows(first)
    assert other.manage("migrate", "--check").returncode == 0
    assert other.manage("token_create").returncode == 0, "the key is there"
    with connected(second) as database, pytest.raises(psycopg.IntegrityError):
        database.execute("TRUNCATE eventing_auditentry")  # the audit is guarded there, too

    third = Domain(tmp_path / "c", database_url=second)
    assert "the database at HERALD_DATABASE_URL" in refused(third, "restore", file)
    done(third, "restore", "--replace", file)
    assert rows(second) == rows(first), "replaced, not added"

    lite = Domain(tmp_path / "d")
    assert "set HERALD_DATABASE_URL to an empty PostgreSQL database" in refused(lite, "restore", file)
