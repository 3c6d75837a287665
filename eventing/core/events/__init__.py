"""Events, and where a reader is among them: CloudEvents, feeds, vectors, cursors, history bounds. Pure."""
