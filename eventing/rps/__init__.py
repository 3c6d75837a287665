"""Rendezvous points: descriptors, quotas, policies, histories, and their administrative events."""
