"""Regions: links between domains that take part in the same RPs and are no peers."""
