"""Ports of the token verification to the subject that holds the other domains' documents."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from eventing.access.rules.token_issuers import TokenIssuers
from eventing.core.ports import Port


@Port
def token_issuers() -> TokenIssuers:
    """Return the other domains whose tokens are accepted now. Raises django.db.Error."""
    raise NotImplementedError


@Port
def domain_keys(name: str) -> Mapping[str, Mapping[str, Any]]:
    """Return public JWKs by kid of the domain `name`, with `nbf` and maybe `exp` (Unix seconds), including ended ones.

    Empty for an unknown domain. Raises django.db.Error.
    """
    raise NotImplementedError


@Port
def document_refetch(name: str) -> Future[None] | None:
    """Fetch the document of the domain `name` again, at a limited rate.

    The future never raises and does not state whether anything changed. None: the document was fetched recently.
    """
    raise NotImplementedError
