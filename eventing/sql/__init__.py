"""Plumbing of the ORM: columns, locking, pages, identifiers, lease columns, the thread that runs queries."""
