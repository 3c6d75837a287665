"""Shapes of the overlay's answers."""

from __future__ import annotations

from typing import Annotated

from eventing.core.shapes import Count, Moment, Shape, doc, one_of, page_of


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


class OverlayAnswer(Shape):
    """This domain's part in the overlay."""

    domain: str
    joined: bool
    running: Annotated[bool, doc("A process of this domain runs the overlay now.")]
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


class OverlayLinkAnswer(Shape):
    """A link of the overlay, or one that ended lately."""

    peer: str
    up: bool
    chosen: Annotated[bool, doc("This domain chose the link; else the other one did.")]
    anchor: Annotated[bool, doc("The other domain is an approved peer: outside all limits.")]
    reason: Annotated[str, doc("Why it was made, or ended.")]
    since: Moment
    zone: Annotated[str, doc("Of the other domain; empty: none is stated.")]


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


class OverlayDomainExplanation(OverlayDomainAnswer):
    """A domain of the directory with all that this domain knows of it."""

    sponsors: Annotated[list[str], doc("Its sponsor, that of the sponsor, and so on up to a founder.")]
    rooted: Annotated[bool, doc("The chain of sponsors ends with a founder that this domain trusts.")]
    peer: Annotated[str | None, doc("Its state as a peer of this domain; null: it is none.")]
    link: Annotated[OverlayLinkAnswer | None, doc("The link with it, or the last one; null: there was none lately.")]


OverlayDomainPage = page_of(OverlayDomainAnswer)
