"""Reads of quarantines: the origins, and the list for people."""

from __future__ import annotations

from eventing.peering.models import Quarantine


def quarantined_origins() -> frozenset[str]:
    """Return all quarantined origins: few, each by a proof or by hand."""
    return frozenset(Quarantine.objects.values_list("origin", flat=True))


def quarantines_list() -> list[Quarantine]:
    """Return all quarantines with their evidence, newest first."""
    return list(Quarantine.objects.select_related("evidence").order_by("-since", "origin"))
