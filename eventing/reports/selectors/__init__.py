"""Reads of reports."""
