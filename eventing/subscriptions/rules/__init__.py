"""Rules of the subject. Pure."""
