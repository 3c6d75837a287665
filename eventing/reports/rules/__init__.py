"""Rules of reports. Pure."""
