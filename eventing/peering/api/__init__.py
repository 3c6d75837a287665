"""REST views of peers. A view parses the request, makes one call and answers."""
