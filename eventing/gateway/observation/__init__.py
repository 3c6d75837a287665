"""Observation of a gateway: metrics, spans, its sessions."""
