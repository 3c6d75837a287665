"""Reads of durable subscriptions."""
