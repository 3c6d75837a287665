"""Next hops of a statement about a replica, and the translation of another domain's refusal for the client.

A statement on its way to an RP's home is sent to the home itself, to the relay used to join, or to a linked peer; no
relay can change anything, it can only refuse. The home's refusals are passed on in the home's words.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from eventing.conf import config
from eventing.core import errors
from eventing.core.errors import ApplicationError, Conflict, Forbidden, Unavailable
from eventing.peering.directory_documents import document_fetch_identified
from eventing.peering.selectors.identities import identity
from eventing.peering.selectors.partners import is_suspended, partner_get
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire.client import PeerError, call
from eventing.peering.wire.messages import BadMessage
from eventing.replication.joining.messages import JoinAnswer, decoded
from eventing.replication.selectors.replicas import links_of_rp
from eventing.rps.models import RendezvousPoint

JOIN_PATH, LEAVE_PATH, INVITE_PATH, RELEASE_PATH, EXCHANGE_PATH = (
    f"/federation/v1/{name}" for name in ("join", "leave", "invite", "release", "exchange")
)
ASK_S = 16.0  # for an answer to a join; each relay waits RELAY_S less, so that its refusal arrives in time
RELAY_S = 1.5
NEXT_HOPS_MAX = 3  # routes towards the home that are tried
logger = logging.getLogger(__name__)

# Refusals of a home that are passed on in its name. This domain explains all others.
_REFUSALS: Mapping[str, type[ApplicationError]] = {
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


class NextHop(NamedTuple):
    """A peer that a statement may be sent to."""

    domain: str
    url: str


def next_hop_to(peer: str) -> NextHop:
    """Return the peer, or acquaintance, as a next hop. Raises Conflict."""
    next_hop = next_hop_if_active(peer)
    if next_hop is None:
        raise Conflict(f"{peer} is not an active peer of this domain. `herald peer list` shows all peers.")
    return next_hop


def next_hop_named(domain: str) -> NextHop:
    """Return a domain as a next hop that is a partner, or that the directory identifies: then it must be the home.

    Raises Conflict.
    """
    if config().overlay == "peers" or next_hop_if_active(domain) is not None or is_suspended(domain):
        return next_hop_to(domain)
    record = identity(domain).record
    if record is None or not record.url or not document_fetch_identified(domain):
        return next_hop_to(domain)
    return NextHop(domain, record.url)


def next_hop_if_active(name: str) -> NextHop | None:
    partner = partner_get(name)
    return None if partner is None else NextHop(partner.name, partner.url)


def next_hops_home(row: RendezvousPoint | None, without: Sequence[str]) -> list[NextHop]:
    """Next hops towards the home, in order of preference: the home, the relay used to join, linked peers."""
    if row is None:
        return []
    names = dict.fromkeys([row.home, row.via, *links_of_rp(row.id)])
    next_hops = (next_hop_if_active(name) for name in names if name and name not in without)
    return [next_hop for next_hop in next_hops if next_hop is not None][:NEXT_HOPS_MAX]


def towards_home(row: RendezvousPoint, path: str, message: bytes, through: Sequence[str]) -> tuple[bytes, NextHop]:
    """Send a message one domain nearer to the replica's home. Returns the answer, and the peer that gave it.

    Args:
        path: of the endpoint.
        through: domains that the message has passed, which are not asked again.

    Raises ApplicationError.
    """
    timeout_s = max(2.0, ASK_S - RELAY_S * len(through))
    next_hops = next_hops_home(row, through)
    for next_hop in next_hops:
        try:
            return call(next_hop.url, next_hop.domain, path, message, timeout_s / len(next_hops)), next_hop
        except PeerError as error:
            if error.kind == "refused":
                raise relayed_error(error, next_hop.domain) from None
            logger.info(
                "A message for %s about %s was refused by %s: %s", row.home, row.id, next_hop.domain, error.detail
            )
    raise Unavailable(
        f"{config().domain} has a replica and cannot reach the home {row.home} now. Try again later.", retry_after_s=30
    )


def join_answer(data: bytes, next_hop: NextHop) -> JoinAnswer:
    """Decode a domain's answer to a join. Raises PeerError: a malformed answer is that domain's fault alone."""
    try:
        return decoded(data, JoinAnswer)
    except BadMessage as error:
        misbehaviour_note("malformed", carrier=next_hop.domain, detail=str(error))
        raise PeerError("invalid", "Its answer to a join is malformed.") from None


def relayed_error(error: PeerError, domain: str) -> ApplicationError:
    """Return the error for the client: a refusal in the other domain's words, a failure as this domain's own."""
    said: Any = error.document.get("detail")
    if error.kind == "refused":
        kind = _REFUSALS.get(error.code, Forbidden)
        text = "".join(filter(str.isprintable, str(said)))[:500] if said else error.detail
        return kind(text if text.startswith("At ") else f"At {domain}: {text}", domain=domain)
    if error.kind == "busy" and error.code == Unavailable.code and said:
        text = "".join(filter(str.isprintable, str(said)))[:500]
        return Unavailable(f"At {domain}: {text}", retry_after_s=error.retry_after_s or 10)
    return Unavailable(f"{domain}: {error.detail} Try again later.", retry_after_s=error.retry_after_s or 10)
