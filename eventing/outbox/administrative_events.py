"""Types and common form of administrative events. Changes at an RP are themselves events, on its admin RP.

Each subject defines the data of its events in its `selectors/event_data.py`. The meaning of each type, the schema of
its data and its effects on a reader's state are in admin_rp/catalogue.py.

Every event's `source` is `/<domain>/rps/<id>` of the RP concerned (`/<domain>` for the domain), whichever RP carries
the event: the creation and the deletion of an RP are reported, as the same event, on the domain's administrative RP
too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from eventing.conf import config
from eventing.core.events.cloudevents import Event
from eventing.core.events.history import HistoryBounds
from eventing.core.events.positions import LogState
from eventing.core.ids import ADMIN_SUFFIX, DOMAIN_ADMINS
from eventing.core.timestamps import timestamp
from eventing.sql.random_ids import random_id

# History of administrative RPs. Events there take ~500 bytes; a month lets an operator look back after a holiday. The
# domain's holds an hour of load samples (of four gateways, one a second each) beside its other events (decision 26).
ADMIN_HISTORY = HistoryBounds(max_events=2000, max_bytes=1024 * 1024, max_age_s=30 * 86_400)
DOMAIN_ADMIN_HISTORY = HistoryBounds(max_events=20_000, max_bytes=16 * 1024 * 1024, max_age_s=30 * 86_400)
_encode = msgspec.json.Encoder(order="sorted").encode

RP_CREATED = "io.herald.rp.created"
RP_CHANGED = "io.herald.rp.changed"
RP_DELETED = "io.herald.rp.deleted"
RP_MOVED = "io.herald.rp.moved"
LEASE_GRANTED = "io.herald.lease.granted"
LEASE_RENEWED = "io.herald.lease.renewed"
LEASE_WARNED = "io.herald.lease.warned"
LEASE_EXPIRED = "io.herald.lease.expired"
SUBSCRIPTION_CREATED = "io.herald.subscription.created"
SUBSCRIPTION_CHANGED = "io.herald.subscription.changed"
SUBSCRIPTION_DELETED = "io.herald.subscription.deleted"
INTAKE_CREATED = "io.herald.intake.created"
INTAKE_CHANGED = "io.herald.intake.changed"
INTAKE_DELETED = "io.herald.intake.deleted"
ENDPOINT_CHANGED = "io.herald.endpoint.changed"
DELIVERY_GIVEN_UP = "io.herald.delivery.given-up"
HISTORY_TRIMMED = "io.herald.history.trimmed"
REPLICA_ADDED = "io.herald.replica.added"
REPLICA_REMOVED = "io.herald.replica.removed"
ROUTES_PLANNED = "io.herald.routes.planned"
RELIABILITY_MISSED = "io.herald.reliability.missed"
RELIABILITY_RECOVERED = "io.herald.reliability.recovered"
PEER_PROPOSED = "io.herald.peer.proposed"
PEER_ASKED = "io.herald.peer.asked"
PEER_ACTIVE = "io.herald.peer.active"
PEER_SUSPENDED = "io.herald.peer.suspended"
PEER_DECLINED = "io.herald.peer.declined"
PEER_CHANGED = "io.herald.peer.changed"
PEER_REKEYED = "io.herald.peer.rekeyed"
PEER_REMOVED = "io.herald.peer.removed"
ACQUAINTANCE_BEGUN = "io.herald.acquaintance.begun"
ACQUAINTANCE_ENDED = "io.herald.acquaintance.ended"
EPOCH_RENEWED = "io.herald.epoch.renewed"
MISBEHAVIOUR_NOTED = "io.herald.misbehaviour.noted"
ORIGIN_QUARANTINED = "io.herald.origin.quarantined"
ORIGIN_RELEASED = "io.herald.origin.released"
RP_PAUSED = "io.herald.rp.paused"
RP_RESUMED = "io.herald.rp.resumed"
SESSIONS_DISCONNECTED = "io.herald.sessions.disconnected"
PEER_RETRIED = "io.herald.peer.retried"
PEER_REPLAYED = "io.herald.peer.replayed"
KEY_ROTATED = "io.herald.key.rotated"
KEY_RETIRED = "io.herald.key.retired"
REVOCATION_MADE = "io.herald.revocation.made"
REVOCATION_LIFTED = "io.herald.revocation.lifted"
DOMAIN_DRAINING = "io.herald.domain.draining"
LOAD_SAMPLED = "io.herald.load.sampled"
GATEWAY_LOST = "io.herald.gateway.lost"
SESSIONS_CHANGED = "io.herald.sessions.changed"
OPERATIONS_REFUSED = "io.herald.operations.refused"
SUBSCRIPTION_LAGGED = "io.herald.subscription.lagged"
REPLICA_RENEWED = "io.herald.replica.renewed"
REPLICA_PROGRESSED = "io.herald.replica.progressed"
ROUTES_SWITCHED = "io.herald.routes.switched"
READERS_MOVING = "io.herald.readers.moving"
READERS_MOVE_ENDED = "io.herald.readers.move-ended"
PEER_DELIVERY = "io.herald.peer.delivery"
PEERS_TRAFFIC = "io.herald.peers.traffic"
ALARM_RAISED = "io.herald.alarm.raised"
ALARM_CHANGED = "io.herald.alarm.changed"
ALARM_ACKNOWLEDGED = "io.herald.alarm.acknowledged"
ALARM_MUTED = "io.herald.alarm.muted"
ALARM_UNMUTED = "io.herald.alarm.unmuted"
ALARM_CLEARED = "io.herald.alarm.cleared"
WATCH_CHANGED = "io.herald.watch.changed"
PLACEMENT_DECIDED = "io.herald.placement.decided"
PLACEMENT_CHANGED = "io.herald.placement.changed"
PLACEMENT_BOUNDED = "io.herald.placement.bounded"
INVITATIONS_BOUNDED = "io.herald.placement.invitations.bounded"
INVITATION_ANSWERED = "io.herald.placement.invitation.answered"

REPORT_QUEUED = "io.herald.report.run.queued"
REPORT_RUNNING = "io.herald.report.run.running"
REPORT_DONE = "io.herald.report.run.done"
REPORT_FAILED = "io.herald.report.run.failed"
REPORT_SUPERSEDED = "io.herald.report.run.superseded"
OVERLAY_JOINED = "io.herald.overlay.joined"
OVERLAY_LEFT = "io.herald.overlay.left"
OVERLAY_LINK_MADE = "io.herald.overlay.link.made"
OVERLAY_LINK_DROPPED = "io.herald.overlay.link.dropped"
OVERLAY_DIRECTORY_CHANGED = "io.herald.overlay.directory.changed"
OVERLAY_SPONSORSHIP_GRANTED = "io.herald.overlay.sponsorship.granted"
OVERLAY_SPONSORSHIP_REFUSED = "io.herald.overlay.sponsorship.refused"
OVERLAY_EQUIVOCATION = "io.herald.overlay.equivocation"
OVERLAY_SELF_SUSPECTED = "io.herald.overlay.self-suspected"
OVERLAY_SUSPECTED = "io.herald.overlay.suspected"
OVERLAY_SUSPICION_ENDED = "io.herald.overlay.suspicion.ended"
OVERLAY_SUSPICION_REBUTTED = "io.herald.overlay.suspicion.rebutted"
OVERLAY_ACCUSATIONS_PAUSED = "io.herald.overlay.accusations.paused"
OVERLAY_ACCUSATIONS_RESUMED = "io.herald.overlay.accusations.resumed"
OVERLAY_ROWS_CONTRADICT = "io.herald.overlay.rows.contradict"
OVERLAY_SCORE_EFFECT = "io.herald.overlay.score.effect"
OVERLAY_SCORE_PARDONED = "io.herald.overlay.score.pardoned"
OVERLAY_QUEUES_FULL = "io.herald.overlay.queues-full"
OVERLAY_MAP_CHANGED = "io.herald.overlay.map.changed"
OVERLAY_MAP_CLEARED = "io.herald.overlay.map.cleared"
OVERLAY_SAMPLED = "io.herald.overlay.sampled"


def content(kind: str, source: str, data: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Make an event as the outbox stores it, with a new id. `kind` is of the catalogue, `data` has that kind's members."""
    return {
        "id": random_id(),
        "source": source,
        "type": kind,
        "time": timestamp(now),
        "data": msgspec.to_builtins(dict(data)),
    }


def event_of(entry: Mapping[str, Any]) -> Event:
    """Make the CloudEvent of an entry made by `content`: the same bytes each time."""
    body = {"specversion": "1.0", **entry, "datacontenttype": "application/json"}
    return Event(
        source=entry["source"],
        id=entry["id"],
        type=entry["type"],
        body=_encode(body),
    )


def admin_history(rp: str) -> HistoryBounds:
    """Return the bounds of the administrative RP with id `rp`."""
    return DOMAIN_ADMIN_HISTORY if rp in DOMAIN_ADMINS else ADMIN_HISTORY


def source_of(rp: str) -> str:
    """Return the `source` of events about the RP with id `rp`, or about the domain."""
    base = rp.removesuffix(ADMIN_SUFFIX)
    return f"/{config().domain}" if rp in DOMAIN_ADMINS else f"/{config().domain}/rps/{base}"


def log_data(log: LogState) -> dict[str, Any]:
    """Describe the extent of a log for events."""
    return {"epoch": log.epoch, "first": log.first, "next": log.next, "bytes": log.bytes}
