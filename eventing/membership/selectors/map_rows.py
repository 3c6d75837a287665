"""Reads of the map: domains and links as `overlay.admin` shows them, and the last sample."""

from __future__ import annotations

from collections.abc import Iterable

from eventing.core.decoding import Undecodable, json_reader
from eventing.core.timestamps import timestamp
from eventing.membership.map_shapes import MapDomain, MapLink, MapSample, MapState
from eventing.membership.models import DirectoryDomain, OverlayLink
from eventing.membership.selectors.membership import membership_get
from eventing.store.overlay_samples import overlay_sample_stored

NAMES_AT_ONCE = 500  # of one query
_sample = json_reader(MapSample)


def map_domain(row: DirectoryDomain) -> MapDomain:
    """Return a domain as the map shows it."""
    return MapDomain.of(row, url=row.url or None, sponsor=row.sponsor or None)


def map_link(row: OverlayLink) -> MapLink:
    """Return a link as the map shows it."""
    return MapLink.of(row)


def map_domains(names: Iterable[str]) -> dict[str, MapDomain]:
    """Return those of the domains that are on the map, by name."""
    wanted = list(names)
    found: dict[str, MapDomain] = {}
    for begin in range(0, len(wanted), NAMES_AT_ONCE):
        rows = DirectoryDomain.objects.filter(name__in=wanted[begin : begin + NAMES_AT_ONCE], held=True)
        found.update((row.name, map_domain(row)) for row in rows.defer("record"))
    return found


def map_state() -> MapState:
    """Return the whole map. Raises redis.RedisError."""
    rows = DirectoryDomain.objects.filter(held=True).defer("record").order_by("name")
    links = OverlayLink.objects.filter(up=True).order_by("peer")
    sample, membership = sample_last(), membership_get()
    taken = membership is not None and sample is not None and sample.figures.at >= timestamp(membership.joined_at)
    return MapState(
        domains={row.name: map_domain(row) for row in rows.iterator()},
        links={row.peer: map_link(row) for row in links},
        figures=sample.figures if taken and sample is not None else None,
    )


def sample_last() -> MapSample | None:
    """Return the last sample; None if none was taken lately. Raises redis.RedisError."""
    stored = overlay_sample_stored()
    try:
        return None if stored is None else _sample(stored)
    except Undecodable:  # of another version of the software
        return None
