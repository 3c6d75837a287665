"""New migrations neither lock tables for long nor break the release before; the linter finds those that would."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.migrations import Migration, operations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState, ProjectState

from tests.sql.migration_linter import BASELINE, migration_findings, migrations_findings

KEY: tuple[str, models.Field[Any, Any]] = ("id", models.BigAutoField(primary_key=True))
COUNT = models.IntegerField(null=True)
INDEX = models.Index(fields=["count"], name="row_by_count")


def before() -> ProjectState:
    """A table `row` of the release before."""
    state = ProjectState()
    fields = [KEY, ("count", COUNT), ("text", models.CharField(max_length=20))]
    state.add_model(ModelState("eventing", "Row", fields))
    return state


def findings(*made: Operation, name: str = "0099_more", atomic: bool = True, unused_since: str = "") -> list[str]:
    migration: Any = Migration(name, "eventing")
    migration.operations = list(made)
    migration.atomic = atomic
    if unused_since:
        migration.unused_since = unused_since
    return migration_findings(migration, before())


def test_the_migrations_of_herald_pass() -> None:
    assert migrations_findings(MigrationLoader(None)) == []


def test_migrations_that_are_older_than_the_rule_are_listed_and_exist() -> None:
    numbers = {(app, int(name[:4])) for app, name in MigrationLoader(None).disk_migrations if app in BASELINE}
    assert {(app, newest) for app, newest in BASELINE.items()} <= numbers


@pytest.mark.parametrize(
    ("operation", "finding"),
    [
        (operations.RemoveField("row", "count"), "_contract"),
        (operations.DeleteModel("Row"), "_contract"),
        (operations.RenameField("row", "count", "number"), "former name"),
        (operations.RenameModel("Row", "Line"), "former name"),
        (operations.AlterModelTable("row", "line"), "former name"),
        (operations.AddField("row", "more", models.IntegerField()), "db_default"),
        (operations.AddField("row", "more", models.IntegerField(default=0)), "db_default"),
        (operations.AddField("row", "more", models.IntegerField(null=True, db_index=True)), "atomic = False"),
        (operations.AddField("row", "more", models.IntegerField(null=True, unique=True)), "atomic = False"),
        (operations.AlterField("row", "count", models.IntegerField()), "db_default"),
        (operations.AlterField("row", "count", models.BigIntegerField(null=True)), "written anew"),
        (operations.AlterField("row", "text", models.CharField(max_length=10)), "longer"),
        (operations.AddIndex("row", INDEX), "atomic = False"),
        (operations.AddConstraint("row", models.UniqueConstraint(fields=["count"], name="one")), "locked"),
        (operations.RunSQL("ALTER TABLE eventing_row DROP COLUMN count"), "takes away"),
        (operations.RunSQL(["ALTER TABLE x ALTER COLUMN y SET NOT NULL"]), "takes away"),
        (operations.RunSQL("CREATE INDEX a ON b (c)"), "takes away"),
        (operations.SeparateDatabaseAndState([operations.RemoveField("row", "count")]), "_contract"),
    ],
)
def test_what_locks_or_breaks_is_found(operation: Operation, finding: str) -> None:
    assert finding in " ".join(findings(operation))


@pytest.mark.parametrize(
    "operation",
    [
        operations.AddField("row", "more", models.IntegerField(null=True)),
        operations.AddField("row", "more", models.IntegerField(db_default=0)),
        operations.AddField("row", "more", ArrayField(models.IntegerField(), null=True)),
        operations.AlterField("row", "text", models.CharField(max_length=40)),
        operations.CreateModel("Other", [KEY, ("count", models.IntegerField())], options={"indexes": [INDEX]}),
        operations.RunSQL("CREATE INDEX CONCURRENTLY a ON b (c)"),
        operations.RunPython(operations.RunPython.noop),
    ],
)
def test_what_only_adds_passes(operation: Operation) -> None:
    assert findings(operation) == []


def test_a_new_table_may_have_what_others_may_not() -> None:
    made = operations.CreateModel("Other", [KEY])
    added = operations.AddField("other", "count", models.IntegerField(default=0, db_index=True))
    assert findings(made, added, operations.AddIndex("other", INDEX)) == []


def test_an_index_on_a_table_in_use_is_alone_in_a_migration_without_a_transaction() -> None:
    assert findings(operations.AddIndex("row", INDEX), atomic=False) == []
    two = operations.AddIndex("row", INDEX), operations.AddField("row", "more", models.IntegerField(null=True))
    assert "one operation" in findings(*two, atomic=False)[0]


def test_what_contracts_is_named_so_says_since_when_and_only_takes_away() -> None:
    dropped, added = (
        operations.RemoveField("row", "count"),
        operations.AddField("row", "b", models.IntegerField(null=True)),
    )
    assert findings(dropped, name="0099_count_contract", unused_since="1.2") == []
    assert "unused_since" in findings(dropped, name="0099_count_contract")[0]
    assert "only takes away" in findings(dropped, added, name="0099_count_contract", unused_since="1.2")[0]
