"""Knowledge of links, live: this domain's own from its tallies, others' from their rows in gossip."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.utils import timezone

from eventing.conf import config
from eventing.membership.selectors.directory import directory_record
from eventing.overlay.link_rows import MeasuredLink, links_of, links_payload
from eventing.peering.selectors.domain_documents import domain_document
from eventing.replication.rules.known_routes import LinkTrials, measured_link, traits_of
from eventing.replication.selectors.targets import target_participants, target_partners
from eventing.store.link_rows import link_rows_stored
from eventing.store.link_tallies import tallies_read


def own_links(peers: Sequence[str]) -> list[MeasuredLink]:
    """Return what this domain measures of its links with these domains. Raises redis.RedisError."""
    return [
        measured_link(peer, LinkTrials(one.delivered, one.lost, one.answered, one.silent), one.delay_ms, one.jitter_ms)
        for peer, one in tallies_read(peers).items()
    ]


def links_measured() -> bytes:
    """Return this domain's row of measured links; see membership/ports.py."""
    peers = target_partners()
    return links_payload(own_links(peers)) if peers else b""


def route_participants() -> list[str]:
    """Return the domains whose rows plans need; see membership/ports.py."""
    return target_participants(timezone.now())


def others_links() -> dict[str, list[MeasuredLink]]:
    """Return what other participants state of their links, by domain. Raises redis.RedisError."""
    found: dict[str, list[MeasuredLink]] = {}
    for row in link_rows_stored():
        links = links_of(row.payload)
        if links is not None and row.domain != config().domain:
            found[row.domain] = links
    return found


def traits(domains: Collection[str]) -> dict[str, dict[str, str]]:
    """Return what puts domains into shared-risk groups, as the directory and their documents state it."""
    return {domain: _traits(domain) for domain in sorted(domains)}


def _traits(domain: str) -> dict[str, str]:
    record = directory_record(domain)
    if record is not None:
        sponsor = "" if record.sponsorship is None else str(record.sponsorship.sponsor)
        return traits_of(record.url, record.zone, record.operator, sponsor)
    if domain == config().domain:
        return traits_of(config().base_url, config().zone, config().operator, "")
    document = domain_document(domain)
    return traits_of("" if document is None else document.url, "", "", "")
