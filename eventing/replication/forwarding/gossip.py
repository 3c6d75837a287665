"""Gossip: what concerns everybody is told to every peer at once, whether or not there are events for it: proofs of equivocation.

They travel with the next exchange; for those that are new here `proof_found` and `proofs_shown` see to it that there is one.
What a peer missed goes with a later one.
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
    """Two seals may prove that their origin told two stories: if they do, keep them; a new proof is told to all peers.

    Args:
        carrier: who brought them, or the second of them.
        whole: whether it brought both, and so knows.

    Raises redis.RedisError.
    """
    if evidence_keep(one, other, carrier=carrier, whole=whole) == "new":
        _tell(but=carrier if whole else "")


def proofs_shown(peer: Peer, proofs: Iterable[wire.Evidence]) -> None:
    """What a request of a peer shows as proofs; nothing is taken of one without `gossip`. Raises redis.RedisError.

    Each is looked at once, and the peers are woken once for all that are new: else one request, which anybody may send
    again, would start a task for each of its proofs and each peer.
    """
    if not peer.gossip:
        return
    shown = dict.fromkeys((proof.one, proof.other) for proof in proofs)
    if "new" in [evidence_keep(one, other, carrier=peer.name) for one, other in shown]:
        _tell(but=peer.name)


def _tell(*, but: str) -> None:
    """Have an exchange with every peer but this one soon, also with those that fail."""
    for peer in peers_active():
        if peer.gossip and peer.name != but:
            wakeups.wake(peer.name, anyway=True)


def proofs_due(peer: Peer) -> bool:
    """Whether there are proofs that the peer has not been told of."""
    return peer.gossip and bool(evidence_pending(peer.name, 1))


def proofs_for(peer: Peer) -> list[wire.Evidence]:
    """The proofs to tell the peer next."""
    return [wire.Evidence(proof.one, proof.other) for proof in evidence_pending(peer.name)] if peer.gossip else []


def proofs_told(peer: str, count: int) -> None:
    """The peer has taken a request with as many proofs as `proofs_for` gave."""
    told = evidence_pending(peer, count) if count else []
    if told:
        evidence_spread(peer, told[-1].id)
