"""Views of placement."""
