"""Client address of a console request."""

from __future__ import annotations

from django.http import HttpRequest

from eventing.client_address import request_address

UNKNOWN = "unknown"


def address_of(request: HttpRequest) -> str:
    """Return the client's address; behind trusted proxies the address that they report. UNKNOWN if the server reports
    none."""
    return request_address(request) or UNKNOWN
