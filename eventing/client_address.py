"""The client's address of a request, for limits, records and display: from an ASGI scope, or from Django's request.

The rule is in core/client_address.py; HERALD_TRUSTED_PROXIES names the trusted proxies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eventing.conf import config
from eventing.core.client_address import Network, client_address, parse_networks
from eventing.core.container import memoized

if TYPE_CHECKING:
    from django.http import HttpRequest

_parsed = memoized(maxsize=8)(parse_networks)


def trusted_proxies() -> tuple[Network, ...]:
    """Return the networks in HERALD_TRUSTED_PROXIES."""
    return _parsed(config().trusted_proxies)


def scope_address(scope: dict[str, Any]) -> str:
    """Return the client's address of an ASGI scope; empty for a connection without one (a unix socket)."""
    client = scope.get("client")
    peer: str = client[0] if client else ""
    trusted = trusted_proxies()
    if not trusted:
        return peer
    forwarded = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return client_address(peer, forwarded, trusted)


def request_address(request: HttpRequest) -> str:
    """Return the client's address of Django's request, which joins repeated headers with commas."""
    peer = request.META.get("REMOTE_ADDR") or ""
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR")
    return client_address(peer, [forwarded] if forwarded else [], trusted_proxies())
