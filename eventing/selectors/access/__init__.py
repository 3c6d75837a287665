"""Reads about access: the audit, keys, issuers, quotas, revocations."""
