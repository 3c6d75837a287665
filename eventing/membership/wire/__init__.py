"""Messages of the overlay between domains: encoding, requests and their handlers."""
