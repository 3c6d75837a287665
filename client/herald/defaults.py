"""The address of a domain that nobody configured."""

URL_DEFAULT = "http://127.0.0.1:8000"
