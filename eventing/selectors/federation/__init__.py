"""Reads about other domains: peers, their documents, seals, proofs, misbehaviour."""
