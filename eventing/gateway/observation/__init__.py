"""What is seen of a gateway: metrics, spans, its sessions."""
