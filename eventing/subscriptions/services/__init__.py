"""Writes of durable subscriptions: keyword-only functions, one transaction each."""
