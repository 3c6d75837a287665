"""JSON Schemas of peers, of delivery to them and of traffic with them in administrative events."""

from __future__ import annotations

from typing import Any

from eventing.core.shapes import closed_schema
from eventing.peering.shapes import DeliveryData, PeerData, TrafficData

PEER = closed_schema(PeerData, "the peer after the change")
DELIVERY_MEMBERS: dict[str, Any] = closed_schema(DeliveryData)["properties"]
TRAFFIC_MEMBERS: dict[str, Any] = closed_schema(TrafficData)["properties"]
NO_DELIVERY: dict[str, Any] = {
    "backlog": 0,
    "oldest_at": None,
    "failures": 0,
    "class": None,
    "detail": "",
    "first_failure_at": None,
    "next_try_at": None,
    "stopped_at": None,
}
"""The delivery to a peer that has never failed."""

NO_TRAFFIC: dict[str, Any] = {"sent": 0, "taken": 0, "copies": 0, "requests": 0, "interval_s": 0, "at": None}
"""The traffic with a peer that was not sampled yet, or not lately."""
