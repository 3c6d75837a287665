"""Writes of replication: keyword-only functions, one transaction each."""
