"""Ways: to whom a statement about a replica goes next, and how what came of it is told to who asked.

A statement on its way to an RP's home goes to the home itself, to whom we joined through, or to whom we are linked with;
nobody on the way can change anything, relays may only refuse. What the home refuses is told in the home's words.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from eventing.conf import config
from eventing.core import errors
from eventing.core.errors import Conflict, Forbidden, HeraldError, Unavailable
from eventing.peering.models import Peer
from eventing.peering.selectors.peers import peer_get
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire.client import PeerError, call
from eventing.peering.wire.messages import BadMessage
from eventing.replication.joining.messages import JoinAnswer, decoded
from eventing.replication.selectors.replicas import links_of_rp
from eventing.rps.models import RendezvousPoint

JOIN_PATH, LEAVE_PATH, INVITE_PATH, EXCHANGE_PATH = (
    f"/federation/v1/{name}" for name in ("join", "leave", "invite", "exchange")
)
ASK_S = 16.0  # for an answer to a join of ours; each relay waits RELAY_S less, so that its refusal comes in time
RELAY_S = 1.5
WAYS_MAX = 3  # towards the home that are tried
logger = logging.getLogger(__name__)

# What a home may refuse with, in whose name it is told on. Anything else is ours to explain.
_REFUSALS: Mapping[str, type[HeraldError]] = {
    kind.code: kind
    for kind in (
        errors.Forbidden,
        errors.NotFound,
        errors.Conflict,
        errors.Gone,
        errors.QuotaExceeded,
        errors.RateLimited,
    )
}


class Way(NamedTuple):
    """A peer that a statement may be sent to."""

    domain: str
    url: str


def way_to(peer: str) -> Way:
    way = way_if_active(peer)
    if way is None:
        raise Conflict(f"{peer} is no active peer of this domain; `herald peer list` shows those that are.")
    return way


def way_if_active(name: str) -> Way | None:
    peer: Peer | None = peer_get(name)
    return Way(peer.name, peer.url) if peer is not None and peer.active else None


def ways_home(row: RendezvousPoint | None, without: Sequence[str]) -> list[Way]:
    """Towards the home of our replica: the home itself, whom we joined through, whom we are linked with."""
    if row is None:
        return []
    names = dict.fromkeys([row.home, row.via, *links_of_rp(row.id)])
    ways = (way_if_active(name) for name in names if name and name not in without)
    return [way for way in ways if way is not None][:WAYS_MAX]


def towards_home(row: RendezvousPoint, path: str, message: bytes, through: Sequence[str]) -> tuple[bytes, Way]:
    """Send a message one domain nearer to the home of our replica. Raises HeraldError."""
    timeout_s = max(2.0, ASK_S - RELAY_S * len(through))
    ways = ways_home(row, through)
    for way in ways:
        try:
            return call(way.url, way.domain, path, message, timeout_s / len(ways)), way
        except PeerError as error:
            if error.kind == "refused":
                raise as_told(error, way.domain) from None
            logger.info("A message for %s about %s is not taken by %s: %s", row.home, row.id, way.domain, error.detail)
    raise Unavailable(
        f"{config().domain} has a replica and cannot reach the home {row.home} now. Try again later.", retry_after_s=30
    )


def join_answer(data: bytes, way: Way) -> JoinAnswer:
    """Decode what a domain answered to a join. Raises PeerError: an answer that is malformed is that domain's fault alone."""
    try:
        return decoded(data, JoinAnswer)
    except BadMessage as error:
        misbehaviour_note("malformed", carrier=way.domain, detail=str(error))
        raise PeerError("invalid", "Its answer to a join is malformed.") from None


def as_told(error: PeerError, domain: str) -> HeraldError:
    """What to tell who asked us: a refusal in the other domain's words, a failure as what we could not do."""
    said: Any = error.document.get("detail")
    if error.kind == "refused":
        kind = _REFUSALS.get(error.code, Forbidden)
        text = "".join(filter(str.isprintable, str(said)))[:500] if said else error.detail
        return kind(text if text.startswith("At ") else f"At {domain}: {text}", domain=domain)
    return Unavailable(f"{domain}: {error.detail} Try again later.", retry_after_s=error.retry_after_s or 10)
