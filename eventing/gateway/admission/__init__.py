"""Admission of requests: authentication, authorisation, limits."""
