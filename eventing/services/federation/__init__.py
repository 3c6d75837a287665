"""Writes about other domains: peers, deliveries, seals, proofs, misbehaviour."""
