"""Notification of alarms: contact points, and what is sent to them by webhook and mail (docs/decisions/0125)."""
