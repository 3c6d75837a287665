"""Celery tasks: thin, idempotent, one service call each."""
