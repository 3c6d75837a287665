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
from eventing.sql.remembered import remembered


def token_issuers(*, now: datetime | None = None) -> TokenIssuers:
    """Return the accepted issuers. Three queries; names only."""
    states = dict(_states())
    taking_part = _homes() | domains_admitted(now or timezone.now())
    suspended = {name for name, state in states.items() if state == PeeringState.SUSPENDED}
    active = {name for name, state in states.items() if state == PeeringState.ACTIVE}
    return TokenIssuers(frozenset(active | (taking_part - suspended)), frozenset(suspended))


@remembered
def _states() -> list[tuple[str, str]]:
    return list(Peer.objects.values_list("name", "state"))


@remembered
def _homes() -> set[str]:
    """Return the present and former homes of RPs of other domains."""
    homes = set(RendezvousPoint.objects.exclude(home="").values_list("home", flat=True).distinct())
    moved = RendezvousPoint.objects.exclude(homes=None).filter(term__gt=0)  # a term has a record, which an index finds
    return homes | {row.authority for row in moved.only("genesis", "home")}


def takes_part(name: str) -> bool:
    """Return whether the domain's keys are needed for a replica, including one that has ended and whose seals are kept."""
    return RendezvousPoint.objects.filter(home=name).exists() or ever_admitted(name)
