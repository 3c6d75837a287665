"""Ports of the base view to the subjects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventing.core.ports import Port
from eventing.core.principals import Principal

if TYPE_CHECKING:  # the composition root need not load DRF
    from rest_framework.request import Request


@Port
def principal_of(request: Request) -> Principal:
    """Return the requesting principal; ANONYMOUS for a request without credentials."""
    raise NotImplementedError
