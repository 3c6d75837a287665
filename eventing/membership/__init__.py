"""Membership: this domain's part in the overlay of its federation: directory, links and liveness of the machines in `overlay`,
with real records, clocks, requests and tables."""
