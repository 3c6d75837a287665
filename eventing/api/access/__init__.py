"""Addresses about access: tokens, keys, policies, limits, revocations, the audit."""
