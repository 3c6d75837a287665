"""The client's address of a request, for all who count, record or show it: of an ASGI scope, or of Django's request.

The rule is in core/client_address.py; HERALD_TRUSTED_PROXIES says which proxies are believed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from eventing.conf import config
from eventing.core.client_address import Network, client_address, parse_networks

if TYPE_CHECKING:
    from django.http import HttpRequest

_parsed = lru_cache(maxsize=8)(parse_networks)


def trusted_proxies() -> tuple[Network, ...]:
    """The networks that HERALD_TRUSTED_PROXIES names."""
    return _parsed(config().trusted_proxies)


def scope_address(scope: dict[str, Any]) -> str:
    """The client's address of an ASGI scope; empty where the connection has none (a unix socket)."""
    client = scope.get("client")
    peer: str = client[0] if client else ""
    trusted = trusted_proxies()
    if not trusted:
        return peer
    forwarded = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return client_address(peer, forwarded, trusted)


def request_address(request: HttpRequest) -> str:
    """The client's address of Django's request, which joins repeated headers with commas."""
    peer = request.META.get("REMOTE_ADDR") or ""
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR")
    return client_address(peer, [forwarded] if forwarded else [], trusted_proxies())
