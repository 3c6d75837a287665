"""Conduct of other domains in replication: observations for the scores of the overlay, and what follows from these here."""
