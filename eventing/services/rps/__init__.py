"""Writes about rendezvous points: their replicas, leases, histories, durable subscriptions."""
