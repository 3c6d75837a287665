"""The audit's table, and the triggers that keep it append-only whoever writes SQL to the database.

A row can be deleted only if it is older than 30 days by the database's own clock and a purge's entry covers it
(`purged_through` of some row is at least its id): what is removed leaves a sealed trace. Nothing is ever updated.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations, models
from django.db.models import Q

SQLITE = (
    """
    CREATE TRIGGER audit_entry_update BEFORE UPDATE ON eventing_auditentry
    BEGIN SELECT RAISE(ABORT, 'audit entries are never changed'); END
    """,
    """
    CREATE TRIGGER audit_entry_delete BEFORE DELETE ON eventing_auditentry
    WHEN NOT (
        OLD.recorded_at < datetime('now', '-30 days')
        AND EXISTS (SELECT 1 FROM eventing_auditentry WHERE purged_through >= OLD.id)
    )
    BEGIN SELECT RAISE(ABORT, 'audit entries are removed by their retention only'); END
    """,
)
POSTGRESQL = (
    """
    CREATE FUNCTION audit_entry_keep() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN
            IF OLD.recorded_at < now() - interval '30 days'
                AND EXISTS (SELECT 1 FROM eventing_auditentry WHERE purged_through >= OLD.id)
            THEN
                RETURN OLD;
            END IF;
            RAISE EXCEPTION 'audit entries are removed by their retention only' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RAISE EXCEPTION 'audit entries are never changed' USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    """
    CREATE TRIGGER audit_entry_update BEFORE UPDATE ON eventing_auditentry
    FOR EACH ROW EXECUTE FUNCTION audit_entry_keep()
    """,
    """
    CREATE TRIGGER audit_entry_delete BEFORE DELETE ON eventing_auditentry
    FOR EACH ROW EXECUTE FUNCTION audit_entry_keep()
    """,
    """
    CREATE TRIGGER audit_entry_truncate BEFORE TRUNCATE ON eventing_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION audit_entry_keep()
    """,
)


def add_triggers(apps: Any, schema_editor: Any) -> None:
    """Make the database refuse what the model refuses."""
    for statement in POSTGRESQL if schema_editor.connection.vendor == "postgresql" else SQLITE:
        schema_editor.execute(statement)


def remove_triggers(apps: Any, schema_editor: Any) -> None:
    """Undo it. The triggers go with their table; PostgreSQL's function does not."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP FUNCTION audit_entry_keep() CASCADE")
    else:
        schema_editor.execute("DROP TRIGGER audit_entry_delete")
        schema_editor.execute("DROP TRIGGER audit_entry_update")


class Migration(migrations.Migration):
    dependencies: ClassVar = [("eventing", "0003_revocation")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("recorded_at", models.DateTimeField()),
                ("who", models.CharField(max_length=512)),
                ("issuer", models.CharField(blank=True, default="", max_length=255)),
                ("token_id", models.CharField(blank=True, default="", max_length=255)),
                ("via", models.CharField(max_length=32)),
                ("action", models.CharField(max_length=64)),
                ("on_kind", models.CharField(blank=True, default="", max_length=32)),
                ("on_id", models.CharField(blank=True, default="", max_length=255)),
                (
                    "outcome",
                    models.CharField(
                        choices=[("ok", "Ok"), ("refused", "Refused"), ("failed", "Failed")], max_length=8
                    ),
                ),
                ("problem", models.CharField(blank=True, default="", max_length=32)),
                ("reason", models.CharField(blank=True, default="", max_length=255)),
                ("count", models.BigIntegerField(default=1)),
                ("address", models.CharField(blank=True, default="", max_length=64)),
                ("request_id", models.CharField(blank=True, default="", max_length=64)),
                ("details", models.JSONField(default=dict)),
                ("purged_through", models.BigIntegerField(null=True)),
                ("previous", models.CharField(blank=True, max_length=73)),
                ("seal", models.CharField(max_length=73)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(outcome__in=["ok", "refused", "failed"]), name="audit_outcome_is_known"
                    ),
                    models.CheckConstraint(condition=Q(id__gte=1), name="audit_ids_count"),
                    models.CheckConstraint(condition=Q(count__gte=1), name="audit_counts_something"),
                ],
                "indexes": [
                    models.Index(fields=["recorded_at"], name="audit_by_time"),
                    models.Index(fields=["who", "id"], name="audit_by_who"),
                    models.Index(fields=["action", "id"], name="audit_by_action"),
                    models.Index(fields=["outcome", "id"], name="audit_by_outcome"),
                    models.Index(fields=["on_id", "id"], name="audit_by_object"),
                    models.Index(
                        fields=["purged_through"],
                        condition=Q(purged_through__isnull=False),
                        name="audit_purged_through",
                    ),
                ],
            },
        ),
        migrations.RunPython(add_triggers, remove_triggers),
    ]
