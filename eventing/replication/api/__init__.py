"""REST views of replication. A view parses the request, makes one call and answers."""
