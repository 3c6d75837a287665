"""Stories: two domains that hold a feed equally far find out whether its origin told them the same (core/seals/heads.py).

The life of a discovery: a request says by which seals its feeds end -> the receiver looks for its own seal at each of these
places (`doubtful`), and answers with those that are others (`contradicting`) -> the sender has both now, its own and the
answered one, and judges them (`seals_met`): both signed by the origin, they are the proof, which is kept and goes to
everybody (gossip.py). An answer has tips too, for what came here after its request was sent: where they contradict that,
the peer is asked again (`contradicted`). No tip is believed: it only has a signed seal shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from eventing.conf import config
from eventing.core.decoding import msgpack_reader
from eventing.core.events.feeds import Feed
from eventing.core.events.vectors import Vector
from eventing.core.seals import heads as tips
from eventing.core.seals.seals import BadSeal, seal_read
from eventing.core.signing import Signed
from eventing.log import federated
from eventing.log.federated import Head, StoredSeal
from eventing.log.federated_bulk import last_seals
from eventing.peering.selectors.evidence import feed_forked
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire import messages as wire
from eventing.replication.forwarding.gossip import proof_found
from eventing.replication.services.sealing import own_seal_seen

COMPARED_MAX = 128  # places of one request that are looked at here; the others with a later one
SHOWN_MAX = 8  # seals of an RP in one answer; one convicts
TIPS_MAX = 16_384  # of one request: 256 KiB beside its vectors
_signed = signed_read = msgpack_reader(Signed)

Place = tuple[str, str, int]  # RP, feed key, sequence
Part = wire.RpPart | wire.RpAnswer


def tips_say(parts: Iterable[Part], heads: Mapping[str, Head]) -> None:
    """Say in the parts of a message by which seals their vectors end, as far as the heads of these RPs know."""
    room = TIPS_MAX
    for part in parts:
        room -= len(part.have)
        if room < 0:
            return
        head = heads.get(part.rp)
        if head is None:
            continue
        held, known = _held(head), _known(head)
        part.tips = tips.packed(
            part.have, {feed: tip for feed, tip in known.items() if held.get(feed) == part.have.get(feed)}
        )


def doubtful(parts: Iterable[tuple[wire.RpPart, Head]]) -> list[Place]:
    """The places of a request at which our seal is to be compared with its tip.

    Our own feeds are left out: that is for the others to judge, and for us when they answer what we say ourselves.
    """
    found = [
        (part.rp, feed, part.have[feed])
        for part, head in parts
        for feed in tips.doubtful(part.have, _said(part, head), head.foreign, head.tips)
    ]
    return found[:COMPARED_MAX]


def contradicted(answers: Mapping[str, wire.RpAnswer], asked: Mapping[str, Vector]) -> list[str]:
    """The RPs at which an answer contradicts what came here meanwhile: the peer is to be asked again, with our tips of now.

    Args:
        answers: by RP.
        asked: the vectors of the request, by RP.

    Raises redis.RedisError.
    """
    news = [
        rp for rp, part in answers.items() if any(last > asked[rp].get(feed, 0) for feed, last in part.have.items())
    ]
    places: dict[Place, bytes] = {}
    for rp, head in zip(news, federated.heads(news), strict=True):
        if head is not None:
            part, said = answers[rp], _said(answers[rp], head)
            for feed in tips.untold(asked[rp], part.have, said, head.foreign, head.tips):
                places[rp, feed, part.have[feed]] = said[feed]
    doubts = list(places)[:COMPARED_MAX]
    return list(
        dict.fromkeys(
            place[0] for place, stored in zip(doubts, last_seals(doubts), strict=True) if _other(stored, place, places)
        )
    )


def contradicting(
    part: wire.RpPart, places: Sequence[Place], seal_at: Callable[[Place], StoredSeal | None]
) -> list[Signed]:
    """The seals here at these places of the RP which are not those that the tips name."""
    said = tips.unpacked(part.have, part.tips)
    found: list[Signed] = []
    for place in places:
        stored = seal_at(place)
        if stored is None or len(found) >= SHOWN_MAX:
            continue
        seal = _signed(stored.seal)
        if stored.last != place[2] or tips.tip(seal) != said.get(place[1]):
            found.append(seal)
    return found


def seals_met(rp: str, said: Vector, shown: Sequence[Signed], *, carrier: str) -> None:
    """Judge the seals that a peer answered with, because ours at the end of a feed are others.

    Args:
        said: the vector of our request.

    Of another origin's feed both are evidence. Of our own, we were put back from a copy and sealed anew: a new epoch begins.
    Raises redis.RedisError.
    """
    for statement in shown[:SHOWN_MAX]:
        try:
            seal = seal_read(statement)
        except BadSeal as error:
            misbehaviour_note("malformed", carrier=carrier, rp=rp, detail=str(error))
            continue
        key = seal.feed.key
        place = said.get(key, 0)
        if seal.rp != rp or not seal.first <= place <= seal.last:
            misbehaviour_note("malformed", carrier=carrier, rp=rp, detail="It answered with a seal of another place.")
        elif seal.origin == config().domain:
            own_seal_seen(rp, statement)
        elif (stored := federated.seal_of(rp, key, place)) is not None:
            held = _signed(stored.seal)
            if held.payload != statement.payload and not feed_forked(rp, seal.origin, seal.epoch):
                proof_found(held, statement, carrier=carrier, whole=False)


def _other(stored: StoredSeal | None, place: Place, tips_said: Mapping[Place, bytes]) -> bool:
    """Whether our seal at a place is another than the one that a tip names; what is not kept any more shows nothing."""
    return stored is not None and (stored.last != place[2] or tips.tip(_signed(stored.seal)) != tips_said[place])


def _said(part: Part, head: Head) -> dict[str, bytes]:
    """The tips that a peer states of feeds other than our own."""
    said = tips.unpacked(part.have, part.tips)
    said.pop(Feed(config().domain, head.epoch).key, None)
    return said


def _held(head: Head) -> dict[str, int]:
    return {**head.foreign, Feed(config().domain, head.epoch).key: head.sealed}


def _known(head: Head) -> dict[str, bytes]:
    return {**head.tips, Feed(config().domain, head.epoch).key: head.tip}
