"""Participation of domains in RPs: joins, renewals, leaves, announcements."""
