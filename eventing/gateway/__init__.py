"""The gateway: the hot path between publishers and readers."""
