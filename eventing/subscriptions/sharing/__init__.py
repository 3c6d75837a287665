"""Exchange of shared durable subscriptions between their holders."""
