"""Federation: what separately run, mutually suspicious domains say to each other, and how it is checked (docs/federation.md)."""
