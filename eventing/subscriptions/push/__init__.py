"""Push: durable subscriptions whose events Herald sends to an endpoint of the subscriber."""
