"""Reads of rendezvous points: descriptors, replicas, leases, durable subscriptions."""
