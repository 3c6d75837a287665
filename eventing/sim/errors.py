"""Errors of scenarios: what is wrong in a file that a user wrote."""

from __future__ import annotations


class ScenarioError(Exception):
    """A scenario cannot be run as it is written; the message states the place and the reason."""
