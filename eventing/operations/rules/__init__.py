"""Rules of operation. Pure."""
