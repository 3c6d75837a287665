"""Seals of runs, their chain and its heads. Pure."""
