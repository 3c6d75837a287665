"""Faults of servers, gateways and networks under load, and a checker of what clients were told meanwhile (docs/faults.md)."""
