"""Who may do what: tokens, policies, rates, revocations, the chain of the audit. Pure."""
