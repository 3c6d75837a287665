"""Celery tasks: thin, idempotent, one service call each, safe to run twice."""
