"""Runs of events between domains: woken, sent, judged, taken, swept."""
