"""The catalogue of administrative events, as data: every type, its schema, and its effects on the states.

The catalogue is the single source: `schema` validates published events, docs/administrative-events.md is made from it
(`manage.py administrative_events --markdown`), admin_rp/state.py interprets the effects on the server and
portal/web/state.js in the browser, which reads the catalogue at /api/v1/admin/catalogue.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from eventing.core.container import per_process
from eventing.intakes import events as intakes
from eventing.membership import events as overlay
from eventing.membership import map_events as overlay_map
from eventing.operations.events import actions, alarms, draining, load
from eventing.operations.placement import events as placement
from eventing.outbox.kind import DOMAIN, OVERLAY, RP, EventKind
from eventing.peering.events import acquaintances, peers, trust
from eventing.replication import events as replicas
from eventing.reports import events as reports
from eventing.rps import events as rps
from eventing.subscriptions import events as subscriptions
from eventing.subscriptions.push import events as push

FORMAT = 1
"""Format number of the effects. A reader that supports only a lower one takes a new snapshot after every event that it
cannot apply.
"""

_PARTS = (
    rps,
    intakes,
    subscriptions,
    push,
    replicas,
    peers,
    acquaintances,
    trust,
    overlay,
    overlay_map,
    load,
    actions,
    alarms,
    draining,
    placement,
    reports,
)
CATALOGUE: Mapping[str, EventKind] = {kind: what for part in _PARTS for kind, what in part.KINDS.items()}

EMPTY: Mapping[str, Mapping[str, Any]] = {
    DOMAIN: {
        "domain": {"name": "", "version": ""},
        "counts": {"rps": 0, "subscriptions": 0, "reserved_bytes": 0, "quota_bytes": 0},
        "redis": {"used_bytes": 0, "ops_s": 0},
        "gateways": {},
        "peers": {},
        "acquaintances": {},
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
    OVERLAY: {"domains": {}, "links": {}, "figures": None},
}
"""The states before any event: their members are always present."""


@per_process
def exported() -> bytes:
    """Return the catalogue as JSON, always the same bytes: format, the empty states, and per type the members of Kind."""
    types = {
        name: {"about": kind.about, "where": list(kind.where), "data": kind.schema, "effects": list(kind.effects)}
        for name, kind in CATALOGUE.items()
    }
    made = {"format": FORMAT, "states": EMPTY, "types": types}
    return json.dumps(made, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


@per_process
def packed() -> bytes:
    """Return `exported` compressed, about a tenth of its size."""
    return gzip.compress(exported(), 9, mtime=0)


@per_process
def etag() -> str:
    """Return the catalogue's digest."""
    return hashlib.sha256(exported()).hexdigest()[:24]
