"""Proofs that an RP was handed over twice, as they are kept: both hand-overs with their signatures.

The life of a proof: a verified record of hand-overs arrives that differs from the held one (homes.py) -> domains are accused, which signed
against their promise -> the two hand-overs are kept once, and an alarm is raised that lasts until a person acknowledges it -> every domain
keeps the same home, so nothing else is to be done but to decide about the accused.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping

from msgspec import to_builtins

from eventing.outbox.services import Outbox
from eventing.replication.models import HomeProof
from eventing.replication.ports import homes_contradicted
from eventing.replication.shapes import HandOverSignature, SignedHandOver
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import Cosigned, HomeRecord, digest, first_difference, hand_over_read, prevails

PROOFS_MAX = 1000  # bound: proofs that are kept; a further one is counted as misbehaviour only


def proof_keep(
    row: RendezvousPoint, new: HomeRecord, held: HomeRecord, accused: Mapping[str, str], outbox: Outbox, carrier: str
) -> None:
    """Keep a proof that is new, and raise the alarm, within the caller's transaction.

    Args:
        accused: by domain, what it did, in one sentence.
    """
    differing = first_difference(new, held)
    if differing is None:
        return
    kept, other = differing if prevails(new, held) else differing[::-1]
    name = hashlib.sha256("\n".join(sorted(digest(one.payload) for one in differing)).encode()).hexdigest()
    if HomeProof.objects.filter(digest=name).exists() or HomeProof.objects.count() >= PROOFS_MAX:
        return
    home, rival = hand_over_read(kept.payload), hand_over_read(other.payload)
    detail = [f"{domain}: {said}" for domain, said in accused.items()]
    HomeProof.objects.create(
        digest=name,
        rp=row.id,
        term=home.term,
        kept=home.domain,
        other=rival.domain,
        accused=list(accused),
        detail=detail,
        hand_overs=[to_builtins(_shown(one)) for one in (kept, other)],
        carrier=carrier,
        found_at=outbox.now,
    )
    sentence = f"{row.id} was handed over to {home.domain} and to {rival.domain}; all domains keep {home.domain}."
    homes_contradicted(row.id, home.term, " ".join([sentence, *detail]), outbox)


def _shown(one: Cosigned) -> SignedHandOver:
    signatures = [HandOverSignature(it.domain, it.kid, _text(it.signature)) for it in one.signatures]
    return SignedHandOver(one.payload.decode(), signatures)


def _text(signature: bytes) -> str:
    return urlsafe_b64encode(signature).decode().rstrip("=")
