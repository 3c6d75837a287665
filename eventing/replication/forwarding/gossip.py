"""Gossip: proofs of equivocation concern every domain and are sent to every peer at once, whether or not there are
events for it.

They are part of the next exchange; for new ones `proof_found` and `proofs_shown` start one. A peer that missed one gets
it with a later exchange.
"""

from __future__ import annotations

from collections.abc import Iterable

from eventing.core.signing import Signed
from eventing.peering.models import Peer
from eventing.peering.selectors.evidence import evidence_pending
from eventing.peering.selectors.peers import peers_active
from eventing.peering.services.evidence import evidence_keep, evidence_spread
from eventing.peering.wire import messages as wire
from eventing.replication.forwarding import wakeups


def proof_found(one: Signed, other: Signed, *, carrier: str, whole: bool = True) -> None:
    """Keep two seals if they prove that their origin equivocated; send a new proof to all peers.

    Args:
        carrier: the peer that delivered them, or the second of them.
        whole: whether the carrier delivered both, so that it has the proof.

    Raises redis.RedisError.
    """
    if evidence_keep(one, other, carrier=carrier, whole=whole) == "new":
        _announce(but=carrier if whole else "")


def proofs_shown(peer: Peer, proofs: Iterable[wire.SealPair]) -> None:
    """Process the proofs in a peer's request; ignored from a peer without `gossip`. Raises redis.RedisError.

    Each is verified once, and the peers are woken once for all new ones: else one request, which anybody may repeat,
    would start a task for each of its proofs and each peer.
    """
    if not peer.gossip:
        return
    shown = dict.fromkeys((proof.one, proof.other) for proof in proofs)
    if "new" in [evidence_keep(one, other, carrier=peer.name) for one, other in shown]:
        _announce(but=peer.name)


def _announce(*, but: str) -> None:
    """Start an exchange with every peer but this one soon, including failing ones."""
    for peer in peers_active():
        if peer.gossip and peer.name != but:
            wakeups.wake(peer.name, anyway=True)


def proofs_due(peer: Peer) -> bool:
    """Return whether there are proofs that the peer has not received."""
    return peer.gossip and bool(evidence_pending(peer.name, 1))


def proofs_for(peer: Peer) -> list[wire.SealPair]:
    """Return the next proofs for the peer."""
    return [wire.SealPair(proof.one, proof.other) for proof in evidence_pending(peer.name)] if peer.gossip else []


def proofs_acknowledged(peer: str, count: int) -> None:
    """Record that the peer has acknowledged a request with as many proofs as `proofs_for` returned."""
    told = evidence_pending(peer, count) if count else []
    if told:
        evidence_spread(peer, told[-1].id)
