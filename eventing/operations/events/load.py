"""Administrative events of load: counts of each gateway process, sessions opened and closed, refused operations."""

from __future__ import annotations

from eventing.core.shapes import closed_schema
from eventing.operations.shapes import GatewayLoadRow, GatewaySampleData, LoadRow, RpLoadRow, RpSampleData
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import DOMAIN, ON_BOTH, ON_RP, RP, EventKind, count, items, number, obj, text

WHO_MAX = 20
REFUSED_MAX = 20

_RP_ROW = RpLoadRow.__struct_fields__
_DOMAIN_ROW = GatewayLoadRow.__struct_fields__
GATEWAY = closed_schema(LoadRow)["properties"]["gateway"]
_ONE_OF = {**closed_schema(GatewaySampleData)["properties"], **closed_schema(RpSampleData)["properties"]}

KINDS: dict[str, EventKind] = {
    events.LOAD_SAMPLED: EventKind(
        "A gateway's activity since its last sample: in total on `domain.admin`, at an RP on its administrative RP.",
        ON_BOTH,
        _ONE_OF,
        optional=frozenset(_ONE_OF) - (frozenset(_RP_ROW) & frozenset(_DOMAIN_ROW)),
        effects=(
            {
                "in": DOMAIN,
                "op": "put",
                "at": ["gateways", "$gateway"],
                "value": {name: f"${name}" for name in _DOMAIN_ROW},
                "newer": "at",
            },
            {"in": DOMAIN, "op": "put", "at": ["redis"], "value": "$redis"},
            {"in": DOMAIN, "op": "put", "at": ["counts"], "value": "$counts"},
            {
                "in": RP,
                "op": "put",
                "at": ["load", "$gateway"],
                "value": {name: f"${name}" for name in _RP_ROW},
                "newer": "at",
            },
            {
                "in": RP,
                "op": "put",
                "at": ["history"],
                "value": {
                    "epoch": "$history.epoch",
                    "first": "$history.first",
                    "next": "$history.next",
                    "bytes": "$history.bytes",
                    "at": "$at",
                },
                "newer": "at",
            },
        ),
    ),
    events.GATEWAY_LOST: EventKind(
        "A gateway process stopped, or sent no sign of life; its sessions have ended.",
        ON_BOTH,
        {"gateway": GATEWAY, "reason": text("why", of=("stopped", "silent"))},
        effects=(
            {"in": DOMAIN, "op": "remove", "at": ["gateways", "$gateway"]},
            {"in": RP, "op": "remove", "at": ["load", "$gateway"]},
        ),
    ),
    events.SESSIONS_CHANGED: EventKind(
        "Readings of the RP began or ended at a gateway; aggregated into one event each second while the "
        "administrative RP has readers, else every ten seconds.",
        ON_RP,
        {
            "gateway": GATEWAY,
            "interval_s": number("length of the interval, seconds"),
            "joined": count("readings that began"),
            "left": count("readings that ended"),
            "readings": count("readings at this gateway now"),
            "who": items(
                obj(
                    {
                        "principal": text("identity; empty for one without"),
                        "client": text("kind of client"),
                        "joined": count("began"),
                        "left": count("ended"),
                    }
                ),
                "principals of the sessions; empty when there were many",
                most=WHO_MAX,
            ),
        },
        effects=(
            {
                "in": RP,
                "op": "merge",
                "at": ["load", "$gateway"],
                "value": {"readings": "$readings"},
                "if": "present",
            },
        ),
    ),
    events.OPERATIONS_REFUSED: EventKind(
        "Operations were refused at a gateway within a second; aggregated into one event.",
        ON_BOTH,
        {
            "gateway": GATEWAY,
            "count": count("operations refused"),
            "kinds": items(
                obj(
                    {
                        "action": text("the action, as named in the audit"),
                        "reason": text("code of the problem"),
                        "on": text("the object, as the client wrote it; may be empty"),
                        "count": count("number of refusals"),
                    }
                ),
                "the most frequent refusals",
                most=REFUSED_MAX,
            ),
        },
    ),
}
