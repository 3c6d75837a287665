"""REST views of membership."""
