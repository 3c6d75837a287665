"""Reads of replication."""
