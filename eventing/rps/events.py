"""Rendezvous points: created, changed, deleted, their leases, history and epochs."""

from __future__ import annotations

from eventing.outbox import administrative_events as events
from eventing.outbox.kind import DOMAIN, ON_BOTH, ON_RP, RP, Effect, Kind, count, items, moment, obj, or_null, text
from eventing.outbox.shapes import (
    HISTORY,
    LEASE,
    LEASE_MEMBERS,
    NO_PROGRESS,
    SUBSCRIPTIONS_COUNT,
    SUBSCRIPTIONS_COUNTED,
)

RECENT_RPS = 20
"""RPs in the domain's state: the latest. All of them are in the export of names."""

_PAUSED = or_null(
    obj(
        {"at": moment("since when"), "by": text("who did it"), "reason": text("why, for people")},
        "what keeps the RP from taking events; null while it takes them",
    )
)
ROW = obj(
    {
        "id": text("id of the RP"),
        "name": or_null(text("its name; null for none")),
        "title": text("for people; may be empty"),
        "creator": text("identity of who created it, or asked for the replica"),
        "home": text("the domain whose RP it is"),
        "version": count("of the descriptor, from 1"),
        "ack": text("the acknowledgement level"),
        "history": HISTORY,
        "lease": LEASE,
        "created_at": moment("when it was made here"),
        "paused": _PAUSED,
    },
    "the RP after the change",
)

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
_RPS = count("RPs of the domain after the change, replicas of others' among them")
_LEASE = {
    "what": text("what it is of", of=("rp", "subscription", "peer")),
    "id": text("id of it; a peer's name"),
    **LEASE_MEMBERS,
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
_HISTORY_PUT: Effect = {
    "in": RP,
    "op": "put",
    "at": ["history"],
    "value": {"epoch": "$epoch", "first": "$first", "next": "$next", "bytes": "$bytes", "at": "@time"},
    "newer": "at",
}

KINDS: dict[str, Kind] = {
    events.RP_CREATED: Kind(
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
    events.RP_CHANGED: Kind(
        "A rendezvous point was changed.",
        ON_BOTH,
        {"rp": ROW, "changed": items(text("member"), "names of the members that changed", most=20)},
        effects=(*RP_PUT, RECENT_CHANGED),
    ),
    events.RP_DELETED: Kind(
        "A rendezvous point is gone, with its history and subscriptions.",
        ON_BOTH,
        {
            "rp": ROW,
            "reason": text(
                "of a replica also left, ended or refused", of=("deleted", "lease-expired", "left", "ended", "refused")
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
    events.LEASE_GRANTED: Kind("A lease began.", ON_BOTH, _LEASE, effects=_LEASED),
    events.LEASE_RENEWED: Kind("A lease was renewed; it counts from now.", ON_BOTH, _LEASE, effects=_LEASED),
    events.LEASE_WARNED: Kind("A lease ends soon unless it is renewed.", ON_BOTH, _LEASE),
    events.LEASE_EXPIRED: Kind("A lease ended; what it held is removed.", ON_BOTH, _LEASE),
    events.HISTORY_TRIMMED: Kind(
        "Events left the history since the last report, by its bounds or by hand.",
        ON_RP,
        {
            "removed": count("events that left"),
            "first": count("oldest offset still held"),
            "epoch": text("of the log"),
            "next": count("offset that the next event will get"),
            "bytes": count("bytes still held"),
            "by": text("who trimmed by hand; absent for the bounds"),
            "reason": text("why, if somebody said so"),
        },
        optional=frozenset({"by", "reason"}),
        effects=(_HISTORY_PUT,),
    ),
    events.EPOCH_RENEWED: Kind(
        "The log was older than what had left the domain (a restored backup): a new epoch began.",
        ON_BOTH,
        {
            "was": text("the epoch before"),
            "epoch": text("the one that began"),
            "sealed": count("last sequence that had been sealed"),
            "first": count("oldest offset held of the new epoch"),
            "next": count("offset that the next event will get"),
            "bytes": count("bytes held"),
        },
        effects=(_HISTORY_PUT,),
    ),
}
