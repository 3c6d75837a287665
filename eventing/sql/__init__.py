"""Plumbing of the ORM: shared columns, locking, pages, identifiers, leases, the threads that run queries, answers that are remembered."""
