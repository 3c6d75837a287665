"""Replicas: who holds one, until when, and how far each is."""

from __future__ import annotations

from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_BOTH, ON_RP, RP, Effect, Kind, count, items, moment, obj, or_null, table, text
from eventing.outbox.shapes import NO_PROGRESS

REPLICAS_MAX = 50
"""Of one sample: 48 admissions, the home, and this domain (rps/rules/statements.py: ADMISSIONS_MAX)."""

_ROW = {
    "rp": text("id of the RP"),
    "domain": text("who holds the replica"),
    "home": text("the domain whose RP it is"),
    "expires_at": moment("end of the admission; it is renewed"),
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

KINDS: dict[str, Kind] = {
    events.REPLICA_ADDED: Kind("A domain holds a replica from now on.", ON_BOTH, _ROW, effects=_PUT),
    events.REPLICA_RENEWED: Kind("The admission of a replica was renewed.", ON_RP, _ROW, effects=_PUT),
    events.REPLICA_REMOVED: Kind(
        "A domain holds no replica any more.",
        ON_BOTH,
        {
            **{name: _ROW[name] for name in ("rp", "domain", "home")},
            "reason": text(
                "it left, the policy refused it, it ended with the RP, or nobody renewed it",
                of=("left", "refused", "ended", "lease-expired"),
            ),
        },
        effects=({"in": RP, "op": "remove", "at": ["replicas", "$domain"]},),
    ),
    events.REPLICA_PROGRESSED: Kind(
        "How far replicas are, sampled each second while somebody reads the administrative RP, where it moved.",
        ON_RP,
        {
            "gateway": text("id of the gateway process that looked"),
            "replicas": items(
                obj(
                    {
                        "domain": text("who holds the replica: this domain, or a peer that it is linked with"),
                        "vector": table(
                            count("highest sequence up to which all is held"), "by feed, as the replica said last"
                        ),
                        "behind": or_null(
                            count("events that this domain has and it has not; null while it has not said")
                        ),
                    }
                ),
                "those that moved since the last sample",
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
