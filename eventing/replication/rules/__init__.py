"""Pure rules of replication."""
