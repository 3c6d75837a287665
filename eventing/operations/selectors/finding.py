"""Search for objects of the domain by a part of their names: rendezvous points, peers, durable subscriptions, principals."""

from __future__ import annotations

from typing import Any

from eventing.core.errors import InvalidRequest
from eventing.core.principals import Principal
from eventing.core.roles import oversees
from eventing.peering.models import Peer
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.rendezvous_point_lists import rendezvous_points_listed_by
from eventing.subscriptions.models import Subscription

TEXT_CHARS_MAX = 100  # bound: characters of the text; the request is refused
EACH_MAX = 8  # bound: objects of a kind in the answer; the others need a longer text
SEEN_MAX = 100  # bound: rendezvous points that are examined for who may not see all; others need a longer text


def objects_found(*, principal: Principal, text: str) -> dict[str, list[dict[str, Any]]]:
    """Return what the principal may see: {"rps": [{id, name, title}], "peers": [{name, state}], "subscriptions": [{id, rp, owner}],
    "principals": [{name}]}, each at most EACH_MAX.

    Principals are those who own a durable subscription or created a rendezvous point. Who does not oversee the domain finds the
    rendezvous points that they may describe, and their own subscriptions. Raises InvalidRequest.
    """
    if not 0 < len(text) <= TEXT_CHARS_MAX or "\0" in text:
        raise InvalidRequest(f"q is a text of 1 to {TEXT_CHARS_MAX} characters.")
    all_ = oversees(principal)
    page = rendezvous_points_listed_by(
        principal=principal, sort="name", text=text, limit=EACH_MAX if all_ else SEEN_MAX
    )
    rps = [{"id": one.rp.id, "name": one.rp.name, "title": one.rp.title} for one in page.items[:EACH_MAX]]
    return {
        "rps": rps,
        "peers": _peers(text) if all_ else [],
        "subscriptions": _subscriptions(principal, text, all_),
        "principals": _principals(text) if all_ else [],
    }


def _peers(text: str) -> list[dict[str, Any]]:
    rows = Peer.objects.filter(name__icontains=text).order_by("name")[:EACH_MAX]
    return [{"name": row.name, "state": row.state} for row in rows]


def _subscriptions(principal: Principal, text: str, all_: bool) -> list[dict[str, Any]]:
    rows = Subscription.objects.filter(id__startswith=text.lower())
    if all_:
        rows = rows | Subscription.objects.filter(owner__icontains=text)
    elif principal.narrowed:
        return []
    else:
        rows = rows.filter(owner=principal.identity)
    return [{"id": row.id, "rp": row.at, "owner": row.owner} for row in rows.order_by("id")[:EACH_MAX]]


def _principals(text: str) -> list[dict[str, Any]]:
    owners = Subscription.objects.filter(owner__icontains=text).order_by("owner").values_list("owner", flat=True)
    creators = (
        RendezvousPoint.objects.filter(creator__icontains=text).order_by("creator").values_list("creator", flat=True)
    )
    found = {*owners.distinct()[:EACH_MAX], *creators.distinct()[:EACH_MAX]}
    return [{"name": name} for name in sorted(found)[:EACH_MAX]]
