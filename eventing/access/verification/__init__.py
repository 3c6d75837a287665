"""Verification of tokens of this domain, of foreign issuers, and of delegated ones."""
