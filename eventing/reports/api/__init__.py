"""REST views of reports. A view parses the request, makes one call and answers."""
