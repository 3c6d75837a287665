"""Administrative events of peers: states of a peering, and delivery to a peer."""

from __future__ import annotations

from typing import Any

from eventing.outbox import administrative_events as events
from eventing.outbox.kind import DOMAIN, ON_DOMAIN, Effect, EventKind, count, items, number, obj, text
from eventing.peering.events.shapes import DELIVERY_MEMBERS, NO_DELIVERY, NO_TRAFFIC, PEER, TRAFFIC_MEMBERS

TRAFFIC_PEERS_MAX = 100
"""Peers in one sample: those with most traffic, each once more when its traffic stops."""

_PUT: tuple[Effect, ...] = (
    {"in": DOMAIN, "op": "merge", "at": ["peers", "$peer.name"], "value": "$peer"},
    {"in": DOMAIN, "op": "put", "at": ["peers", "$peer.name", "delivery"], "value": NO_DELIVERY, "if": "absent"},
    {"in": DOMAIN, "op": "put", "at": ["peers", "$peer.name", "traffic"], "value": NO_TRAFFIC, "if": "absent"},
)


def peer(about: str, effects: tuple[Effect, ...] = _PUT, **more: Any) -> EventKind:
    """Return a kind whose data shows a peer."""
    return EventKind(about, ON_DOMAIN, {"peer": PEER, **more}, effects=effects)


KINDS: dict[str, EventKind] = {
    events.PEER_PROPOSED: peer("A domain was added as a peer; its administrator has yet to approve."),
    events.PEER_ASKED: peer("A domain asks to be a peer; an administrator here has yet to approve."),
    events.PEER_ACTIVE: peer("A peer is active: events flow."),
    events.PEER_SUSPENDED: peer("A peer was suspended by an administrator here."),
    events.PEER_DECLINED: peer("A domain declined to be a peer, or ended the peering.", reason=text("one sentence")),
    events.PEER_CHANGED: peer(
        "A peer's permissions, rates or (`theirs`) stance towards this domain changed.",
        changed=items(text("member"), "names of the members that changed", most=20),
    ),
    events.PEER_REKEYED: peer(
        "A peer has new keys, signed by keys that were known before.", serial=count("serial of its document")
    ),
    events.PEER_REMOVED: peer(
        "A peer was removed, or a domain no longer asks.",
        ({"in": DOMAIN, "op": "remove", "at": ["peers", "$peer.name"]},),
        reason=text("why", of=("removed", "left", "lease-expired")),
    ),
    events.PEER_DELIVERY: EventKind(
        "The state of delivery to a peer changed; at most one event a second for each peer.",
        ON_DOMAIN,
        {"peer": text("the peer's name"), **DELIVERY_MEMBERS},
        effects=(
            {
                "in": DOMAIN,
                "op": "put",
                "at": ["peers", "$peer", "delivery"],
                "value": {name: f"${name}" for name in DELIVERY_MEMBERS},
                "if": "present",
            },
        ),
    ),
    events.PEERS_TRAFFIC: EventKind(
        "Traffic with peers, sampled each second while `domain.admin` has readers; omitted when nothing changed.",
        ON_DOMAIN,
        {
            "gateway": text("id of the gateway process that sampled"),
            "interval_s": number("seconds that the numbers are of"),
            "peers": items(
                obj({"peer": text("the peer's name"), **TRAFFIC_MEMBERS}),
                "peers with traffic, and peers whose traffic has just stopped",
                most=TRAFFIC_PEERS_MAX,
            ),
        },
        effects=(
            {
                "in": DOMAIN,
                "op": "put",
                "each": "$peers",
                "at": ["peers", "$each.peer", "traffic"],
                "value": {
                    **{name: f"$each.{name}" for name in TRAFFIC_MEMBERS},
                    "interval_s": "$interval_s",
                    "at": "@time",
                },
                "newer": "at",
                "if": "present",
            },
        ),
    ),
}
