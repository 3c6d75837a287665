"""State of the links with a peer, one per shared RP, in pages: for operators who look for the cause of a backlog."""

from __future__ import annotations

from datetime import UTC, datetime

from django.utils import timezone

from eventing.conf import config
from eventing.core.events import vectors
from eventing.core.timestamps import timestamp
from eventing.log.watermarks import links_read
from eventing.overlay.link_state import Link
from eventing.replication.joining.presenters import link_mode, own_vectors
from eventing.replication.models import ReplicaLink
from eventing.replication.selectors.replicas import links_with
from eventing.replication.shapes import PeerLinkAnswer
from eventing.sql.pages import Page, cursor_of, key_of

_ORDER = "peer-links"


def peer_links(peer: str, *, limit: int, cursor: str | None = None) -> Page[PeerLinkAnswer]:
    """Return a page of the links with `peer`, by the RPs' ids. Raises InvalidCursor, redis.RedisError."""
    found = links_with(peer, after="" if cursor is None else key_of(_ORDER, cursor), count=limit + 1)
    some = found[:limit]
    ids = [row.rp_id for row in some]
    links, own = links_read(peer, ids), own_vectors(ids)
    items = [_shown(row, links[row.rp_id], own[row.rp_id]) for row in some]
    return Page(items, cursor_of(_ORDER, ids[-1]) if len(found) > limit else None)


def _shown(row: ReplicaLink, link: Link, own: dict[str, int]) -> PeerLinkAnswer:
    live = row.state == ReplicaLink.State.LIVE
    shut = live and link.refusals.shut_until > timezone.now().timestamp()
    return PeerLinkAnswer(
        rp=row.rp_id,
        name=row.rp.name,
        title=row.rp.title,
        home=row.rp.home or config().domain,
        link=link_mode(link, own) if live else "stopped",
        detail=row.detail if not live else "It refused this rendezvous point." if shut else "",
        vector=link.theirs,
        own=own,
        backlog=vectors.distance(link.theirs, own),
        ahead=vectors.distance(own, link.theirs),
        heard_at=_moment(link.peer.received_at),
        held_until=_moment(link.refusals.shut_until) if shut else None,
    )


def _moment(at: float) -> str | None:
    return timestamp(datetime.fromtimestamp(at, UTC)) if at else None
