"""Reads for operators: alarms, watch rules, reports, live sessions, measures."""
