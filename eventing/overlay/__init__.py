"""Protocol machines of the overlay, pure: broadcast, dissemination, exchange, takeover; directory, links, liveness, gossip objects."""
