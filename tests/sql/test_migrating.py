"""Migrations as an act of one process at a time, beside a running domain."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, models
from django.db.migrations.recorder import MigrationRecorder

from eventing.sql import migrating
from eventing.sql.migrating import (
    MigrationLockTimeout,
    direct_connection,
    migration_lock,
    repeated_while_in_use,
    schema_state,
    schema_unknown,
)

pytestmark = pytest.mark.usefixtures("stores")

EXPANDS, CONTRACTS = "9998_from_the_future", "9999_from_the_future_contract"


@pytest.fixture
def recorder() -> Any:
    """Records migrations of a newer release, and forgets them after the test."""
    made = MigrationRecorder(connection)
    yield made
    for name in (EXPANDS, CONTRACTS):
        made.record_unapplied("eventing", name)


def test_one_process_at_a_time_migrates_and_another_one_waits() -> None:
    order: list[str] = []
    inside, waits = threading.Event(), threading.Event()

    def first() -> None:
        with direct_connection(), migration_lock():
            inside.set()
            assert waits.wait(30)
            order.append("first")

    def second() -> None:
        assert inside.wait(30)
        with direct_connection(), migration_lock(waiting=waits.set):
            order.append("second")

    with ThreadPoolExecutor(2) as threads:
        for one in [threads.submit(first), threads.submit(second)]:
            one.result(60)
    assert order == ["first", "second"]


def test_who_waits_for_too_long_gives_up() -> None:
    with ThreadPoolExecutor(1) as threads, direct_connection(), migration_lock():

        def other() -> None:
            with direct_connection(), migration_lock(wait_s=0.2):
                pytest.fail("two hold the lock")

        with pytest.raises(MigrationLockTimeout):
            threads.submit(other).result(60)


def test_a_schema_that_a_newer_release_has_expanded_is_compatible(recorder: Any) -> None:
    assert schema_unknown().unknown == []
    recorder.record_applied("eventing", EXPANDS)
    assert schema_state().pending == []
    assert schema_unknown().unknown == [f"eventing.{EXPANDS}"]
    assert schema_unknown().incompatible == []
    call_command("migrate", verbosity=0)


def test_a_schema_that_a_newer_release_has_contracted_is_refused(recorder: Any) -> None:
    recorder.record_applied("eventing", CONTRACTS)
    assert schema_unknown().incompatible == schema_state().incompatible == [f"eventing.{CONTRACTS}"]
    with pytest.raises(CommandError, match=CONTRACTS):
        call_command("migrate", verbosity=0)


def test_a_migration_that_finds_its_table_in_use_fails_soon_and_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer, which others wait for")
    monkeypatch.setattr(migrating, "REPEAT_PAUSE_S", 0.1)
    tries, locked, tried = 0, threading.Event(), threading.Event()

    def user() -> None:
        with direct_connection(), connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(
                "SELECT count(*) FROM eventing_outboxentry"
            )  # holds a lock that a migration's is in conflict with
            locked.set()
            assert tried.wait(30)
            cursor.execute("ROLLBACK")

    def migrate() -> None:
        nonlocal tries
        tries += 1
        try:
            with connection.schema_editor(atomic=True) as editor:
                editor.execute("ALTER TABLE eventing_outboxentry ADD COLUMN more_for_a_test integer")
                editor.execute("ALTER TABLE eventing_outboxentry DROP COLUMN more_for_a_test")
        except OperationalError:
            tried.set()
            raise

    with ThreadPoolExecutor(1) as threads:
        using = threads.submit(user)
        assert locked.wait(30)
        began = time.monotonic()
        with direct_connection():
            repeated_while_in_use(migrate)
        using.result(30)
    assert tries >= 2
    assert time.monotonic() - began < 30


def test_an_index_of_a_migration_without_a_transaction_is_built_concurrently_and_one_left_invalid_is_replaced() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite builds no index concurrently")
    from eventing.outbox.models import OutboxEntry

    index = models.Index(fields=["created_at"], name="outbox_for_a_test")
    with direct_connection():
        with connection.cursor() as cursor:
            cursor.execute("CREATE INDEX outbox_for_a_test ON eventing_outboxentry (rp)")
            cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'outbox_for_a_test'::regclass")
        try:
            with connection.schema_editor(atomic=False) as editor:
                editor.add_index(OutboxEntry, index)
            with connection.cursor() as cursor:
                cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'outbox_for_a_test'")
                assert "(created_at)" in cursor.fetchone()[0]
        finally:
            with connection.schema_editor(atomic=False) as editor:
                editor.execute("DROP INDEX IF EXISTS outbox_for_a_test")


def test_the_lock_of_sqlite_is_a_file_beside_it() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has locks of its own")
    with migration_lock():
        assert Path(f"{connection.settings_dict['NAME']}.migrating").exists()
