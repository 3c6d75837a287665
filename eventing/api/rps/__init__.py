"""Addresses of rendezvous points, their replicas and durable subscriptions."""
