"""Writes of push: endpoints, what their owners do, what the deliverer found, dead letters."""
