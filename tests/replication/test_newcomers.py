"""A domain that joined while the home could not reach us brings its admission itself, and is taken by the home's word."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eventing.access.services.keys import ensure_domain_key
from eventing.peering.services.domain_documents import own_document
from eventing.peering.services.misbehaviour import misbehaviour_flush
from eventing.peering.wire import messages as wire
from eventing.replication.selectors.replicas import links_of_rp
from eventing.store.client import client as redis_client
from tests.peering.other_domain import OtherDomain
from tests.replication.homes import Home, make, peer
from tests.replication.shared_rp import Origin, counted, held, peer_made, send


@pytest.fixture(autouse=True)
def _stores(transactional_db: None, redis_url: str) -> Iterator[None]:
    redis_client().flushdb()
    ensure_domain_key()
    own_document()
    yield
    misbehaviour_flush()


@pytest.mark.parametrize("signer", ["home", "newcomer"])
def test_what_it_brings_counts_at_once_if_the_home_signed_it_and_not_otherwise(signer: str) -> None:
    home = Home()
    peer(home)
    make(home)
    c = OtherDomain("c.test")
    row = peer_made(c)
    by = home.keys[-1] if signer == "home" else c.keys[-1]
    admission = home.admission("c.test", fingerprint=c.fingerprint, by=by)
    run = Origin(c, home.rp).run(3)
    part = wire.RpPart(home.rp, {}, [run], statements=[admission])
    answer = send(row, part, domains=[c.document()]).parts[0]
    if signer == "home":
        assert list(answer.have.values()) == [3]
        assert held(home.rp) == run.events
        assert "c.test" in links_of_rp(home.rp)
        assert counted() == {}
    else:
        assert answer.error
        assert held(home.rp) == []
        assert "c.test" not in links_of_rp(home.rp)
        misbehaviour_flush()
        assert set(counted()) == {("forged", "c.test", "a.test")}
