"""Placement: where replicas of this domain's RPs are held, decided from load, readers and capacities
(docs/federation/placement.md).
"""
