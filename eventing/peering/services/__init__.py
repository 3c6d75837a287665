"""Writes of peering: keyword-only functions, one transaction each."""
