"""Who asks, what they may, and how much."""
