"""Endpoints of the hot path: publish, pull, stream, WebSocket, health, metrics."""
