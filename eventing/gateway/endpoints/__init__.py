"""What is served at which path: publish, pull, stream, WebSocket, health, metrics."""
