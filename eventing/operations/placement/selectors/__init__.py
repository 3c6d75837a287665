"""Reads of placement."""
