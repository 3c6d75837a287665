"""The one door to Redis: connections, key names, presence."""
