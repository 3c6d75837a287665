"""Shapes of the map of the overlay, which `overlay.admin` keeps current (map_events.py)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from eventing.core.shapes import Count, Moment, Number, Shape, doc

SUSPECTED_MAX = 100  # bound: suspected domains named in a sample of the overlay; the others are counted
LINKS_MAX = 200  # bound: links with a round-trip time in a sample of the overlay; the others are left out
ZONES_MAX = 100  # bound: zones in a sample of the overlay; the smallest are left out


class MapDomain(Shape):
    """A domain on the map, as its own record states it."""

    name: str
    url: Annotated[str | None, doc("Null: it only calls others.")]
    zone: Annotated[str, doc("Empty: no zone is stated.")]
    capacity: Annotated[int, doc("Class from 0 to 3, by its own word.")]
    sponsor: Annotated[str | None, doc("Null for a founder.")]
    fingerprint: Annotated[str, doc("Of its identity key.")]
    convicted_at: Annotated[Moment | None, doc("When it was proved to have signed contradictory statements.")]


class MapLink(Shape):
    """A link of this domain that stands."""

    peer: str
    chosen: Annotated[bool, doc("This domain chose the link; else the other one did.")]
    anchor: Annotated[bool, doc("The other domain is an approved peer.")]
    reason: Annotated[str, doc("Why it was made.")]
    since: Moment


class MapLinkTime(Shape):
    """The round-trip time of a link."""

    peer: str
    rtt_ms: Annotated[Number | None, doc("Null: not measured lately.")]


class MapZone(Shape):
    """Figures of a zone."""

    zone: str
    known: Annotated[Count, doc("Domains of the directory.")]
    live: Annotated[Count, doc("Those that are not suspected.")]
    reporting: Annotated[Count, doc("Live domains that state their load.")]
    coverage: Annotated[Number, doc("Share of the live domains that the sums rest on, from 0 to 1.")]
    oldest_s: Annotated[Count, doc("Age of the oldest row that they rest on.")]
    disputed: Annotated[bool, doc("Reporters and a sample contradict each other.")]
    sessions: Annotated[Count, doc("Connected readers.")]
    events_in_per_s: Annotated[Count, doc("Events accepted.")]
    events_out_per_s: Annotated[Count, doc("Events delivered.")]
    backlog: Annotated[Count, doc("Events that wait to be forwarded to other domains.")]
    links: Annotated[Count, doc("Links of the overlay.")]


class MapFigures(Shape):
    """A sample of the overlay."""

    at: Annotated[Moment, doc("End of the interval.")]
    interval_s: Annotated[Number, doc("Length of the interval, seconds; 0: the first sample.")]
    running: Annotated[bool, doc("A process of this domain ran the overlay.")]
    health: Annotated[str | None, doc("How far this domain believes its own observations; null: no process ran.")]
    domains: Annotated[Count, doc("Domains of the directory.")]
    live: Annotated[Count | None, doc("Those that are not suspected; null: no process ran.")]
    reporting: Annotated[Count | None, doc("Live domains whose load was known; null: no process ran.")]
    coverage: Annotated[Number | None, doc("Share of the live domains that figures rest on; null: no process ran.")]
    suspected: Annotated[
        list[str], msgspec.Meta(max_length=SUSPECTED_MAX, description="Suspected domains, the first of them.")
    ]
    suspected_count: Count
    chosen: Annotated[Count, doc("Links that this domain chose.")]
    accepted: Annotated[Count, doc("Links by which it was chosen: its in-degree.")]
    anchors: Annotated[Count, doc("Links with approved peers, of either kind.")]
    links: Annotated[list[MapLinkTime], msgspec.Meta(max_length=LINKS_MAX, description="Round-trip times of links.")]
    rtt_p50_ms: Annotated[Number | None, doc("Median of these times; null: none was measured.")]
    rtt_p90_ms: Annotated[Number | None, doc("90th percentile of these times; null: none was measured.")]
    events: Annotated[Count, doc("Events of other domains that arrived in the interval, each once.")]
    copies: Annotated[Count, doc("Events that arrived again in the interval.")]
    sent: Annotated[Count, doc("Events that other domains acknowledged in the interval.")]
    zones: Annotated[list[MapZone], msgspec.Meta(max_length=ZONES_MAX, description="Figures of each zone.")]


class MapSample(msgspec.Struct):
    """The last sample, with the counts from which the next one is made.

    Attributes:
        totals: counts of traffic by partner (store/peer_state.py: TRAFFIC_NAMES).
    """

    figures: MapFigures
    totals: dict[str, dict[str, int]]


class MapState(Shape):
    """The map of the overlay."""

    domains: Annotated[dict[str, MapDomain], doc("Domains of the directory, by name.")]
    links: Annotated[dict[str, MapLink], doc("Links of this domain that stand, by the other domain.")]
    figures: Annotated[MapFigures | None, doc("The last sample; null: none was taken lately.")]


class MapSnapshot(Shape):
    """The map of the overlay at a place of `overlay.admin`."""

    cursor: Annotated[str, doc("Cursor of `overlay.admin` from which to continue.")]
    state: MapState
