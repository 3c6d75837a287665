"""The gossip objects of every domain. One shared test checks merge, changes and bounds of each."""

from __future__ import annotations

from eventing.overlay.gossip_object import GossipObject

ALL: tuple[type[GossipObject], ...] = ()
