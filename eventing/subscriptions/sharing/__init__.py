"""Shared durable subscriptions between their holders."""
