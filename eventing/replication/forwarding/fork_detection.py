"""Fork detection: two domains that hold a feed equally far find out whether its origin equivocated
(core/seals/heads.py).

The life of a discovery: a request states the seals at which its feeds end (heads) -> the receiver looks up its own seal
at each of these places (`doubtful`), and answers with those that differ (`contradicting`) -> the sender has both now,
its own and the answered one, and verifies them (`seals_met`): both signed by the origin, they are a proof of
equivocation, which is kept and sent to all peers (gossip.py). An answer has heads too, for events that arrived here
after the request was sent: if they contradict those, the peer is asked again (`contradicted`). A head alone proves
nothing: it only makes the other side present a signed seal.
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
from eventing.log.federated_bulk import last_seals
from eventing.log.federated_types import LogHead, StoredSeal
from eventing.peering.selectors.evidence import feed_forked
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire import messages as wire
from eventing.replication.forwarding.gossip import proof_found
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
