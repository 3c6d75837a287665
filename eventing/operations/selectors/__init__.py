"""Reads of the subject."""
