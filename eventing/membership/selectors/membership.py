"""Reads of this domain's own membership: whether it takes part, its founders, sponsorships and links."""

from __future__ import annotations

from datetime import UTC, datetime

from eventing.membership.models import GrantedSponsorship, OverlayFounder, OverlayLink, OverlayMembership


def membership_get() -> OverlayMembership | None:
    """Return this domain's membership; None if it has not joined."""
    return OverlayMembership.objects.first()


def founders() -> dict[str, str]:
    """Return the trusted founders: name -> fingerprint."""
    return dict(OverlayFounder.objects.order_by("name").values_list("name", "fingerprint"))


def founders_all() -> list[OverlayFounder]:
    """Return the trusted founders by name."""
    return list(OverlayFounder.objects.order_by("name"))


def sponsorship_granted(newcomer: str) -> GrantedSponsorship | None:
    """Return the sponsorship that this domain granted; None if there is none."""
    return GrantedSponsorship.objects.filter(newcomer=newcomer).first()


def sponsorships_since(since_s: float) -> int:
    """Return how many sponsorships this domain granted since a moment, in seconds since 1970."""
    return GrantedSponsorship.objects.filter(granted_at__gte=datetime.fromtimestamp(since_s, UTC)).count()


def links_all() -> list[OverlayLink]:
    """Return links that stand, then those that ended, the latest first."""
    return list(OverlayLink.objects.order_by("-up", "-since", "peer"))


def link_of(peer: str) -> OverlayLink | None:
    """Return the link with a domain, or the last one that ended; None if there was none lately."""
    return OverlayLink.objects.filter(peer=peer).first()
