"""The hot path: `server` (the HTTP and WebSocket adapter), `endpoints`, `delivery`, `admission`, `observation`."""
