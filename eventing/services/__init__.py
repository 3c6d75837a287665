"""Writes: keyword-only functions, one transaction each; what follows in the data plane goes through the outbox."""
