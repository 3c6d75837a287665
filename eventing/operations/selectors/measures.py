"""Measures of the domain from SQL for monitoring: numbers of objects, quotas, backlogs of peers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min

from eventing.operations.selectors.holdings import Held, held_in_domain
from eventing.outbox.models import OutboxEntry
from eventing.peering.models import Peer


@dataclass(frozen=True, slots=True)
class ForwardingMeasure:
    """State of delivery to one peer; `oldest_at` is the time of the oldest waiting event, None if none waits."""

    backlog: int
    oldest_at: datetime | None
    failures: int


@dataclass(frozen=True, slots=True)
class DomainMeasures:
    """The present measures; `peers` counts them by state, `forwarding` is by the names of active ones."""

    held: Held
    outbox: int
    outbox_since: datetime | None
    peers: dict[str, int]
    forwarding: dict[str, ForwardingMeasure]


def domain_measures() -> DomainMeasures:
    """Read the measures: six queries, none of which reads more than one row of each peer."""
    outbox = OutboxEntry.objects.aggregate(entries=Count("id"), since=Min("created_at"))
    states = dict(Peer.objects.values_list("state").annotate(Count("name")).order_by())
    rows = Peer.objects.filter(state="active").values_list(
        "name", "delivery__backlog", "delivery__oldest_at", "delivery__failures"
    )
    forwarding = {
        name: ForwardingMeasure(backlog or 0, since, failures or 0) for name, backlog, since, failures in rows
    }
    return DomainMeasures(held_in_domain(), outbox["entries"], outbox["since"], states, forwarding)
