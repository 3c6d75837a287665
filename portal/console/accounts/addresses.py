"""Where a request of the console comes from."""

from __future__ import annotations

from django.http import HttpRequest

from eventing.client_address import request_address

UNKNOWN = "unknown"


def address_of(request: HttpRequest) -> str:
    """The client's address; behind proxies that are trusted, the one that they name. UNKNOWN if the server does not say."""
    return request_address(request) or UNKNOWN
