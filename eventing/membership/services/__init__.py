"""Writes of membership."""
