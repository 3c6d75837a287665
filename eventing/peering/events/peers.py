"""Peers: how two domains agreed, and how delivery to them goes."""

from __future__ import annotations

from typing import Any

from eventing.outbox import administrative_events as events
from eventing.outbox.kind import DOMAIN, ON_DOMAIN, Effect, Kind, count, items, number, obj, text
from eventing.peering.events.shapes import DELIVERY_MEMBERS, NO_DELIVERY, NO_TRAFFIC, PEER, TRAFFIC_MEMBERS

TRAFFIC_PEERS_MAX = 100
"""Of one sample: the peers that moved most; each of them again when it is still."""

_PUT: tuple[Effect, ...] = (
    {"in": DOMAIN, "op": "merge", "at": ["peers", "$peer.name"], "value": "$peer"},
    {"in": DOMAIN, "op": "put", "at": ["peers", "$peer.name", "delivery"], "value": NO_DELIVERY, "if": "absent"},
    {"in": DOMAIN, "op": "put", "at": ["peers", "$peer.name", "traffic"], "value": NO_TRAFFIC, "if": "absent"},
)


def peer(about: str, effects: tuple[Effect, ...] = _PUT, **more: Any) -> Kind:
    """A kind that shows a peer."""
    return Kind(about, ON_DOMAIN, {"peer": PEER, **more}, effects=effects)


KINDS: dict[str, Kind] = {
    events.PEER_PROPOSED: peer("A domain was added as a peer; its administrator has yet to approve."),
    events.PEER_ASKED: peer("A domain asks to be a peer; an administrator here has yet to approve."),
    events.PEER_ACTIVE: peer("A peer is active: events flow."),
    events.PEER_SUSPENDED: peer("A peer was suspended by an administrator here."),
    events.PEER_DECLINED: peer("A domain declined to be a peer, or is one no more.", reason=text("one sentence")),
    events.PEER_CHANGED: peer(
        "What a peer may do or send was changed, or (`theirs`) how it stands to this domain.",
        changed=items(text("member"), "names of the members that changed", most=20),
    ),
    events.PEER_REKEYED: peer(
        "A peer has new keys; the ones known before have signed them.", serial=count("of its document")
    ),
    events.PEER_REMOVED: peer(
        "A domain is a peer no more, or asks no more.",
        ({"in": DOMAIN, "op": "remove", "at": ["peers", "$peer.name"]},),
        reason=text("why", of=("removed", "left", "lease-expired")),
    ),
    events.PEER_DELIVERY: Kind(
        "How delivery to a peer goes, when that changed; at most once a second for each peer.",
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
    events.PEERS_TRAFFIC: Kind(
        "What was exchanged with peers, sampled each second while somebody reads `domain.admin`, where it moved.",
        ON_DOMAIN,
        {
            "gateway": text("id of the gateway process that looked"),
            "interval_s": number("seconds that the numbers are of"),
            "peers": items(
                obj({"peer": text("the peer's name"), **TRAFFIC_MEMBERS}),
                "those that moved, and those that moved before and are still now",
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
