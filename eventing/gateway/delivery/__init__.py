"""Delivery of events from the log to readers: the hub, its channels, sessions and sinks."""
