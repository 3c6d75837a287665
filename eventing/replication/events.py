"""Administrative events of replicas: admissions, renewals, ends, progress."""

from __future__ import annotations

from eventing.core.modes import MODES
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import (
    DOMAIN,
    ON_BOTH,
    ON_RP,
    RP,
    Effect,
    EventKind,
    count,
    items,
    moment,
    number,
    obj,
    or_null,
    table,
    text,
)
from eventing.outbox.shapes import NO_PROGRESS
from eventing.replication.rules.reader_moves import BY, URLS_MAX
from eventing.replication.rules.route_decisions import ROUTES_SHOWN_MAX, STATES

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
_MOVE = {
    "rp": text("id of the RP"),
    "move": text("id of the move"),
    "share": number("share of the readers that moves, up to 1"),
    "new_share": or_null(
        number("share of the readers that begin meanwhile and are pointed elsewhere at once; null: as the others")
    ),
    "to": items(text("base URL of a domain"), "where they are pointed; empty: ranked for each", most=URLS_MAX),
    "until": moment("end of the move"),
    "spread_s": number("seconds over which the redirects are spread"),
    "reason": text("why, for people"),
    "by": text("part of the domain that began it", of=BY),
}

_TARGET = {
    "rp": text("id of the RP"),
    "target": number("target share of events that arrive at every participant in time"),
}
_STATE = text("met; missed; unknown: not enough is known of the links", of=STATES)
_SWITCH = text("empty: as the domain, or its setting", of=("", *MODES))
_ENDS = items(text("a domain"), "the two ends of a link", most=2)

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
    events.RP_MOVED: EventKind(
        "The home of a rendezvous point changed.",
        ON_BOTH,
        {
            "rp": text("id of the RP"),
            "term": count("term of the new home; the first home's is 0"),
            "home": text("the new home"),
            "former": text("the home before, as known here"),
            "reason": text("it was handed over, or its electors chose a successor", of=("move", "succession")),
            "carrier": text("the domain that delivered the hand-over"),
            "replicas": items(
                obj({"domain": _ROW["domain"], "expires_at": _ROW["expires_at"]}),
                "the other participants after the change, as known here",
                most=REPLICAS_MAX,
            ),
        },
        effects=(
            {"in": RP, "op": "put", "at": ["replicas"], "value": {}},
            {
                "in": RP,
                "op": "put",
                "at": ["replicas", "$home"],
                "value": {"domain": "$home", "home": "$home", "expires_at": None, "progress": NO_PROGRESS},
            },
            {
                "in": RP,
                "op": "put",
                "each": "$replicas",
                "at": ["replicas", "$each.domain"],
                "value": {
                    "domain": "$each.domain",
                    "home": "$home",
                    "expires_at": "$each.expires_at",
                    "progress": NO_PROGRESS,
                },
            },
            {"in": RP, "op": "put", "at": ["rp", "home"], "value": "$home", "if": "present"},
            {"in": DOMAIN, "op": "put", "at": ["recent_rps", "$rp", "home"], "value": "$home", "if": "present"},
        ),
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
    events.ROUTES_PLANNED: EventKind(
        "Links were chosen for the feeds of an RP with a target reliability, or other ones than before.",
        ON_BOTH,
        {
            **_TARGET,
            "mode": text("apply: the links carry the feeds; advise: the plan has no effect", of=MODES),
            "state": _STATE,
            "reason": text("why, one sentence"),
            "routes": items(
                obj({"origin": text("domain whose events pass the link"), "ends": _ENDS}),
                "the chosen links",
                most=ROUTES_SHOWN_MAX,
            ),
            "known": items(
                obj({"ends": _ENDS, "delivery": number("share of deliveries in time that the plan counts on")}),
                "the links that are known",
                most=ROUTES_SHOWN_MAX,
            ),
        },
    ),
    events.RELIABILITY_MISSED: EventKind(
        "No choice of links brings all participants of an RP to its target reliability.",
        ON_BOTH,
        {**_TARGET, "missed": table(text("why, with the best that can be had"), "by participant below the target")},
    ),
    events.RELIABILITY_RECOVERED: EventKind(
        "The target reliability of an RP is no longer missed.", ON_BOTH, {**_TARGET, "state": _STATE}
    ),
    events.ROUTES_SWITCHED: EventKind(
        "The planner of routes was switched, for an RP or for the domain.",
        ON_BOTH,
        {
            "rp": or_null(text("id of the RP; null for the domain")),
            "before": _SWITCH,
            "after": _SWITCH,
            "in_force": text("the mode that follows", of=MODES),
            "by": text("identity of the person"),
        },
    ),
    events.READERS_MOVING: EventKind(
        "A share of the readers, and of the publishers, is pointed to other domains.", ON_BOTH, _MOVE
    ),
    events.READERS_MOVE_ENDED: EventKind("A move of readers was ended before its time.", ON_BOTH, _MOVE),
}
