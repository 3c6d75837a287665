"""HTTP and WebSocket adapter on uvicorn: protocol classes, request heads, fast path, client frames."""
