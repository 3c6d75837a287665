"""The gossip objects of every domain. One shared test checks merge, changes and bounds of each."""

from __future__ import annotations

from eventing.overlay.gossip_object import GossipObject
from eventing.overlay.link_rows import LinkMeasurements
from eventing.overlay.load_rows import LoadSample, LoadTotals, ZoneLoad
from eventing.overlay.suspicion_rows import Accusations, Rebuttals

ALL: tuple[type[GossipObject], ...] = (
    Accusations,
    Rebuttals,
    ZoneLoad,
    LoadSample,
    LoadTotals,
    LinkMeasurements,
)
