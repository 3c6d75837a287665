"""Writes about access: keys, tokens, policies, quotas, revocations, refusals."""
