"""Writes of operation: keyword-only functions, one transaction each."""
