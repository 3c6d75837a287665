"""`make demo`: five domains on this machine that carry each other's events, are cut off, killed and lied to (docs/federation.md)."""
