"""CloudEvents, and positions of readers among them: feeds, version vectors, cursors, history bounds. Pure."""
