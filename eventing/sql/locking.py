"""Locks, with the differences between the two databases.

SQLite has one writer at a time: its transactions begin IMMEDIATE (portal/settings.py), so rows that one has read cannot
change before it commits. PostgreSQL has many; there a row is locked by SELECT FOR UPDATE, and matters of the whole
domain (quotas, names) by an advisory lock.
"""

from __future__ import annotations

from typing import TypeVar

from django.db import connection
from django.db.models import Model, QuerySet

_DOMAIN_LOCK = 0x48455241  # arbitrary; no other user of the database may take it. "HERA"
_AUDIT_LOCK = 0x48455242
_PRINCIPAL_LOCKS = 0x48455241

Row = TypeVar("Row", bound=Model)


def lock_domain() -> None:
    """Serialise admission against quotas and the assignment of names, until the transaction ends."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_DOMAIN_LOCK])


def abandoned_after(after_s: float) -> None:
    """Have PostgreSQL end the present transaction, and its locks, when nothing is sent in it for so long; its next query then raises OperationalError.

    It keeps the locks of a host that was cut off until TCP gives up, a quarter of an hour or hours. Transactions that do not call this have the bound of
    their connection (portal/database.py: ABANDONED_S). Without effect on SQLite, whose users are on one machine.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{after_s:g}s'")


def lock_audit() -> None:
    """Serialise the writing of audit entries, until the transaction ends. Taken after all other locks, so it cannot deadlock."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_AUDIT_LOCK])


def lock_principal(identity: str) -> None:
    """Serialise admission against this principal's quotas, until the transaction ends.

    Taken before rows are locked. Two identities may share a lock (it is made from a hash); then one of them waits.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # Two 32-bit keys are a key space of their own, disjoint from the locks above.
            cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_PRINCIPAL_LOCKS, identity])


def locked_batch(rows: QuerySet[Row], size: int) -> list[Row]:
    """Lock and return at most `size` of `rows`; rows locked by another transaction are skipped."""
    skip_locked = connection.features.has_select_for_update_skip_locked
    return list(rows.select_for_update(skip_locked=skip_locked)[:size])
