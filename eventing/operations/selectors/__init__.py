"""Reads of operation: alarms, leases, limits, sessions."""
