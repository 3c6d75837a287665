"""Presentation of an RP's participants: role, address, version vector as far as known, and state of the link."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone
from msgspec.structs import replace

from eventing.conf import config
from eventing.core.events import vectors
from eventing.core.events.feeds import Feed
from eventing.log import federated
from eventing.log.federated import LogHead
from eventing.log.watermarks import links_read
from eventing.overlay.link_state import Link
from eventing.peering.selectors.domain_documents import domain_document
from eventing.replication.models import ReplicaLink
from eventing.replication.selectors.replicas import Participant, links_by_peer, participants
from eventing.rps.models import RendezvousPoint
from eventing.rps.shapes import ParticipantAnswer


def replicas_shown(row: RendezvousPoint) -> list[ParticipantAnswer]:
    """Return the participants of an RP, the home first, this domain included."""
    ours = own_vector(row.id)
    links = links_by_peer(row)
    return [_shown(one, ours, links.get(one.domain)) for one in participants(row, timezone.now())]


def own_vector(rp: str) -> dict[str, int]:
    """Return this domain's vector of an RP, by feed; empty before anything was published."""
    return own_vectors([rp])[rp]


def own_vectors(rps: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return this domain's vectors of several RPs, by RP."""
    return {rp: {} if head is None else _vector(head) for rp, head in zip(rps, federated.heads(rps), strict=True)}


def _vector(head: LogHead) -> dict[str, int]:
    own = {Feed(config().domain, head.epoch).key: head.own} if head.own else {}
    return {**own, **head.foreign}


def _shown(one: Participant, ours: dict[str, int], link: ReplicaLink | None) -> ParticipantAnswer:
    here = one.domain == config().domain
    url = config().base_url if here else one.url or _url(one.domain)
    shown = ParticipantAnswer(
        domain=one.domain, url=url, role=one.role, vector=ours if here else {}, link=None, backlog=None
    )
    if here or link is None:
        return shown
    state = links_read(one.domain, [link.rp_id])[link.rp_id]
    mode = link_mode(state, ours) if link.state == ReplicaLink.State.LIVE else "stopped"
    return replace(shown, vector=state.theirs, link=mode, backlog=vectors.distance(state.theirs, ours))


def link_mode(state: Link, ours: dict[str, int]) -> str:
    """Return `lazy` for a link that is lazy for all held feeds, else `eager`: a link has the mode for each feed."""
    return "lazy" if ours and ours.keys() <= state.tree.lazy else "eager"


def _url(domain: str) -> str:
    document = domain_document(domain)
    return document.url if document is not None else ""
