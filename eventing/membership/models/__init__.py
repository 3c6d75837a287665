"""Tables of this domain's part in the overlay."""

from __future__ import annotations

from eventing.membership.models.directory_domain import DirectoryDomain
from eventing.membership.models.granted_sponsorship import GrantedSponsorship
from eventing.membership.models.overlay_founder import OverlayFounder
from eventing.membership.models.overlay_link import OverlayLink
from eventing.membership.models.overlay_membership import OverlayMembership

__all__ = ["DirectoryDomain", "GrantedSponsorship", "OverlayFounder", "OverlayLink", "OverlayMembership"]
