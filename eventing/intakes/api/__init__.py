"""Views of intakes."""
