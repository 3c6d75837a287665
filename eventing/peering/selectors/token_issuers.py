"""The other domains whose tokens are accepted here, in one read; verification reads them at a limited rate.

They are active peers, and domains that take part in a replica: homes of RPs carried here, and carriers of RPs of this
domain. Policies decide what their bearers may do. A peer that is not active is refused in any case.
"""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from eventing.access.rules.token_issuers import TokenIssuers
from eventing.peering.models import Peer
from eventing.peering.ports import domains_admitted, ever_admitted
from eventing.peering.rules.peers import PeeringState
from eventing.rps.models import RendezvousPoint


def token_issuers(*, now: datetime | None = None) -> TokenIssuers:
    """Return the accepted issuers. Three queries; names only."""
    now = now or timezone.now()
    states = dict(Peer.objects.values_list("name", "state"))
    taking_part = set(RendezvousPoint.objects.exclude(home="").values_list("home", flat=True).distinct())
    taking_part |= {row.authority for row in RendezvousPoint.objects.filter(term__gt=0).only("genesis", "home")}
    taking_part |= domains_admitted(now)
    suspended = {name for name, state in states.items() if state == PeeringState.SUSPENDED}
    active = {name for name, state in states.items() if state == PeeringState.ACTIVE}
    return TokenIssuers(frozenset(active | (taking_part - suspended)), frozenset(suspended))


def takes_part(name: str) -> bool:
    """Return whether the domain's keys are needed for a replica, including one that has ended and whose seals are kept."""
    return RendezvousPoint.objects.filter(home=name).exists() or ever_admitted(name)
