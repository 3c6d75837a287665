"""Addresses about other domains: peers, deliveries, proofs, misbehaviour."""
