"""Measurements of a simulation, each in a module of its own; `catalogue` imports them all."""
