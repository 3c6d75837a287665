"""Peers that answer invitations as a test says, and the load that this domain's gateways state."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

import msgspec
import pytest

from eventing.log import watermarks
from eventing.operations.placement.services import planning
from eventing.overlay import link_state
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.messages import VERSION, encode
from eventing.replication.joining import client as joining
from eventing.replication.joining.messages import DONE, InviteRequest, ReleaseRequest, decoded
from eventing.replication.joining.next_hops import INVITE_PATH, RELEASE_PATH
from eventing.replication.services.replica_admissions import replica_admit
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import descriptor_read
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from eventing.store import keys
from eventing.store.client import client as redis_client
from tests.peering.other_domain import OtherDomain
from tests.replication.homes import ANN, join_of, now_ms, peer


@dataclass
class Volunteers:
    """Peers of this domain, the home.

    Attributes:
        refuses: what they answer an invitation or a release with, by domain.
        dies: this process is killed before the answer.
    """

    asked: list[tuple[str, str]] = field(default_factory=list)
    expected: list[float] = field(default_factory=list)
    refuses: dict[str, PeerError] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    dies: bool = False

    def call(self, url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
        """Answer a request of the home."""
        if path not in (INVITE_PATH, RELEASE_PATH):
            if domain in self.silent:
                raise PeerError("unreachable", "It does not answer.")
            return encode([VERSION])
        self.asked.append((path.rpartition("/")[2], domain))
        if domain in self.refuses:
            raise self.refuses[domain]
        if path == INVITE_PATH:
            invitation = decoded(body, InviteRequest)
            self.expected.append(invitation.events_per_s)
            rp = descriptor_read(invitation.descriptor).rp
            replica_admit(join=join_of(domain, rp, lease_s=20_000))
        else:
            rp = decoded(body, ReleaseRequest).rp
            replica_admit(join=join_of(domain, rp, lease_s=0, at_ms=now_ms() + 5))
        if self.dies:
            raise KeyboardInterrupt
        return DONE


def volunteers_made(monkeypatch: pytest.MonkeyPatch, *names: str) -> Volunteers:
    """Peer with these domains."""
    for name in names:
        peer(OtherDomain(name, url=f"https://{name}"))
    made = Volunteers()
    monkeypatch.setattr(joining, "call", made.call)
    monkeypatch.setattr(planning, "call", made.call)
    return made


def famous(*names: str) -> RendezvousPoint:
    """An RP of this domain whose policy lets these domains replicate."""
    policy = [{"issuer": f"peer:{name}", "allow": ["replicate"]} for name in names]
    return rendezvous_point_create(principal=ANN, policy=policy, lease_s=86_400)


def load_is(rp: str, sessions: int) -> None:
    """Have a gateway state a load."""
    sample = {
        "interval_s": 1.0,
        "sessions": sessions,
        "lag_ms": 1.0,
        "hot": [{"rp": rp, "events_in": 7, "deliveries": 0, "readings": sessions}],
    }
    redis_client().set(keys.gateway_load_key("g1"), json.dumps(sample))
    redis_client().zadd(keys.GATEWAYS_KEY, {"g1": time.time() + 600})


def vector_of(domain: str, rp: str, vector: dict[str, int]) -> None:
    """Have the peer state its vector."""

    def change(_: str, link: link_state.Link) -> link_state.Link:
        return msgspec.structs.replace(link, peer=msgspec.structs.replace(link.peer, theirs=vector))

    watermarks.links_change(domain, [rp], change)
