"""Reads of peers, domain documents, keys and misbehaviour."""
