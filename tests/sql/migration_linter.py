"""Findings in migrations that would lock tables, or break the release before, which runs beside this one (docs/versions.md).

A migration that expands only adds: tables, columns that are nullable or have a `db_default`, indexes on tables of its own, and
indexes on other tables by a migration with `atomic = False`, which are built beside writers. One that contracts has a name that
ends in `_contract` and the attribute `unused_since`, the release that has stopped using what is taken away; it only takes away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.db import models
from django.db.migrations import Migration, operations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import NOT_PROVIDED

from eventing.sql.migrating import CONTRACT

BASELINE = {"eventing": 34, "portal": 2}
"""Number of the newest migration of each application that is older than the rule."""

_TAKES_AWAY = (operations.RemoveField, operations.DeleteModel, operations.RemoveIndex, operations.RemoveConstraint)
_RENAMES = (operations.RenameField, operations.RenameModel, operations.RenameIndex, operations.AlterModelTable)
_DANGEROUS_SQL = re.compile(
    r"\bDROP\s+(?:TABLE|COLUMN|CONSTRAINT|INDEX)|\bRENAME\b|\bSET\s+NOT\s+NULL|\bALTER\s+COLUMN\s+\S+\s+(?:SET\s+DATA\s+)?TYPE"
    r"|\bCREATE\s+(?:UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY)|\bTRUNCATE\b|\bLOCK\s+TABLE|\bVACUUM\s+FULL|\bCLUSTER\b",
    re.IGNORECASE,
)
MAKE_OPTIONAL = "give it null=True or a db_default: rows of the release before do not name it"


def migrations_findings(loader: MigrationLoader) -> list[str]:
    """Return the findings of all migrations that are newer than BASELINE."""
    found: list[str] = []
    for (app, name), migration in sorted(loader.disk_migrations.items()):
        if app in BASELINE and int(name[:4]) > BASELINE[app]:
            state = loader.project_state((app, name), at_end=False)
            found += [f"{app}.{name}: {finding}" for finding in migration_findings(migration, state)]
    return found


def migration_findings(migration: Migration, before: ProjectState) -> list[str]:
    """Return the findings of one migration, each with what to do.

    Args:
        before: the models as they are before it.
    """
    contracts = migration.name.endswith(CONTRACT)
    found = [*_frame_findings(migration, contracts)]
    state = before.clone()
    own = {
        one.name_lower for one in migration.operations if isinstance(one, operations.CreateModel)
    }  # no row of any release is in it
    for operation in migration.operations:
        for each in _flattened(operation):
            found += [
                f"{each.describe()}: {what}" for what in _operation_findings(each, migration, state, own, contracts)
            ]
        operation.state_forwards(migration.app_label, state)
    return found


def _frame_findings(migration: Migration, contracts: bool) -> Iterator[str]:
    if contracts and not getattr(migration, "unused_since", ""):
        yield "a migration that contracts states `unused_since`, the release that has stopped using what it takes away"
    if not migration.atomic and len(migration.operations) != 1:
        yield "a migration with atomic = False has one operation: after a failure of the second the first would be repeated"


def _flattened(operation: Operation) -> Iterator[Operation]:
    if isinstance(operation, operations.SeparateDatabaseAndState):
        yield from operation.database_operations
    else:
        yield operation


def _operation_findings(
    operation: Operation, migration: Migration, state: ProjectState, own: set[str], contracts: bool
) -> Iterator[str]:
    if isinstance(operation, _RENAMES):
        yield "the release before uses the former name; add a second one, write both, and drop the first a release later"
    elif isinstance(operation, _TAKES_AWAY):
        if not contracts:
            yield f"the release before may use it; drop it a release later, by a migration whose name ends in {CONTRACT}"
    elif isinstance(operation, operations.RunSQL):
        yield from _sql_findings(operation, contracts)
    elif contracts:
        yield "a migration that contracts only takes away; put this into one of its own"
    elif isinstance(operation, operations.AddField) and operation.model_name_lower not in own:
        yield from _column_findings(operation.field)
    elif isinstance(operation, operations.AlterField) and operation.model_name_lower not in own:
        fields = state.models[migration.app_label, operation.model_name_lower].fields
        yield from _altered_findings(fields[operation.name], operation.field)
    elif isinstance(operation, operations.AddIndex) and operation.model_name_lower not in own and migration.atomic:
        yield "writers of the table would wait for it; put it alone into a migration with atomic = False"
    elif isinstance(operation, operations.AddConstraint) and operation.model_name_lower not in own:
        yield "the table would be locked while its rows are checked, and the release before may write others; check in code"
    elif isinstance(operation, operations.AlterUniqueTogether | operations.AlterIndexTogether):
        yield "it locks the table; use an index by a migration with atomic = False"


def _column_findings(field: Any) -> Iterator[str]:
    if isinstance(field, models.ManyToManyField):
        return
    if not field.null and field.db_default is NOT_PROVIDED:
        yield MAKE_OPTIONAL
    if field.db_index or field.unique:
        yield "its index locks the table; add the column without one, and the index by a migration with atomic = False"


def _altered_findings(before: Any, after: Any) -> Iterator[str]:
    if before.null and not after.null:
        yield MAKE_OPTIONAL
    if before.get_internal_type() != after.get_internal_type():
        yield "the table would be written anew; add a column, write both, and drop the first a release later"
    shorter = after.max_length is not None and (before.max_length is None or after.max_length < before.max_length)
    if shorter and before.get_internal_type() == after.get_internal_type():
        yield "values of the release before may be longer"
    if (after.db_index and not before.db_index) or (after.unique and not before.unique):
        yield "its index locks the table; add the index by a migration with atomic = False"
    if before.db_default is not NOT_PROVIDED and after.db_default is NOT_PROVIDED and not after.null:
        yield MAKE_OPTIONAL


def _sql_findings(operation: operations.RunSQL, contracts: bool) -> Iterator[str]:
    statements = [operation.sql] if isinstance(operation.sql, str) else [str(one) for one in operation.sql or ()]
    if not contracts and any(_DANGEROUS_SQL.search(one) for one in statements):
        yield f"its SQL takes away, renames, or locks; only a migration whose name ends in {CONTRACT} may"
