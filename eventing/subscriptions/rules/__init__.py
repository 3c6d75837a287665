"""Rules of durable subscriptions. Pure."""
