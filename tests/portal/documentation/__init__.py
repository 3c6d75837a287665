"""Tests of the documents that a domain shows."""
