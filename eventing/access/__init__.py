"""Access: authorisation by policies and roles, tokens, keys, revocations, rates; `verification` of credentials."""
