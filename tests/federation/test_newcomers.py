"""A domain that joined while the home could not reach us brings its admission itself, and is taken by the home's word."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eventing.federation import wire
from eventing.federation.runs import inbound
from eventing.log import control
from eventing.selectors.federation.forwarding import participations_forget
from eventing.selectors.federation.peers import peers_forget
from eventing.selectors.federation.recent_keys import recent_keys_forget
from eventing.selectors.rps.replicas import links_of_rp
from eventing.services.access.keys import ensure_domain_key
from eventing.services.federation.domain_documents import own_document
from eventing.services.federation.misbehaviour import misbehaviour_flush
from tests.federation.homes import Home, make, peer
from tests.federation.other_domain import OtherDomain
from tests.federation.shared_rp import Origin, counted, held, peer_made, send


@pytest.fixture(autouse=True)
def _stores(transactional_db: None, redis_url: str) -> Iterator[None]:
    control.client().flushdb()
    peers_forget()
    participations_forget()
    recent_keys_forget()
    inbound._rates.clear()
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
