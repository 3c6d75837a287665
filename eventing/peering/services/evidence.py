"""Proofs of equivocation: verified, kept permanently, held against the origin, and sent to every peer.

The life of a proof: two valid seals of one origin for one place meet here, one held and one received, or both in a
peer's `evidence` -> `evidence_keep` verifies both signatures, keeps the pair once, and quarantines the origin -> each
exchange with a peer carries the proofs that the peer has not received (`evidence_pending`), until `evidence_spread`
records its acknowledgement. No peer has to be believed: every receiver verifies the pair with the origin's own key.
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

# One convicts; more show the extent, and must not fill the disk.
EVIDENCE_PER_FEED_MAX = 4  # bound: stored proofs for one feed; further proofs are not stored
# bound: stored proofs for one origin; further proofs are not stored, except one that renews a lifted quarantine
EVIDENCE_PER_ORIGIN_MAX = 256
EvidenceOutcome = Literal["new", "known", ""]
"""Outcome for two seals: a new proof; a known proof, or one that adds nothing to those stored; none."""
_encode = msgspec.msgpack.Encoder().encode


def evidence_keep(
    one: Signed, other: Signed, *, carrier: str = "", whole: bool = True, now: datetime | None = None
) -> EvidenceOutcome:
    """Verify two seals; if they prove that their origin equivocated, keep them and quarantine the origin.

    Args:
        carrier: the peer that delivered them, or the second of them; empty for none.
        whole: whether the carrier delivered both, so that the proof need not be sent to it.

    Returns the outcome. Seals that prove nothing, or that the origin did not sign, are counted against the carrier; an
    origin whose keys are unknown here cannot be judged ("", and nothing is counted).
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
        detail = "Two seals that were sent as a proof of equivocation prove nothing."
        misbehaviour_note("forged", carrier=carrier, origin=a.origin, rp=a.rp, detail=detail)
        return ""
    earlier = Evidence.objects.filter(origin=a.origin, rp=a.rp, epoch=a.epoch).count()
    row = _kept(one, other, a, earlier, carrier if whole else "", now)
    if row is not None:
        why = f"It sealed {a.rp} {a.epoch}:{a.first}-{a.last} and {b.first}-{b.last} with different content (equivocation)."
        misbehaviour_note("equivocation", carrier=carrier, origin=a.origin, rp=a.rp, detail=why)
        if not earlier:  # a feed stays forked: a further proof of it must not undo an administrator's decision
            quarantine(a.origin, why, evidence=row, now=now)
    return "known" if row is None else "new"


def evidence_spread(peer: str, through: int) -> None:
    """Record that `peer` has received the proofs up to the id `through`."""
    made = EvidenceSpread.objects.get_or_create(peer=peer, defaults={"through": through})[1]
    if not made:
        EvidenceSpread.objects.filter(peer=peer, through__lt=through).update(through=through)


def evidence_forget(peer: str) -> None:
    """Delete the record of proofs sent to a removed peer: if it is added again, it receives all of them."""
    EvidenceSpread.objects.filter(peer=peer).delete()


def _quarantines(origin: str) -> bool:
    """Return whether a new proof quarantines its origin: it is not quarantined already, and not this domain."""
    return origin != config().domain and not Quarantine.objects.filter(origin=origin).exists()


def _kept(one: Signed, other: Signed, seal: Seal, earlier: int, carrier: str, now: datetime) -> Evidence | None:
    """Keep a proof; return None if it is known, or its feed or origin has enough proofs.

    Beyond EVIDENCE_PER_ORIGIN_MAX, a proof that puts the origin back into quarantine is still kept: a frequent liar
    must not become immune, and the forked feed must be recorded, or the same proof would renew the quarantine every
    time. So there is one more for each time that an administrator lifted the quarantine.
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
