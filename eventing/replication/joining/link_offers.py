"""Offers of all links by the sweep: only when something has changed that decides about them.

Looking at each RP costs half a second of a core for 8,000 of them (docs/federation/numbers.md), and the sweep runs every
2 s. What decides is the participants, whose changes are counted, the partners, and time: admissions expire, leases of
links end, stopped links are offered again.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from eventing.core.container import per_process
from eventing.peering.selectors.partners import partners
from eventing.replication.selectors.regions import admission_next_end, links_version
from eventing.replication.selectors.replicas import rps_stopped_before
from eventing.replication.services.replica_links import OFFER_AGAIN_S, Offered, links_offer

# A tenth of a link's lease (replica_links.py: LEASE_S), of which the other half is left when it is renewed.
ALL_S = 30  # bound: seconds between two looks at all RPs; a change that is not counted waits so long


class _Offers:
    """Result of the last look at all RPs, in this process."""

    version: tuple[object, ...] | None = None
    until: datetime | None = None


_offers = per_process(_Offers)


def links_offer_due(*, now: datetime) -> list[Offered]:
    """Offer links wherever that may be due. Returns the links that begin, or begin again."""
    held = _offers()
    version = (
        *links_version(),
        *(partner.name for partner in partners()),
    )  # before the look: later changes are not in it
    if version == held.version and held.until is not None and now < held.until:
        again = rps_stopped_before(now - timedelta(seconds=OFFER_AGAIN_S))
        return links_offer(rps=again, now=now) if again else []
    ends = admission_next_end(now)
    held.until = min(now + timedelta(seconds=ALL_S), ends or datetime.max.replace(tzinfo=now.tzinfo))
    held.version = version
    return links_offer(now=now)
