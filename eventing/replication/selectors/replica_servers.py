"""The domains that serve an RP, with what this domain knows of their capacity, readers and delay: for the ranking of alternatives."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils import timezone

from eventing.conf import config
from eventing.membership.models import DirectoryDomain
from eventing.membership.ports import own_load
from eventing.membership.selectors.picture import known_now
from eventing.overlay.load_rows import CAPACITY, DomainLoad, clamped
from eventing.peering.selectors.domain_documents import domain_document
from eventing.replication.rules.ranking import ReplicaServer
from eventing.replication.selectors.replicas import participants
from eventing.rps.models import RendezvousPoint

CAPACITY_CLASS = 1
"""The class of a domain that states none: a small server."""


def replica_servers(rp: str) -> list[ReplicaServer]:
    """Return the domains that serve an RP, this one included, the home first; none if this domain has no such RP or serves it alone.

    Raises redis.RedisError.
    """
    row = RendezvousPoint.objects.filter(id=rp).first()
    if row is None:
        return []
    own, found = config().domain, participants(row, timezone.now())
    if not any(one.domain != own for one in found):
        return []
    known, classes = known_now(watching=False), _capacity_classes(one.domain for one in found)
    servers = []
    for one in found:
        capacity_class = classes.get(one.domain, CAPACITY_CLASS)
        if one.domain == own:
            sessions: int | None = own_load().sessions
        else:
            load = known.seen.loads.get(one.domain)
            sessions = None if load is None else clamped(DomainLoad(load.sessions), capacity_class).sessions
        servers.append(
            ReplicaServer(
                one.domain,
                one.url or (config().base_url if one.domain == own else _url_of(one.domain)),
                CAPACITY[capacity_class].sessions,
                sessions,
                known.seen.rtt_ms.get(one.domain),
                one.domain in known.suspected,
            )
        )
    return servers


def _capacity_classes(domains: Iterable[str]) -> dict[str, int]:
    rows = DirectoryDomain.objects.filter(name__in=list(domains), held=True)
    return dict(rows.values_list("name", "capacity"))


def _url_of(domain: str) -> str:
    document = domain_document(domain)
    return document.url if document is not None else ""
