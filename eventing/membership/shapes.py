"""Shapes of the overlay's answers."""

from __future__ import annotations

from typing import Annotated

import msgspec

from eventing.core.shapes import Count, Moment, Number, Shape, doc, one_of, page_of


class OverlayFounderAnswer(Shape):
    """A founder that this domain trusts."""

    name: str
    fingerprint: Annotated[str, doc("Of its identity key.")]
    learned_from: Annotated[str, doc("The sponsor whose chain of sponsors ended there.")]
    added_at: Moment


class OverlayZone(Shape):
    """Domains of one zone."""

    zone: Annotated[str, doc("Empty: no zone is stated.")]
    domains: Count


class OverlayFigure(Shape):
    """A number of many domains, with what it rests on."""

    value: Count
    coverage: Annotated[Number, doc("Share of the live domains whose rows it rests on, from 0 to 1.")]
    oldest_s: Annotated[Count, doc("Age of the oldest of these rows.")]
    disputed: Annotated[bool, doc("Reporters and a sample of the domains contradict each other; the sample is used.")]


class OverlayLoad(Shape):
    """The load of a domain, by its own word, clamped to its capacity class."""

    sessions: Annotated[Count, doc("Connected readers.")]
    events_in_per_s: Annotated[Count, doc("Events accepted.")]
    events_out_per_s: Annotated[Count, doc("Events delivered.")]
    bytes_per_s: Annotated[Count, doc("Bytes of events delivered.")]
    backlog: Annotated[Count, doc("Events that wait to be forwarded to other domains.")]
    links: Annotated[Count, doc("Links of the overlay.")]
    busy_permille: Annotated[Count, doc("Thousandths of its processors in use by its gateways.")]


class OverlayDomainLoad(OverlayLoad):
    """The last row of a domain's load."""

    age_s: Count


class OverlayLoadFigures(Shape):
    """Figures of each kind of load."""

    sessions: OverlayFigure
    events_in_per_s: OverlayFigure
    events_out_per_s: OverlayFigure
    bytes_per_s: OverlayFigure
    backlog: OverlayFigure
    links: OverlayFigure
    busy_permille: OverlayFigure


class OverlayFigures(Shape):
    """Figures of a zone, or of the whole federation."""

    zone: Annotated[str | None, doc("Empty: all zones of few domains; null: the whole federation.")]
    known: Annotated[Count, doc("Domains of the directory.")]
    live: Annotated[Count, doc("Those that are not suspected.")]
    reporting: Annotated[OverlayFigure, doc("Live domains that state their load.")]
    sums: OverlayLoadFigures
    maxima: OverlayLoadFigures


class OverlaySuspicion(Shape):
    """A domain that does not answer its monitors."""

    domain: str
    since: Moment
    accusers: Annotated[list[str], doc("Monitors whose accusations count now.")]


class OverlayHealth(Shape):
    """Degree to which this domain believes its own observations."""

    state: Annotated[
        str,
        one_of("well", "suspects-itself", "accuses-nobody"),
        doc(
            "suspects-itself: so many links are silent that it waits longer before it drops one; accuses-nobody: so many "
            "of the domains that it observes are silent that it accuses none."
        ),
    ]
    wait_factor: Annotated[Count, doc("Factor by which it waits longer for silent links.")]
    observed: Annotated[Count, doc("Domains that it observes as their monitor.")]
    silent: Annotated[Count, doc("Those of them that do not answer.")]
    accused_by: Annotated[list[str], doc("Monitors that accuse this domain; it answers when they are enough to count.")]


class OverlayScore(Shape):
    """Score of a domain at the rendezvous points of a region, by own observation."""

    peer: str
    region: Annotated[str, doc("Id of the rendezvous points that the same domains share; empty: of the link itself.")]
    score: Annotated[float, doc("From -10 to 1.")]
    reason: Annotated[str, doc("The fault that weighs most; empty: none.")]
    effects: Annotated[
        list[Annotated[str, one_of("demoted", "not-chosen", "condemned")]], doc("What follows from the score now.")
    ]
    held_back_s: Annotated[Count, doc("Seconds for which the domain gets no link here; 0: it may have one.")]


class OverlayPicture(Shape):
    """Knowledge of the federation that the process of the overlay has."""

    at: Moment
    whole: OverlayFigures
    zones: Annotated[
        list[OverlayFigures], doc("Of each zone; a zone of few domains is counted with others of the kind.")
    ]
    suspected: list[OverlaySuspicion]
    health: OverlayHealth
    scores: Annotated[list[OverlayScore], doc("Of the domains with a deed that counts, the worst first.")]
    load: Annotated[OverlayLoad | None, doc("This domain's own, as measured last; null: not yet.")]


