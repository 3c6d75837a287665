"""Writes of intakes."""
