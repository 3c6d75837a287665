"""Administrative events of replicas: admissions, renewals, ends, progress."""

from __future__ import annotations

from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_BOTH, ON_RP, RP, Effect, EventKind, count, items, moment, obj, or_null, table, text
from eventing.outbox.shapes import NO_PROGRESS

REPLICAS_MAX = 50
"""Replicas in one sample: 48 admissions, the home, and this domain (rps/rules/statements.py: ADMISSIONS_MAX)."""

_ROW = {
    "rp": text("id of the RP"),
    "domain": text("the domain with the replica"),
    "home": text("the home of the RP"),
    "expires_at": moment("end of the admission, unless it is renewed"),
}
_PUT: tuple[Effect, ...] = (
    {
        "in": RP,
        "op": "merge",
        "at": ["replicas", "$domain"],
        "value": {"domain": "$domain", "home": "$home", "expires_at": "$expires_at"},
        "newer": "expires_at",
    },
    {"in": RP, "op": "put", "at": ["replicas", "$domain", "progress"], "value": NO_PROGRESS, "if": "absent"},
)

KINDS: dict[str, EventKind] = {
    events.REPLICA_ADDED: EventKind("A domain was admitted with a replica.", ON_BOTH, _ROW, effects=_PUT),
    events.REPLICA_RENEWED: EventKind("The admission of a replica was renewed.", ON_RP, _ROW, effects=_PUT),
    events.REPLICA_REMOVED: EventKind(
        "The replica of a domain ended.",
        ON_BOTH,
        {
            **{name: _ROW[name] for name in ("rp", "domain", "home")},
            "reason": text(
                "it left, the policy refused it, it ended with the RP, or its admission was not renewed",
                of=("left", "refused", "ended", "lease-expired"),
            ),
        },
        effects=({"in": RP, "op": "remove", "at": ["replicas", "$domain"]},),
    ),
    events.REPLICA_PROGRESSED: EventKind(
        "Progress of replicas, sampled each second while the administrative RP has readers; omitted when nothing "
        "changed.",
        ON_RP,
        {
            "gateway": text("id of the gateway process that sampled"),
            "replicas": items(
                obj(
                    {
                        "domain": text("the domain with the replica: this one, or a linked peer"),
                        "vector": table(
                            count("highest sequence up to which all events are held"),
                            "by feed, as the replica last stated",
                        ),
                        "behind": or_null(count("events of this domain that the replica lacks; null while not known")),
                    }
                ),
                "replicas that changed since the last sample",
                most=REPLICAS_MAX,
            ),
        },
        effects=(
            {
                "in": RP,
                "op": "put",
                "each": "$replicas",
                "at": ["replicas", "$each.domain", "progress"],
                "value": {"vector": "$each.vector", "behind": "$each.behind", "at": "@time"},
                "newer": "at",
                "if": "present",
            },
        ),
    ),
}
