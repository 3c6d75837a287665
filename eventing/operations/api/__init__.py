"""REST views of operation. A view parses the request, makes one call and answers."""
