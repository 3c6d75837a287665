"""Plumbing of Django REST framework: base view, fields, problems, idempotency, OpenAPI."""
