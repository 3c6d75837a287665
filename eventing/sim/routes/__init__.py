"""Measurements of plans of routes on graphs drawn by seed: the evaluator against counting, plans against long searches, local decisions."""
