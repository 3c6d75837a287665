"""REST views of durable subscriptions. A view parses the request, makes one call and answers."""