class SeenDomains(msgspec.Struct, array_like=True):
    """Knowledge of single domains that the process of the overlay has, for answers about them.

    Attributes:
        loads: by name.
        rtt_ms: by name, smoothed round-trip times of requests, where any were sent lately.
    """

    loads: dict[str, OverlayDomainLoad]
    rtt_ms: dict[str, float]


class OverlayAnswer(Shape):
    """This domain's part in the overlay."""

    domain: str
    joined: bool
    running: Annotated[bool, doc("A process of this domain runs the overlay now.")]
    problem: Annotated[str | None, doc("What keeps it from running, one sentence; null: nothing that is known.")]
    mode: Annotated[str, one_of("peers", "admitted", "open"), doc("HERALD_OVERLAY.")]
    joined_at: Annotated[Moment | None, doc("Null: this domain takes part in no overlay.")]
    sponsor: Annotated[str | None, doc("Null for a founder.")]
    version: Annotated[Count | None, doc("Of this domain's newest record.")]
    fingerprint: Annotated[str | None, doc("Of this domain's identity key.")]
    founders: list[OverlayFounderAnswer]
    domains: Annotated[Count, doc("Domains in the directory, this one included.")]
    links: Annotated[Count, doc("Links that stand.")]
    zones: Annotated[list[OverlayZone], doc("The zones with the most domains.")]
    sponsored_today: Annotated[Count, doc("Sponsorships that this domain granted today (UTC).")]
    quota: Annotated[Count, doc("Sponsorships that this domain may grant in a day.")]
    picture: Annotated[OverlayPicture | None, doc("Null: no process runs the overlay, or it has just begun.")]


class OverlayLinkAnswer(Shape):
    """A link of the overlay, or one that ended lately."""

    peer: str
    up: bool
    chosen: Annotated[bool, doc("This domain chose the link; else the other one did.")]
    anchor: Annotated[bool, doc("The other domain is an approved peer: outside all limits.")]
    reason: Annotated[str, doc("Why it was made, or ended.")]
    since: Moment
    zone: Annotated[str, doc("Of the other domain; empty: none is stated.")]
    rtt_ms: Annotated[Number | None, doc("Round-trip time of requests on it, smoothed; null: none was measured.")]
    suspected: Annotated[bool, doc("The other domain does not answer its monitors.")]
    scores: Annotated[list[OverlayScore], doc("By region; empty: no deed of the other domain counts.")]


class OverlayLinkList(Shape):
    """Links of the overlay: those that stand first."""

    items: list[OverlayLinkAnswer]


class OverlayDomainAnswer(Shape):
    """A domain of the directory, as its own record states it."""

    name: str
    fingerprint: Annotated[str, doc("Of its identity key.")]
    url: Annotated[str | None, doc("Null: it only calls others.")]
    zone: str
    capacity: Annotated[int, doc("Class from 0 to 3, by its own word.")]
    sponsor: Annotated[str | None, doc("Null for a founder.")]
    version: Count
    issued_at: Moment
    expires_at: Moment
    held: Annotated[bool, doc("False: its record has expired; only its key is remembered.")]
    convicted_at: Annotated[Moment | None, doc("When it was proved to have signed contradictory statements.")]
    linked: Annotated[bool, doc("A link with it stands.")]
    rtt_ms: Annotated[
        Number | None, doc("Round-trip time of requests to it, smoothed; null: none was measured lately.")
    ]
    suspected: Annotated[bool, doc("It does not answer its monitors.")]
    load: Annotated[OverlayDomainLoad | None, doc("Null: it states none, or is in another zone and not in its sample.")]


class OverlayDomainExplanation(OverlayDomainAnswer):
    """A domain of the directory with all that this domain knows of it."""

    sponsors: Annotated[list[str], doc("Its sponsor, that of the sponsor, and so on up to a founder.")]
    rooted: Annotated[bool, doc("The chain of sponsors ends with a founder that this domain trusts.")]
    peer: Annotated[str | None, doc("Its state as a peer of this domain; null: it is none.")]
    link: Annotated[OverlayLinkAnswer | None, doc("The link with it, or the last one; null: there was none lately.")]
    suspicion: Annotated[OverlaySuspicion | None, doc("Null: it is not suspected.")]
    scores: Annotated[list[OverlayScore], doc("By region.")]


OverlayDomainPage = page_of(OverlayDomainAnswer)
