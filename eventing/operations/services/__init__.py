"""Writes of the subject: keyword-only functions, one transaction each."""
