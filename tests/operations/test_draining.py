"""A domain that drains hands over what others hold too, states what stays, and takes over nothing."""

from __future__ import annotations

import json
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from eventing.core.errors import Conflict, Forbidden, InvalidRequest
from eventing.core.ids import DOMAIN_ADMIN
from eventing.operations.rules.draining import HomeCandidate, homes_in_order
from eventing.operations.selectors.draining import draining
from eventing.operations.services.draining import (
    FOLLOWED_S,
    UNTIL_S_MAX,
    drain_begin,
    drain_end,
    drain_shown,
    drain_sweep,
)
from eventing.peering.models import Peer
from eventing.peering.selectors.domain_documents import own_fingerprint
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.endpoints import Sender
from eventing.peering.wire.messages import VERSION
from eventing.replication.homes import handler, moving
from eventing.replication.homes.messages import MoveRequest
from eventing.replication.joining.messages import encode
from eventing.replication.services.reader_moves import reader_moves
from eventing.replication.services.replica_admissions import replica_admit
from eventing.replication.services.replica_links import links_offer
from eventing.rps.models import RendezvousPoint
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from eventing.store import keys
from eventing.store.client import client
from tests.peering.other_domain import OtherDomain
from tests.planes import events_at
from tests.replication.hand_overs import NextHome, hand_over_of
from tests.replication.homes import ANN, OPEN_TO_B, ROOT, Home, join_of, make, peer

pytestmark = pytest.mark.usefixtures("home_stores")


@pytest.fixture
def next_home(b: OtherDomain, monkeypatch: pytest.MonkeyPatch) -> NextHome:
    peer(b)
    row = rendezvous_point_create(principal=ANN, name="weather", policy=OPEN_TO_B)
    replica_admit(join=join_of(b.name, row.id))
    links_offer(rps=[row.id])
    made = NextHome(b, row.id)
    monkeypatch.setattr(moving, "call", made.call)
    return made


def begun(seconds: float = 3600) -> None:
    drain_begin(principal=ROOT, until=timezone.now() + timedelta(seconds=seconds))


def states() -> list[str]:
    found = [one for one in events_at(DOMAIN_ADMIN) if one["type"] == "io.herald.domain.draining"]
    return [one["data"]["state"] for one in found]


def reading(rp: str, gateway: str, readers: int) -> None:
    """Store what a gateway sampled last of an RP."""
    client().zadd(keys.GATEWAYS_KEY, {"g1": time.time() + 600})
    client().hset(keys.rp_load_key(rp), gateway, json.dumps({"gateway": gateway, "readings": readers}))


def test_readers_of_a_quiet_rp_are_moved_and_those_who_stay_are_not_waited_for(
    next_home: NextHome,
) -> None:
    alone = rendezvous_point_create(principal=ANN, name="alone").id
    for rp, gateway, readers in ((next_home.rp, "g1", 7), (next_home.rp, "lost", 100), (alone, "g1", 50)):
        reading(rp, gateway, readers)
    begun()
    drain_sweep()
    assert [(move.rp, move.share, move.reason) for move in reader_moves()] == [
        (next_home.rp, 1.0, "This domain drains.")
    ]
    assert (drain_shown().state, drain_shown().readers) == ("draining", 7)
    soon = timezone.now() + timedelta(seconds=FOLLOWED_S)
    drain_sweep(now=soon)
    assert (drain_shown(now=soon).state, drain_shown(now=soon).readers) == ("done", 7)


def test_a_drain_is_done_once_the_readers_have_left(next_home: NextHome) -> None:
    reading(next_home.rp, "g1", 7)
    begun()
    drain_sweep()
    assert drain_shown().state == "draining"
    reading(next_home.rp, "g1", 0)
    drain_sweep()
    assert (drain_shown().state, drain_shown().readers) == ("done", 0)


def test_homes_go_to_participants_and_the_drain_is_done_with_the_last(next_home: NextHome) -> None:
    rendezvous_point_create(principal=ANN, name="alone")
    begun()
    before = drain_shown()
    assert (before.state, before.homes, before.staying, before.handed_over) == ("draining", 1, 1, 0)
    assert drain_sweep() == 1
    assert RendezvousPoint.objects.get(id=next_home.rp).home == "b.test"
    after = drain_shown()
    assert (after.state, after.homes, after.staying, after.handed_over) == ("done", 0, 1, 1)
    assert drain_sweep() == 0
    assert states() == ["draining", "done"], "said once"
    drain_end(principal=ROOT)
    assert (drain_shown().state, draining()) == ("ended", False)


def test_a_home_that_nobody_takes_over_stays_with_the_reason(next_home: NextHome) -> None:
    next_home.fails = PeerError("refused", "no", status=403, document={"detail": "Not here."})
    begun()
    assert drain_sweep() == 0
    (refusal,) = drain_shown().refusals
    assert (refusal.rp, refusal.domain) == (next_home.rp, "b.test")
    assert "Not here." in refusal.reason
    assert (drain_shown().homes, drain_shown().staying) == (0, 1), "nobody is left to ask"
    next_home.fails = None
    assert drain_sweep() == 0, "it is not asked again and again"
    begun()
    assert drain_sweep() == 1, "begun anew, it is"


def test_a_domain_that_cannot_be_reached_is_asked_again(next_home: NextHome) -> None:
    next_home.fails = PeerError("unreachable", "no")
    begun()
    assert drain_sweep() == 0
    assert drain_shown().refusals == []
    next_home.fails = None
    assert drain_sweep() == 1


def test_a_domain_that_drains_takes_over_no_home(a: Home) -> None:
    make(a)
    Peer.objects.filter(pk=a.name).update(host=True)
    begun()
    request = MoveRequest(VERSION, a.rp, hand_over_of(a, "localhost", str(own_fingerprint())), [], {}, b"{}")
    with pytest.raises(Conflict, match="hands over its own"):
        handler.home(Sender(a.name, "k", Peer.objects.get(pk=a.name)), encode(request))


def test_a_drain_ends_at_its_time_and_is_for_administrators(next_home: NextHome) -> None:
    with pytest.raises(Forbidden):
        drain_begin(principal=ANN, until=timezone.now() + timedelta(seconds=60))
    with pytest.raises(InvalidRequest):
        begun(UNTIL_S_MAX + 60)
    with pytest.raises(Conflict):
        drain_end(principal=ROOT)
    begun(60)
    assert drain_sweep(now=timezone.now() + timedelta(seconds=61)) == 0
    assert RendezvousPoint.objects.get(id=next_home.rp).home == ""


def test_electors_come_first_then_who_lacks_least_and_nobody_that_refused() -> None:
    candidates = [
        HomeCandidate("a", None, 0),
        HomeCandidate("b", None, 5),
        HomeCandidate("c", 1, 9),
        HomeCandidate("d", 0, 9),
        HomeCandidate("e", None, None),
        HomeCandidate("f", None, 0),
    ]
    assert homes_in_order(candidates, {"f": "No."}) == ["d", "c", "a", "b"]
