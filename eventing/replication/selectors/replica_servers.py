"""The domains that serve an RP, with what this domain knows of their capacity, readers and delay: for the ranking of alternatives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache

from django.utils import timezone

from eventing.conf import config
from eventing.membership.models import DirectoryDomain
from eventing.membership.ports import own_load
from eventing.membership.selectors.picture import known_now
from eventing.overlay.load_rows import CAPACITY, DomainLoad, clamped
from eventing.peering.selectors.domain_documents import domain_document
from eventing.replication.rules.ranking import ReplicaServer
from eventing.replication.selectors.replicas import Participant, participants_of_all
from eventing.rps.models import RendezvousPoint

CAPACITY_CLASS = 1
"""The class of a domain that states none: a small server."""


def replica_servers(rps: Sequence[str]) -> dict[str, list[ReplicaServer]]:
    """Return for each RP the domains that serve it, this one included, the home first; none if this domain has no such RP or serves it alone.

    Reads as much for many RPs as for one, and one more for each domain whose URL is not stated there. Raises redis.RedisError.
    """
    found = {rp: list[ReplicaServer]() for rp in rps}
    own, rows = config().domain, RendezvousPoint.objects.filter(id__among=list(found))
    serving = {
        rp: those
        for rp, those in participants_of_all(list(rows), timezone.now()).items()
        if any(one.domain != own for one in those)
    }
    if serving:
        server = _server_maker({one.domain for those in serving.values() for one in those})
        found |= {rp: [server(one) for one in those] for rp, those in serving.items()}
    return found


def _server_maker(domains: Collection[str]) -> Callable[[Participant], ReplicaServer]:
    """Read what is known of these domains; return a function that adds it to a participant."""
    own, known, url_of = config().domain, known_now(watching=False), cache(_url_of)
    rows = DirectoryDomain.objects.filter(name__in=list(domains), held=True)
    classes, own_sessions = dict(rows.values_list("name", "capacity")), own_load().sessions

    def server(one: Participant) -> ReplicaServer:
        capacity_class = classes.get(one.domain, CAPACITY_CLASS)
        sessions: int | None = own_sessions
        if one.domain != own:
            load = known.seen.loads.get(one.domain)
            sessions = None if load is None else clamped(DomainLoad(load.sessions), capacity_class).sessions
        return ReplicaServer(
            one.domain,
            one.url or (config().base_url if one.domain == own else url_of(one.domain)),
            CAPACITY[capacity_class].sessions,
            sessions,
            known.seen.rtt_ms.get(one.domain),
            one.domain in known.suspected,
        )

    return server


def _url_of(domain: str) -> str:
    document = domain_document(domain)
    return document.url if document is not None else ""
