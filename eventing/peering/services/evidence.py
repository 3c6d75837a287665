"""Proofs of equivocation: checked, kept for good, held against the origin, and spread to every peer.

The life of a proof: two valid seals of one origin for one place meet here, one held and one received, or both in a peer's
`evidence` -> `evidence_keep` checks both signatures, keeps the pair once, and quarantines the origin -> each exchange
with a peer takes along what that peer was not told (`evidence_pending`), until `evidence_spread` says that it was.
A peer's word is never needed: whoever gets the pair checks it with the origin's own key.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Literal

import msgspec
from django.utils import timezone

from eventing.conf import config
from eventing.core import signing
from eventing.core.seals import seals
from eventing.core.seals.seals import BadSeal, Seal
from eventing.core.signing import Signed
from eventing.peering.models import Evidence, EvidenceSpread, Quarantine
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.services.quarantines import quarantine

EVIDENCE_PER_FEED_MAX = 4  # one convicts; more show how far it went, and must not be a way to fill the disk
EVIDENCE_PER_ORIGIN_MAX = 256  # and what put it back into quarantine after each time that it was released
Judged = Literal["new", "known", ""]
"""Two seals are a proof that was not kept before; one that was, or that adds nothing to those that are kept; none."""
_encode = msgspec.msgpack.Encoder().encode


def evidence_keep(
    one: Signed, other: Signed, *, carrier: str = "", whole: bool = True, now: datetime | None = None
) -> Judged:
    """Judge two seals; if they prove that their origin told two stories, keep them and quarantine it.

    Args:
        carrier: the peer that brought them, or the second of them; empty if nobody did.
        whole: whether the carrier brought both: it needs not be told of them then.

    Returns what they are. What is no proof, or is not signed by the origin, is counted against the carrier; an origin whose
    keys are not known here cannot be judged ("", and nothing is counted).
    """
    now = now or timezone.now()
    try:
        a, b = seals.seal_read(one), seals.seal_read(other)
    except BadSeal as error:
        misbehaviour_note("malformed", carrier=carrier, detail=str(error))
        return ""
    keys = domain_keys(a.origin)
    if not keys:
        return ""
    signed = seals.signed_by(signing.SEAL, one, a.sealed_at_ms, keys) and seals.signed_by(
        signing.SEAL, other, b.sealed_at_ms, keys
    )
    if not signed or not seals.equivocate(one, other):
        detail = "Two seals that were shown as a proof of equivocation prove nothing."
        misbehaviour_note("forged", carrier=carrier, origin=a.origin, rp=a.rp, detail=detail)
        return ""
    earlier = Evidence.objects.filter(origin=a.origin, rp=a.rp, epoch=a.epoch).count()
    row = _kept(one, other, a, earlier, carrier if whole else "", now)
    if row is not None:
        why = f"It sealed {a.rp} {a.epoch}:{a.first}-{a.last} and {b.first}-{b.last} as two different stories."
        misbehaviour_note("equivocation", carrier=carrier, origin=a.origin, rp=a.rp, detail=why)
        if not earlier:  # a feed that is proved to be forked stays so: it must not undo an administrator's decision
            quarantine(a.origin, why, evidence=row, now=now)
    return "known" if row is None else "new"


def evidence_spread(peer: str, through: int) -> None:
    """Note that `peer` was told of the proofs up to the id `through`."""
    made = EvidenceSpread.objects.get_or_create(peer=peer, defaults={"through": through})[1]
    if not made:
        EvidenceSpread.objects.filter(peer=peer, through__lt=through).update(through=through)


def evidence_forget(peer: str) -> None:
    """Start over with a peer that was removed: should it come back, it is told everything."""
    EvidenceSpread.objects.filter(peer=peer).delete()


def _quarantines(origin: str) -> bool:
    """Whether a new proof quarantines its origin, which is not in quarantine as SQL says now, and not this domain."""
    return origin != config().domain and not Quarantine.objects.filter(origin=origin).exists()


def _kept(one: Signed, other: Signed, seal: Seal, earlier: int, carrier: str, now: datetime) -> Evidence | None:
    """Keep a proof; None if it is known, or its feed or origin is convicted often enough.

    Beyond EVIDENCE_PER_ORIGIN_MAX the one that puts an origin back into quarantine is kept still: who lied often must not be
    immune, and the feed that it proves to be forked must be known, or the same lie would put the origin back every time. So
    there is one more for each time that an administrator lifted the quarantine.
    """
    if earlier >= EVIDENCE_PER_FEED_MAX:
        return None
    if Evidence.objects.filter(origin=seal.origin).count() >= EVIDENCE_PER_ORIGIN_MAX and (
        earlier or not _quarantines(seal.origin)
    ):
        return None
    both = sorted((seals.digest(one), seals.digest(other)))
    row, made = Evidence.objects.get_or_create(
        digest=hashlib.sha256(b"".join(both)).hexdigest(),
        defaults={
            "origin": seal.origin,
            "rp": seal.rp,
            "epoch": seal.epoch,
            "one": _encode(one),
            "other": _encode(other),
            "carrier": carrier,
            "found_at": now,
        },
    )
    return row if made else None
