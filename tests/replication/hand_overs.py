"""Hand-overs of the home of an RP that another domain created, as its homes sign them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from eventing.core import signing
from eventing.core.signing import Signed
from eventing.peering.selectors.domain_documents import own_fingerprint
from eventing.peering.wire.client import PeerError
from eventing.peering.wire.messages import VERSION
from eventing.replication.homes.messages import MoveAnswer, MoveRequest
from eventing.replication.joining.messages import decoded, encode
from eventing.replication.models import ReplicaAdmission
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import (
    MOVE,
    NO_RECORD,
    Cosigned,
    DomainSignature,
    HandOver,
    HomeRecord,
    digest,
    hand_over_payload,
    hand_over_read,
    signature_make,
)
from eventing.rps.rules.statements import admission_make, admission_read, descriptor_make, descriptor_read, unpacked
from tests.peering.other_domain import OtherDomain
from tests.replication.homes import OWN, Home, now_ms


def hand_over_of(former: Home, to: str, fingerprint: str, record: HomeRecord = NO_RECORD, **changes: Any) -> bytes:
    said: dict[str, Any] = {
        "rp": former.rp,
        "term": len(record.hand_overs) + 1,
        "kind": MOVE,
        "former": former.name,
        "domain": to,
        "url": f"https://{to}",
        "fingerprint": fingerprint,
        "previous": digest(record.hand_overs[-1].payload) if record.hand_overs else "",
        "plan": "",
        "at_ms": now_ms(),
    }
    return hand_over_payload(HandOver(**{**said, **changes}))


def completed(payload: bytes, *by: OtherDomain, also: DomainSignature | None = None) -> HomeRecord:
    signatures = [signature_make(signing.HAND_OVER, payload, one.name, one.keys[-1]) for one in by]
    return HomeRecord([Cosigned(payload, [*signatures, *([also] if also else [])])])


class NextHome:
    """Another domain that is asked to become the home of an RP of ours."""

    def __init__(self, domain: OtherDomain, rp: str) -> None:
        self.domain, self.rp = domain, rp
        self.fails: PeerError | None = None
        self.signs = True

    def call(self, url: str, domain: str, path: str, body: bytes, timeout_s: float) -> bytes:
        if self.fails is not None:
            raise self.fails
        request = decoded(body, MoveRequest)
        wanted = hand_over_read(request.payload)
        key = self.domain.keys[-1]
        context = signing.HAND_OVER if self.signs else signing.JOIN
        signature = signature_make(context, request.payload, self.domain.name, key)
        row = RendezvousPoint.objects.get(id=self.rp)
        stated = descriptor_read(unpacked(row.descriptor or b""))
        ahead = replace(stated, home=self.domain.name, term=wanted.term, version=stated.version + 1)
        statements: list[Signed] = [descriptor_make(ahead, key)]
        said: dict[str, Any] = {
            "home": self.domain.name,
            "domain": OWN,
            "fingerprint": str(own_fingerprint()),
            "term": wanted.term,
            "issued_at_ms": now_ms(),
            "expires_at_ms": now_ms() + 3_600_000,
        }
        held = admission_read(unpacked(ReplicaAdmission.objects.get(rp=row, domain=self.domain.name).statement))
        statements.append(admission_make(replace(held, **said), key))
        return encode(MoveAnswer(VERSION, signature.kid, signature.signature, statements))
