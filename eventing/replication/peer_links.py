"""How the links with a peer go, one per RP that is shared with it, a page at a time: for whoever looks why events wait."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from eventing.conf import config
from eventing.core.events import vectors
from eventing.core.timestamps import timestamp
from eventing.overlay.broadcast import Link
from eventing.replication.forwarding.watermarks import links_read
from eventing.replication.joining.presenters import link_mode, own_vectors
from eventing.replication.models import ReplicaLink
from eventing.sql.pages import Page, cursor_of, key_of

_ORDER = "peer-links"


def peer_links(peer: str, *, limit: int, cursor: str | None = None) -> Page[dict[str, Any]]:
    """A page of the links with `peer`, by the RPs' ids. Raises InvalidCursor, redis.RedisError.

    Each is `rp`, `name`, `title`, `home`, `link` (`eager`, `lazy`, `stopped`), `detail` (why it stopped, or is held off),
    `vector` (what the peer said to hold), `own` (what is held here), `backlog` (events that the peer lacks), `ahead`
    (events that it says to hold and are not here), `heard_at` (when it spoke of the RP last; null: never), `held_until`
    (nothing is sent before; null: nothing is held off).
    """
    rows = ReplicaLink.objects.filter(peer=peer).select_related("rp").order_by("rp_id")
    if cursor is not None:
        rows = rows.filter(rp_id__gt=key_of(_ORDER, cursor))
    found = list(rows[: limit + 1])
    some = found[:limit]
    ids = [row.rp_id for row in some]
    links, own = links_read(peer, ids), own_vectors(ids)
    items = [_shown(row, links[row.rp_id], own[row.rp_id]) for row in some]
    return Page(items, cursor_of(_ORDER, ids[-1]) if len(found) > limit else None)


def _shown(row: ReplicaLink, link: Link, own: dict[str, int]) -> dict[str, Any]:
    live = row.state == ReplicaLink.State.LIVE
    shut = live and link.shut_until > timezone.now().timestamp()
    return {
        "rp": row.rp_id,
        "name": row.rp.name,
        "title": row.rp.title,
        "home": row.rp.home or config().domain,
        "link": link_mode(link, own) if live else "stopped",
        "detail": row.detail if not live else "It refused this rendezvous point." if shut else "",
        "vector": link.theirs,
        "own": own,
        "backlog": vectors.distance(link.theirs, own),
        "ahead": vectors.distance(own, link.theirs),
        "heard_at": _moment(link.heard_at),
        "held_until": _moment(link.shut_until) if shut else None,
    }


def _moment(at: float) -> str | None:
    return timestamp(datetime.fromtimestamp(at, UTC)) if at else None
