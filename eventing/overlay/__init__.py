"""Protocol machines of the overlay, pure: broadcast, takeover, exchange."""
