"""Writes of reports: keyword-only functions, one transaction each."""
