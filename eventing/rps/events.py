"""Administrative events of rendezvous points: creation, change, deletion, leases, history and epochs."""

from __future__ import annotations

from eventing.core.shapes import closed_schema
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import DOMAIN, ON_BOTH, ON_RP, RP, Effect, EventKind, count, items, text
from eventing.outbox.shapes import NO_PROGRESS, SUBSCRIPTIONS_COUNT, SUBSCRIPTIONS_COUNTED
from eventing.rest.shapes import LeaseAnswer
from eventing.rps.shapes import LogExtent, RendezvousPointData

RECENT_RPS = 20
"""RPs in the domain's state: the latest. All RPs are in the export of names."""

ROW = closed_schema(RendezvousPointData, "the RP after the change")

RP_PUT: tuple[Effect, ...] = (
    {"in": RP, "op": "merge", "at": ["rp"], "value": "$rp", "without": ["lease"], "newer": "version"},
    {"in": RP, "op": "put", "at": ["rp", "lease"], "value": "$rp.lease", "newer": "expires_at"},
)
RECENT_CHANGED: Effect = {
    "in": DOMAIN,
    "op": "merge",
    "at": ["recent_rps", "$rp.id"],
    "value": "$rp",
    "without": ["lease"],
    "newer": "version",
    "if": "present",
}
_COUNTED: Effect = {"in": DOMAIN, "op": "merge", "at": ["counts"], "value": {"rps": "$rps"}}
_RPS = count("RPs of the domain after the change, including replicas of other domains'")
_LEASE = {
    "what": text("what it is of", of=("rp", "subscription", "peer", "intake")),
    "id": text("id of it; a peer's name"),
    **closed_schema(LeaseAnswer)["properties"],
}
_LEASED: tuple[Effect, ...] = (
    {
        "in": RP,
        "op": "put",
        "at": ["rp", "lease"],
        "value": {"asked_s": "$asked_s", "granted_s": "$granted_s", "expires_at": "$expires_at"},
        "newer": "expires_at",
        "when": {"what": "rp"},
        "if": "present",
    },
    {
        "in": RP,
        "op": "put",
        "at": ["subscriptions", "$id", "lease"],
        "value": {"asked_s": "$asked_s", "granted_s": "$granted_s", "expires_at": "$expires_at"},
        "newer": "expires_at",
        "when": {"what": "subscription"},
        "if": "present",
    },
    {
        "in": DOMAIN,
        "op": "put",
        "at": ["peers", "$id", "lease"],
        "value": {"granted_s": "$granted_s", "expires_at": "$expires_at"},
        "newer": "expires_at",
        "when": {"what": "peer"},
        "if": "present",
    },
)
_EXTENT = closed_schema(LogExtent)["properties"]
_HISTORY_PUT: Effect = {
    "in": RP,
    "op": "put",
    "at": ["history"],
    "value": {"epoch": "$epoch", "first": "$first", "next": "$next", "bytes": "$bytes", "at": "@time"},
    "newer": "at",
}

KINDS: dict[str, EventKind] = {
    events.RP_CREATED: EventKind(
        "A rendezvous point was created.",
        ON_BOTH,
        {"rp": ROW, "rps": _RPS},
        effects=(
            *RP_PUT,
            {
                "in": RP,
                "op": "put",
                "at": ["replicas", "$rp.home"],
                "value": {"domain": "$rp.home", "home": "$rp.home", "expires_at": None, "progress": NO_PROGRESS},
                "if": "absent",
            },
            {
                "in": DOMAIN,
                "op": "put",
                "at": ["recent_rps", "$rp.id"],
                "value": "$rp",
                "without": ["lease"],
                "newer": "version",
                "most": RECENT_RPS,
                "by": "created_at",
            },
            _COUNTED,
        ),
    ),
    events.RP_CHANGED: EventKind(
        "A rendezvous point was changed.",
        ON_BOTH,
        {"rp": ROW, "changed": items(text("member"), "names of the members that changed", most=20)},
        effects=(*RP_PUT, RECENT_CHANGED),
    ),
    events.RP_DELETED: EventKind(
        "A rendezvous point was removed, with its history and subscriptions.",
        ON_BOTH,
        {
            "rp": ROW,
            "reason": text(
                "for a replica also left, ended or refused", of=("deleted", "lease-expired", "left", "ended", "refused")
            ),
            "subscriptions": count("durable subscriptions that ended with it"),
            "rps": _RPS,
            **SUBSCRIPTIONS_COUNTED,
        },
        effects=(
            {"in": RP, "op": "put", "at": ["rp"], "value": None},
            {"in": RP, "op": "put", "at": ["subscriptions"], "value": {}},
            {"in": RP, "op": "put", "at": ["replicas"], "value": {}},
            {"in": DOMAIN, "op": "remove", "at": ["recent_rps", "$rp.id"]},
            _COUNTED,
            SUBSCRIPTIONS_COUNT,
        ),
    ),
    events.LEASE_GRANTED: EventKind("A lease began.", ON_BOTH, _LEASE, effects=_LEASED),
    events.LEASE_RENEWED: EventKind("A lease was renewed, counted from now.", ON_BOTH, _LEASE, effects=_LEASED),
    events.LEASE_WARNED: EventKind("A lease ends soon unless it is renewed.", ON_BOTH, _LEASE),
    events.LEASE_EXPIRED: EventKind("A lease ended; the leased thing is removed.", ON_BOTH, _LEASE),
    events.HISTORY_TRIMMED: EventKind(
        "Events left the history since the last report, by its bounds or by request.",
        ON_RP,
        {
            "removed": count("number of events removed"),
            **_EXTENT,
            "by": text("identity of the actor of a requested trim; absent for trimming by the bounds"),
            "reason": text("explanation of the actor, if given"),
        },
        optional=frozenset({"by", "reason"}),
        effects=(_HISTORY_PUT,),
    ),
    events.EPOCH_RENEWED: EventKind(
        "The log was older than the events already sent by the domain (a restored backup): a new epoch began.",
        ON_BOTH,
        {
            "was": text("the previous epoch"),
            "sealed": count("last sequence that was sealed"),
            **_EXTENT,
        },
        effects=(_HISTORY_PUT,),
    ),
}
