"""Addresses for operators: alarms, watch rules, reports, sessions, lists of the whole domain."""
