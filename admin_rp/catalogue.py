"""The catalogue of administrative events: every type, what its data is, and what it does to the states. It is data.

It exists once. `schema` checks what is published, docs/administrative-events.md is made from it
(`manage.py administrative_events --markdown`), admin_rp/state.py interprets its effects on the server and
portal/web/state.js in the browser, which reads it at /api/v1/admin/catalogue.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from eventing.operations.events import actions, alarms, load
from eventing.outbox.kind import DOMAIN, RP, Kind
from eventing.peering.events import peers, trust
from eventing.replication import events as replicas
from eventing.reports import events as reports
from eventing.rps import events as rps
from eventing.subscriptions import events as subscriptions

FORMAT = 1
"""Of the effects. A reader that knows a lower one only takes a new snapshot after every event that it cannot apply."""

_PARTS = (rps, subscriptions, replicas, peers, trust, load, actions, alarms, reports)
CATALOGUE: Mapping[str, Kind] = {kind: what for part in _PARTS for kind, what in part.KINDS.items()}

EMPTY: Mapping[str, Mapping[str, Any]] = {
    DOMAIN: {
        "domain": {"name": "", "version": ""},
        "counts": {"rps": 0, "subscriptions": 0, "reserved_bytes": 0, "quota_bytes": 0},
        "redis": {"used_bytes": 0, "ops_s": 0},
        "gateways": {},
        "peers": {},
        "alarms": {},
        "watches": {},
        "quarantines": {},
        "misbehaviour": {},
        "reports": {},
        "recent_rps": {},
    },
    RP: {
        "rp": None,
        "subscriptions": {},
        "load": {},
        "history": None,
        "replicas": {},
        "alarms": {},
        "watches": {},
    },
}
"""The states before anything is known: their members are always there."""


@lru_cache(maxsize=1)
def exported() -> bytes:
    """The catalogue as JSON, the same bytes each time: format, the empty states, and per type what Kind holds."""
    types = {
        name: {"about": kind.about, "where": list(kind.where), "data": kind.schema, "effects": list(kind.effects)}
        for name, kind in CATALOGUE.items()
    }
    made = {"format": FORMAT, "states": EMPTY, "types": types}
    return json.dumps(made, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


@lru_cache(maxsize=1)
def packed() -> bytes:
    """`exported` compressed, about a tenth of it."""
    return gzip.compress(exported(), 9, mtime=0)


@lru_cache(maxsize=1)
def etag() -> str:
    """Another one for another catalogue."""
    return hashlib.sha256(exported()).hexdigest()[:24]
