"""Load: what each gateway process did since its last sample, sessions that came and went, operations refused."""

from __future__ import annotations

from typing import Any

from eventing.outbox import administrative_events as events
from eventing.outbox.kind import DOMAIN, ON_BOTH, ON_RP, RP, Kind, count, items, moment, number, obj, text

HOT_RPS = 20
WHO_MAX = 20
REFUSED_MAX = 20

GATEWAY = text("id of the gateway process, another one after each start")
FLOW: dict[str, Any] = {
    "publishes": count("requests and frames that published, answered well"),
    "events_in": count("events that clients published"),
    "bytes_in": count("bytes of these events, as stored"),
    "deliveries": count("events written to readers, each reader counted"),
    "bytes_out": count("bytes of these events"),
}
DOMAIN_SAMPLE: dict[str, Any] = {
    "gateway": GATEWAY,
    "at": moment("end of the interval"),
    "interval_s": number("seconds that the numbers are of"),
    **FLOW,
    "refused": count("operations refused"),
    "accepts": count("sessions opened"),
    "closes": count("sessions closed"),
    "sessions": count("sessions open now"),
    "readings": count("readings now: a session that reads three RPs counts three"),
    "cpu_s": number("processor seconds used"),
    "rss_bytes": count("resident memory now, bytes"),
    "lag_ms": number("longest time that the event loop was late, milliseconds"),
    "hot": items(
        obj(
            {
                "rp": text("id of the RP"),
                "events_in": count("events that clients published there"),
                "deliveries": count("events written to its readers"),
                "readings": count("readings of it now"),
            }
        ),
        "the RPs that moved most",
        most=HOT_RPS,
    ),
    "redis": obj(
        {
            "used_bytes": count("memory used by Redis now, bytes"),
            "ops_s": count("commands per second, as Redis says"),
        },
        "from one gateway of the domain",
    ),
    "counts": obj(
        {
            "rps": count("RPs of the domain, replicas of others' among them"),
            "subscriptions": count("durable subscriptions"),
            "reserved_bytes": count("history that the RPs have reserved, bytes"),
            "quota_bytes": count("history that the domain may reserve, bytes"),
        },
        "of the domain, from one gateway; counted every few seconds",
    ),
}
RP_SAMPLE: dict[str, Any] = {
    "gateway": GATEWAY,
    "at": moment("end of the interval"),
    "interval_s": number("seconds that the numbers are of"),
    **FLOW,
    "readings": count("readings of the RP at this gateway now"),
    "joined": count("readings that began"),
    "left": count("readings that ended"),
    "history": obj(
        {
            "epoch": text("of the log"),
            "first": count("oldest offset held"),
            "next": count("offset that the next event will get"),
            "bytes": count("bytes held"),
        },
        "the RP's log",
    ),
}
_RP_ROW = [name for name in RP_SAMPLE if name != "history"]
_DOMAIN_ROW = [name for name in DOMAIN_SAMPLE if name not in ("redis", "counts")]
_ONE_OF = {**DOMAIN_SAMPLE, **RP_SAMPLE}

KINDS: dict[str, Kind] = {
    events.LOAD_SAMPLED: Kind(
        "What a gateway did since its last sample: on `domain.admin` in all, on an RP's administrative RP there.",
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
    events.GATEWAY_LOST: Kind(
        "A gateway process is gone: it stopped, or has not been heard of; its sessions are gone with it.",
        ON_BOTH,
        {"gateway": GATEWAY, "reason": text("why", of=("stopped", "silent"))},
        effects=(
            {"in": DOMAIN, "op": "remove", "at": ["gateways", "$gateway"]},
            {"in": RP, "op": "remove", "at": ["load", "$gateway"]},
        ),
    ),
    events.SESSIONS_CHANGED: Kind(
        "Readings of the RP began or ended at a gateway; many are one event: each second while somebody reads the "
        "administrative RP, else each ten.",
        ON_RP,
        {
            "gateway": GATEWAY,
            "interval_s": number("seconds that the numbers are of"),
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
                "whose they were; empty when there were many",
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
    events.OPERATIONS_REFUSED: Kind(
        "Operations were refused at a gateway within a second; one event however many there were.",
        ON_BOTH,
        {
            "gateway": GATEWAY,
            "count": count("operations refused"),
            "kinds": items(
                obj(
                    {
                        "action": text("what was asked, as the audit calls it"),
                        "reason": text("code of the problem"),
                        "on": text("what it was about, as the client wrote it; may be empty"),
                        "count": count("how many"),
                    }
                ),
                "the most frequent",
                most=REFUSED_MAX,
            ),
        },
    ),
}
