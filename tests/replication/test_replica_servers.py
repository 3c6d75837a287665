"""The domains that serve RPs: for many RPs in as many queries as for one."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from eventing.core.ids import rp_id
from eventing.replication.selectors.replica_servers import replica_servers
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from tests.peering.other_domain import OtherDomain
from tests.replication.homes import ANN, OPEN_TO_B, Home, make, peer

pytestmark = pytest.mark.usefixtures("home_stores")


def test_many_are_found_in_as_many_queries_as_one(a: Home) -> None:
    rps = []
    for number in range(5):
        a.genesis = {**a.genesis, "nonce": str(number)}
        a.rp, a.version = rp_id(a.genesis), 0
        make(a, admissions=[a.admission(), a.admission("c.test")])
        rps.append(a.rp)
    alone = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B, lease_s=3600).id
    peer(OtherDomain("c.test"))
    with CaptureQueriesContext(connection) as of_one:
        one = replica_servers(rps[:1])[rps[0]]
    assert [(server.domain, bool(server.url)) for server in one] == [
        ("a.test", True),
        ("c.test", True),
        ("localhost", True),
    ]
    with CaptureQueriesContext(connection) as of_many:
        found = replica_servers([*rps, alone, "b" * 26])
    assert len(of_many) <= len(of_one)
    assert found == {**dict.fromkeys(rps, one), alone: [], "b" * 26: []}
