"""Administrative events: the catalogue, and their one form. Changes at an RP are themselves events, on its admin RP.

Every event's `source` is `/<domain>/rps/<id>` of the RP it is about (`/<domain>` for the domain), whichever RP carries
it: the creation and the deletion of an RP are reported, as the same event, on the domain's administrative RP too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from eventing.conf import config
from eventing.core.cloudevents import Event
from eventing.core.ids import ADMIN_SUFFIX, DOMAIN_ADMIN
from eventing.models import RendezvousPoint, Subscription
from eventing.services.random_ids import random_id

RP_CREATED = "io.herald.rp.created"
RP_CHANGED = "io.herald.rp.changed"
RP_DELETED = "io.herald.rp.deleted"
LEASE_GRANTED = "io.herald.lease.granted"
LEASE_RENEWED = "io.herald.lease.renewed"
LEASE_WARNED = "io.herald.lease.warned"
LEASE_EXPIRED = "io.herald.lease.expired"
SUBSCRIPTION_CREATED = "io.herald.subscription.created"
SUBSCRIPTION_CHANGED = "io.herald.subscription.changed"
SUBSCRIPTION_DELETED = "io.herald.subscription.deleted"
HISTORY_TRIMMED = "io.herald.history.trimmed"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of administrative event: what it says, and the members of its data with their meaning."""

    about: str
    data: Mapping[str, str]


_RP = {"rp": "the RP after the change: id, name, title, creator, version, ack, history, lease"}
_LEASE = {
    "what": '"rp" or "subscription"',
    "id": "of the RP or subscription",
    "asked_s": "seconds asked for; null if nothing was stated",
    "granted_s": "seconds granted",
    "expires_at": "end of the lease, RFC 3339",
}
_SUBSCRIPTION = {"subscription": "id, at (the RP read), owner, version, history, deliver, lease"}

CATALOGUE: Mapping[str, Kind] = {
    RP_CREATED: Kind("A rendezvous point was created.", _RP),
    RP_CHANGED: Kind("A rendezvous point was changed.", {**_RP, "changed": "names of the members that changed"}),
    RP_DELETED: Kind(
        "A rendezvous point is gone, with its history and subscriptions.",
        {**_RP, "reason": '"deleted" or "lease-expired"', "subscriptions": "how many ended with it"},
    ),
    LEASE_GRANTED: Kind("A lease began.", _LEASE),
    LEASE_RENEWED: Kind("A lease was renewed; it counts from now.", _LEASE),
    LEASE_WARNED: Kind("A lease ends soon unless it is renewed.", _LEASE),
    LEASE_EXPIRED: Kind("A lease ended and what it held was removed.", _LEASE),
    SUBSCRIPTION_CREATED: Kind("A durable subscription was created.", _SUBSCRIPTION),
    SUBSCRIPTION_CHANGED: Kind("A durable subscription was changed.", _SUBSCRIPTION),
    SUBSCRIPTION_DELETED: Kind(
        "A durable subscription is gone.", {**_SUBSCRIPTION, "reason": '"deleted" or "lease-expired"'}
    ),
    HISTORY_TRIMMED: Kind(
        "Events left the history since the last report.",
        {"removed": "how many", "first": "oldest offset still held", "epoch": "of the log"},
    ),
}


def content(kind: str, source: str, data: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """An event as the outbox keeps it, with a new id. `kind` is of the catalogue, `data` has that kind's members."""
    return {"id": random_id(), "source": source, "type": kind, "time": timestamp(now), "data": dict(data)}


def event_of(entry: Mapping[str, Any]) -> Event:
    """The CloudEvent for what `content` made: the same bytes each time."""
    body = {"specversion": "1.0", **entry, "datacontenttype": "application/json"}
    return Event(
        source=entry["source"],
        id=entry["id"],
        type=entry["type"],
        body=json.dumps(body, separators=(",", ":"), ensure_ascii=False, sort_keys=True).encode(),
    )


def source_of(rp: str) -> str:
    """The `source` of events about the RP with id `rp`, or about the domain."""
    base = rp.removesuffix(ADMIN_SUFFIX)
    return f"/{config().domain}" if rp == DOMAIN_ADMIN else f"/{config().domain}/rps/{base}"


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC, microseconds, `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def lease_data(row: RendezvousPoint | Subscription) -> dict[str, Any]:
    """A lease as events and answers show it."""
    return {"asked_s": row.asked_s, "granted_s": row.granted_s, "expires_at": timestamp(row.expires_at)}


def history_data(row: RendezvousPoint | Subscription) -> dict[str, Any]:
    """History bounds as events and answers show them."""
    return {"max_events": row.max_events, "max_bytes": row.max_bytes, "max_age_s": row.max_age_s}


def rp_data(row: RendezvousPoint) -> dict[str, Any]:
    """An RP as its events show it. Not its policy: that may be longer than an event should be, and is not everybody's."""
    return {
        "id": row.id,
        "name": row.name,
        "title": row.title,
        "creator": row.creator,
        "version": row.version,
        "ack": row.ack,
        "history": history_data(row),
        "lease": lease_data(row),
    }


def subscription_data(row: Subscription) -> dict[str, Any]:
    """A subscription as its events show it."""
    return {
        "id": row.id,
        "at": row.at,
        "owner": row.owner,
        "version": row.version,
        "history": history_data(row),
        "deliver": row.deliver,
        "lease": lease_data(row),
    }
