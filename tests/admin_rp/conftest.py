"""Both planes for every test here, emptied."""

from __future__ import annotations

import pytest

from eventing.access.services.keys import ensure_domain_key
from eventing.log import control
from eventing.peering.selectors.peers import peers_forget
from eventing.peering.services.domain_documents import own_document


@pytest.fixture
def planes(transactional_db: None, redis_url: str) -> None:
    """SQL with the domain's key and document, and an empty Redis."""
    control.client().flushdb()
    peers_forget()
    ensure_domain_key()
    own_document()
