"""All access to Redis apart from the log's: connections, key names, presence."""
