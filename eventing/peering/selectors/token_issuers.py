"""Which other domains' tokens are accepted here, read at once: verification asks for it at a limited rate.

They are those of active peers, and of the domains that take part in a replica: whose RP is carried here, or who carries
one of ours. What their bearers may do is for policies to say. A peer that is not active is refused, whatever else it is.
"""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from eventing.access.rules.token_issuers import TokenIssuers
from eventing.peering.models import Peer
from eventing.peering.ports import domains_admitted, ever_admitted
from eventing.peering.rules.peers import State
from eventing.rps.models import RendezvousPoint


def token_issuers(*, now: datetime | None = None) -> TokenIssuers:
    """Who is accepted now. Three queries; names only."""
    now = now or timezone.now()
    states = dict(Peer.objects.values_list("name", "state"))
    taking_part = set(RendezvousPoint.objects.exclude(home="").values_list("home", flat=True).distinct())
    taking_part |= domains_admitted(now)
    suspended = {name for name, state in states.items() if state == State.SUSPENDED}
    active = {name for name, state in states.items() if state == State.ACTIVE}
    return TokenIssuers(frozenset(active | (taking_part - suspended)), frozenset(suspended))


def takes_part(name: str) -> bool:
    """Whether the domain's keys are needed for a replica, also one that has ended and whose seals are kept."""
    return RendezvousPoint.objects.filter(home=name).exists() or ever_admitted(name)
