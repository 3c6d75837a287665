"""Homes of rendezvous points in other domains, as this domain sees them: what they sign, and replicas of theirs here."""

from __future__ import annotations

import time
from typing import Any

from eventing.access.services.keys import ensure_domain_key
from eventing.core.ids import rp_id
from eventing.core.principals import Principal
from eventing.core.signing import Signed
from eventing.peering.rules.peers import Stance
from eventing.peering.selectors.peers import peers_forget
from eventing.peering.services.domain_documents import own_document
from eventing.peering.services.peers import hello_received, peer_add
from eventing.replication.services.replica_statements import statements_accept
from eventing.replication.services.replicas import replica_make
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import (
    Admission,
    DescriptorStatement,
    Join,
    PropertyStatement,
    admission_make,
    descriptor_make,
    properties_make,
)
from eventing.store.client import client as redis_client
from tests.peering.other_domain import OtherDomain
from tests.planes import principal

ROOT, ANN, BEN = principal("root", admin=True), principal("ann"), principal("ben")
OWN = "localhost"
OPEN_TO_B = [{"issuer": "domain", "allow": ["publish"]}, {"issuer": "peer:b.test", "allow": ["replicate"]}]


def begin() -> None:
    """Empty stores, and this domain with its key and document."""
    redis_client().flushdb()
    ensure_domain_key()
    own_document()


def peer(other: OtherDomain, **trust: Any) -> OtherDomain:
    """Peer with it, as administrators on both sides agree."""
    peer_add(principal=ROOT, statement=other.document(), fingerprint=other.fingerprint, **trust)
    hello_received(statement=other.document(), stance=Stance.APPROVES, at_ms=now_ms())
    peers_forget()
    return other


def now_ms() -> int:
    return int(time.time() * 1000)


class Home(OtherDomain):
    """Another domain that is the home of an RP, signing what a home signs."""

    def __init__(self, name: str = "a.test") -> None:
        super().__init__(name, url=f"https://{name}")
        self.genesis = {"domain": name, "key": self.fingerprint, "creator": "ann", "created_at": "then", "nonce": "n"}
        self.rp = rp_id(self.genesis)
        self.version = 0

    def descriptor(self, **changes: Any) -> Signed:
        """The next version of the descriptor; `by` is the key that signs it."""
        key = changes.pop("by", self.keys[-1])
        self.version += 1
        said: dict[str, Any] = {
            "rp": self.rp,
            "version": self.version,
            "home": self.name,
            "genesis": self.genesis,
            "serial": self.serial,
            "issued_at_ms": now_ms(),
            "ended": False,
            "name": f"/{self.name}/weather/",
            "title": "Weather",
            "history": {"max_events": 100, "max_bytes": 100_000, "max_age_s": None},
            "policy": [{"issuer": "domain", "allow": ["publish", "subscribe"]}],
            "ack": "stored",
        }
        return descriptor_make(DescriptorStatement(**{**said, **changes}), key)

    def properties(self, reliability: float | None, **changes: Any) -> Signed:
        """A statement of the RP's properties; `by` is the key that signs it."""
        key = changes.pop("by", self.keys[-1])
        said: dict[str, Any] = {"rp": self.rp, "home": self.name, "issued_at_ms": now_ms(), "reliability": reliability}
        return properties_make(PropertyStatement(**{**said, **changes}), key)

    def admission(
        self, domain: str = OWN, *, lasts_s: float = 3600, by: dict[str, Any] | None = None, **changes: Any
    ) -> Signed:
        """An admission of a domain."""
        said: dict[str, Any] = {
            "rp": self.rp,
            "home": self.name,
            "domain": domain,
            "url": f"https://{domain}",
            "fingerprint": "f" * 43,
            "issued_at_ms": now_ms(),
            "expires_at_ms": now_ms() + int(lasts_s * 1000),
            "publishes": True,
        }
        return admission_make(Admission(**{**said, **changes}), by or self.keys[-1])


def make(home: Home, who: Principal = ANN, **stated: Any) -> RendezvousPoint:
    """Our replica of the home's RP."""
    said: dict[str, Any] = {
        "rp": home.rp,
        "principal": who,
        "via": home.name,
        "lease_s": 3600,
        "history": {},
        "descriptor": home.descriptor(),
        "admissions": [home.admission()],
    }
    return replica_make(**{**said, **stated})


def taken(home: Home, *statements: Signed, domains: list[Signed] | None = None) -> list[str]:
    """What is refused of statements that a peer brought."""
    return statements_accept(home.rp, statements, carrier="c.test", domains=domains or [])


def row_of(home: Home) -> RendezvousPoint:
    return RendezvousPoint.objects.get(id=home.rp)


def join_of(domain: str, rp: str, *, lease_s: int = 60, at_ms: int | None = None) -> Join:
    return Join(rp, domain, f"https://{domain}", lease_s, at_ms or now_ms())
