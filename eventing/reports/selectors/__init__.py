"""Queries about report runs, and about their output files."""
