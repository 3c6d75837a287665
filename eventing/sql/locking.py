"""What the two databases do differently about locks, in one place.

SQLite has one writer at a time: its transactions begin IMMEDIATE (portal/settings.py), so whatever one reads cannot
change before it commits. PostgreSQL has many; there a row is locked by SELECT FOR UPDATE, and what concerns the domain
as a whole (quotas, names) by an advisory lock.
"""

from __future__ import annotations

from typing import TypeVar

from django.db import connection
from django.db.models import Model, QuerySet

_DOMAIN_LOCK = 0x48455241  # any number that other users of the database do not take; "HERA"
_AUDIT_LOCK = 0x48455242
_PRINCIPAL_LOCKS = 0x48455241

Row = TypeVar("Row", bound=Model)


def lock_domain() -> None:
    """Be the only one to admit against quotas and to give names, until the transaction ends."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_DOMAIN_LOCK])


def lock_audit() -> None:
    """Be the only one to add audit entries, until the transaction ends. Taken after all other locks, so it closes no circle."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_AUDIT_LOCK])


def lock_principal(identity: str) -> None:
    """Be the only one to admit against this principal's quotas, until the transaction ends.

    Taken before rows are locked. Two identities may share a lock (it is a hash's), which only makes one wait.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # Two 32-bit keys are a key space of their own: they never meet the locks above.
            cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_PRINCIPAL_LOCKS, identity])


def locked_batch(rows: QuerySet[Row], size: int) -> list[Row]:
    """At most `size` of `rows`, locked; those that somebody else has locked are left to them."""
    skip_locked = connection.features.has_select_for_update_skip_locked
    return list(rows.select_for_update(skip_locked=skip_locked)[:size])
