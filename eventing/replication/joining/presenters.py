"""How an RP's participants are shown: who, where, what each holds as far as we know, and how our link with it goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from eventing.conf import config
from eventing.core.events import vectors
from eventing.core.events.feeds import Feed
from eventing.log import federated
from eventing.overlay.broadcast import Link
from eventing.peering.selectors.domain_documents import domain_document
from eventing.replication.forwarding.watermarks import links_read
from eventing.replication.models import ReplicaLink
from eventing.replication.selectors.replicas import Participant, participants
from eventing.rps.models import RendezvousPoint


def replicas_shown(row: RendezvousPoint) -> list[dict[str, Any]]:
    """The participants of an RP, the home first, ourselves among them.

    Each is `domain`, `url`, `role` (`home` or `replica`), `vector` (what it holds: ours as it is, others' as they said
    last), `link` (`eager`, `lazy`, `stopped`, or None where we have none), `backlog` (events that it lacks of ours; None
    without a link).
    """
    ours = own_vector(row.id)
    links = {link.peer: link for link in ReplicaLink.objects.filter(rp=row)}
    return [_shown(one, ours, links.get(one.domain)) for one in participants(row, timezone.now())]


def own_vector(rp: str) -> dict[str, int]:
    """What this domain holds of an RP, by feed; empty before anything was published."""
    return own_vectors([rp])[rp]


def own_vectors(rps: Sequence[str]) -> dict[str, dict[str, int]]:
    """The same of several, by RP."""
    return {rp: {} if head is None else _vector(head) for rp, head in zip(rps, federated.heads(rps), strict=True)}


def _vector(head: federated.Head) -> dict[str, int]:
    own = {Feed(config().domain, head.epoch).key: head.own} if head.own else {}
    return {**own, **head.foreign}


def _shown(one: Participant, ours: dict[str, int], link: ReplicaLink | None) -> dict[str, Any]:
    shown: dict[str, Any] = {"domain": one.domain, "url": one.url or _url(one.domain), "role": one.role}
    if one.domain == config().domain:
        return {**shown, "url": config().base_url, "vector": ours, "link": None, "backlog": None}
    if link is None:
        return {**shown, "vector": {}, "link": None, "backlog": None}
    state = links_read(one.domain, [link.rp_id])[link.rp_id]
    mode = link_mode(state, ours) if link.state == ReplicaLink.State.LIVE else "stopped"
    return {**shown, "vector": state.theirs, "link": mode, "backlog": vectors.distance(state.theirs, ours)}


def link_mode(state: Link, ours: dict[str, int]) -> str:
    """A link is eager or lazy for each feed by itself; one that is lazy for all that we hold is shown as lazy."""
    return "lazy" if ours and ours.keys() <= state.lazy else "eager"


def _url(domain: str) -> str:
    document = domain_document(domain)
    return document.url if document is not None else ""
