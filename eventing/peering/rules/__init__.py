"""Rules of peering. Pure."""
