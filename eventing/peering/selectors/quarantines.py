"""Reads of quarantines: who is in one, and the list for people."""

from __future__ import annotations

from eventing.peering.models import Quarantine


def quarantined_origins() -> frozenset[str]:
    """All origins in quarantine: few, each by a proof or by hand."""
    return frozenset(Quarantine.objects.values_list("origin", flat=True))


def quarantines_list() -> list[Quarantine]:
    """All quarantines with their evidence, newest first."""
    return list(Quarantine.objects.select_related("evidence").order_by("-since", "origin"))
