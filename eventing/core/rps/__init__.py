"""Rendezvous points: their descriptors, leases, replicas, and who delivers a shared subscription. Pure."""
