"""The client's address, for the edge; see eventing/client_address.py."""

from __future__ import annotations

from eventing.client_address import request_address, scope_address

__all__ = ["request_address", "scope_address"]
