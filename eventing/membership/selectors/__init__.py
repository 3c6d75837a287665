"""Reads of membership."""
