"""Fork detection: two domains that hold a feed equally far find out whether its origin equivocated
(core/seals/heads.py).

The life of a discovery: a request states the seals at which its feeds end (heads) -> the receiver looks up its own seal
at each of these places (`doubtful`), and answers with those that differ (`contradicting`) -> the sender has both now,
its own and the answered one, and verifies them (`seals_met`): both signed by the origin, they are a proof of
equivocation, which is kept and sent to all peers. An answer has heads too, for events that arrived here
after the request was sent: if they contradict those, the peer is asked again (`contradicted`). A head alone proves
nothing: it only makes the other side present a signed seal.

Gossip: proofs concern every domain and are sent to every peer at once, whether or not there are events for it. They are
part of the next exchange; for new ones `proof_found` and `proofs_shown` start one. A peer that missed one gets it with
a later exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from eventing.conf import config
from eventing.core.decoding import msgpack_reader
from eventing.core.events.feeds import Feed
from eventing.core.events.vectors import Vector
from eventing.core.seals import heads as feed_heads
from eventing.core.seals.seals import BadSeal, seal_read
from eventing.core.signing import Signed
from eventing.log import federated
from eventing.log.federated import LogHead, StoredSeal
from eventing.log.federated_bulk import last_seals
from eventing.peering.selectors.evidence import evidence_pending, feed_forked
from eventing.peering.selectors.partners import Partner
from eventing.peering.selectors.peers import peers_active
from eventing.peering.services.evidence import evidence_keep, evidence_spread
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire import messages as wire
from eventing.replication.forwarding import wakeups
from eventing.replication.services.sealing import own_seal_seen

COMPARED_MAX = 128  # places compared for one request; the others with a later one
SHOWN_MAX = 8  # seals of an RP in one answer; one convicts
HEADS_MAX = 16_384  # of one request: 256 KiB beside its vectors
_signed = signed_read = msgpack_reader(Signed)

SealPosition = tuple[str, str, int]  # RP, feed key, sequence
Part = wire.RpPart | wire.RpAnswer


def heads_add(parts: Iterable[Part], heads: Mapping[str, LogHead]) -> None:
    """Add to the parts of a message the seals at which their vectors end, as far as the heads of these RPs know them."""
    room = HEADS_MAX
    for part in parts:
        room -= len(part.have)
        if room < 0:
            return
        head = heads.get(part.rp)
        if head is None:
            continue
        held, known = _held(head), _known(head)
        part.heads = feed_heads.packed(
            part.have, {feed: one for feed, one in known.items() if held.get(feed) == part.have.get(feed)}
        )


def doubtful(parts: Iterable[tuple[wire.RpPart, LogHead]]) -> list[SealPosition]:
    """Return the places of a request at which the own seal is to be compared with its head.

    The own feeds are left out: other domains compare those, and this one when they answer.
    """
    found = [
        (part.rp, feed, part.have[feed])
        for part, head in parts
        for feed in feed_heads.doubtful(part.have, _heads_stated(part, head), head.foreign, head.foreign_heads)
    ]
    return found[:COMPARED_MAX]


def contradicted(answers: Mapping[str, wire.RpAnswer], asked: Mapping[str, Vector]) -> list[str]:
    """Return the RPs at which an answer contradicts events that arrived here meanwhile: the peer is to be asked again,
    with present heads.

    Args:
        answers: by RP.
        asked: the vectors of the request, by RP.

    Raises redis.RedisError.
    """
    news = [
        rp for rp, part in answers.items() if any(last > asked[rp].get(feed, 0) for feed, last in part.have.items())
    ]
    positions: dict[SealPosition, bytes] = {}
    for rp, head in zip(news, federated.heads(news), strict=True):
        if head is not None:
            part, stated = answers[rp], _heads_stated(answers[rp], head)
            for feed in feed_heads.contradicting(asked[rp], part.have, stated, head.foreign, head.foreign_heads):
                positions[rp, feed, part.have[feed]] = stated[feed]
    doubts = list(positions)[:COMPARED_MAX]
    return list(
        dict.fromkeys(
            position[0]
            for position, stored in zip(doubts, last_seals(doubts), strict=True)
            if _other(stored, position, positions)
        )
    )


def contradicting(
    part: wire.RpPart, positions: Sequence[SealPosition], seal_at: Callable[[SealPosition], StoredSeal | None]
) -> list[Signed]:
    """Return the seals held at these places of the RP that differ from those that the heads name."""
    stated = feed_heads.unpacked(part.have, part.heads)
    found: list[Signed] = []
    for position in positions:
        stored = seal_at(position)
        if stored is None or len(found) >= SHOWN_MAX:
            continue
        seal = _signed(stored.seal)
        if stored.last != position[2] or feed_heads.head_of(seal) != stated.get(position[1]):
            found.append(seal)
    return found


def seals_met(rp: str, stated: Vector, shown: Sequence[Signed], *, carrier: str) -> None:
    """Verify the seals in a peer's answer that differ from the own ones at the end of a feed.

    Args:
        stated: the vector of this domain's request.

    For another origin's feed both are evidence. For the own feed they show that this domain was restored from a copy
    and sealed anew: a new epoch begins.
    Raises redis.RedisError.
    """
    for statement in shown[:SHOWN_MAX]:
        try:
            seal = seal_read(statement)
        except BadSeal as error:
            misbehaviour_note("malformed", carrier=carrier, rp=rp, detail=str(error))
            continue
        key = seal.feed.key
        position = stated.get(key, 0)
        if seal.rp != rp or not seal.first <= position <= seal.last:
            misbehaviour_note("malformed", carrier=carrier, rp=rp, detail="It answered with a seal of another place.")
        elif seal.origin == config().domain:
            own_seal_seen(rp, statement)
        elif (stored := federated.seal_of(rp, key, position)) is not None:
            held = _signed(stored.seal)
            if held.payload != statement.payload and not feed_forked(rp, seal.origin, seal.epoch):
                proof_found(held, statement, carrier=carrier, whole=False)


def proof_found(one: Signed, other: Signed, *, carrier: str, whole: bool = True) -> None:
    """Keep two seals if they prove that their origin equivocated; send a new proof to all peers.

    Args:
        carrier: the peer that delivered them, or the second of them.
        whole: whether the carrier delivered both, so that it has the proof.

    Raises redis.RedisError.
    """
    if evidence_keep(one, other, carrier=carrier, whole=whole) == "new":
        _announce(but=carrier if whole else "")


def proofs_shown(peer: Partner, proofs: Iterable[wire.SealPair]) -> None:
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


def proofs_due(peer: Partner) -> bool:
    """Return whether there are proofs that the peer has not received."""
    return peer.gossip and bool(evidence_pending(peer.name, 1))


def proofs_for(peer: Partner) -> list[wire.SealPair]:
    """Return the next proofs for the peer."""
    return [wire.SealPair(proof.one, proof.other) for proof in evidence_pending(peer.name)] if peer.gossip else []


def proofs_acknowledged(peer: str, count: int) -> None:
    """Record that the peer has acknowledged a request with as many proofs as `proofs_for` returned."""
    told = evidence_pending(peer, count) if count else []
    if told:
        evidence_spread(peer, told[-1].id)


def _other(stored: StoredSeal | None, position: SealPosition, heads_stated: Mapping[SealPosition, bytes]) -> bool:
    """Return whether the seal held at a place differs from the one that a head names; a seal that is no longer kept
    shows nothing.
    """
    return stored is not None and (
        stored.last != position[2] or feed_heads.head_of(_signed(stored.seal)) != heads_stated[position]
    )


def _heads_stated(part: Part, head: LogHead) -> dict[str, bytes]:
    """Return the heads that a peer states of feeds other than the own one."""
    stated = feed_heads.unpacked(part.have, part.heads)
    stated.pop(Feed(config().domain, head.epoch).key, None)
    return stated


def _held(head: LogHead) -> dict[str, int]:
    return {**head.foreign, Feed(config().domain, head.epoch).key: head.sealed}


def _known(head: LogHead) -> dict[str, bytes]:
    return {**head.foreign_heads, Feed(config().domain, head.epoch).key: head.own_head}
