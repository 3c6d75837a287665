"""Writes of durable subscriptions: create, change, renew, delete."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from eventing.access.rules.permission import require_writer
from eventing.conf import config
from eventing.core.errors import InvalidRequest, PreconditionFailed, QuotaExceeded
from eventing.core.events import positions
from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import Feed
from eventing.core.events.history import HistoryBounds, tightest
from eventing.core.events.lag import Lag
from eventing.core.ids import ADMIN_SUFFIX, DOMAIN_ADMINS
from eventing.core.principals import Principal
from eventing.log import control, federated
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.rest.idempotency_records import IdempotencyClaim, claim_fulfil
from eventing.rest.shapes import LeaseAnswer
from eventing.rps.rules.descriptor import Descriptor
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get
from eventing.rps.services.permission import require
from eventing.sql.leases import LEASE_COLUMNS, lease_grant, lease_renew
from eventing.sql.locking import lock_domain
from eventing.sql.random_ids import random_id
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.ports import endpoint_checked, endpoint_set, subscription_ending
from eventing.subscriptions.rules.shared_subscriptions import SHARED_MODES
from eventing.subscriptions.selectors.event_data import subscription_data
from eventing.subscriptions.selectors.losses import losses_of
from eventing.subscriptions.selectors.subscriptions import subscription_get
from eventing.subscriptions.services.permission import require_managed
from eventing.subscriptions.services.quotas import require_subscription_quota
from eventing.subscriptions.services.shared_subscriptions import (
    require_keeper,
    require_renewable,
    shared_changed,
    shared_prepare,
    shared_removed,
)

PULL = "pull"
HISTORY_MEMBERS = ("max_events", "max_bytes", "max_age_s")


def subscription_create(
    *,
    reference: str,
    principal: Principal,
    lease_s: int | None = None,
    history: Mapping[str, int | None] | None = None,
    deliver: Mapping[str, Any] | None = None,
    start: str = "now",
    replicas: int = 1,
    claim: IdempotencyClaim | None = None,
    now: datetime | None = None,
) -> Subscription:
    """Create a durable subscription of `principal` at the RP, which may be an administrative one.

    Args:
        history: bounds of its lag (`max_events`, `max_bytes`, `max_age_s`); the RP's bounds apply where not stated or
            narrower.
        deliver: {"mode": "pull"}, which None means too, or an endpoint to which events are sent (push).
        start: "now", "earliest", "last", "time:TIME" or a cursor; all but "now" need the operation `history`.
        replicas: number of domains that hold it, this one included (subscriptions/services/shared_subscriptions.py).

    Raises NotFound, Gone, Forbidden, InvalidRequest, InvalidCursor, QuotaExceeded, redis.RedisError (nothing is created
    then).
    """
    now = now or timezone.now()
    require_writer(principal)
    descriptor = descriptor_get(reference, now=now)
    require(descriptor, principal, "subscribe")
    wanted = positions.parse_from(start)
    if wanted != "now":
        require(descriptor, principal, "history")
    row = Subscription(
        id=f"sub_{random_id()}",
        rp_id=None if descriptor.id in DOMAIN_ADMINS else descriptor.id.removesuffix(ADMIN_SUFFIX),
        at=descriptor.id,
        owner=principal.identity,
        deliver=_deliver(deliver, None),
        created_at=now,
    )
    row.bounds_set(_bounds(history or {}, descriptor.history))
    lease_grant(row, lease_s, now)
    cursor = _cursor(wanted, descriptor)
    row.start = str(cursor)
    if replicas > 1:
        _require_shareable(row)
    shared = shared_prepare(row, replicas, wanted, cursor, now)
    with change(now) as outbox:
        require_subscription_quota(principal)
        _require_room(descriptor.id, row.rp_id, now)
        row.save(force_insert=True)
        if claim is not None:
            claim_fulfil(claim, row.id)
        created = {"subscription": subscription_data(row)}
        outbox.event(events.SUBSCRIPTION_CREATED, row.lease_at, created, domain_too=True, counted=True)
        if row.deliver["mode"] != PULL:
            endpoint_set(row, deliver, outbox)
        outbox.lease_event(events.LEASE_GRANTED, row)
        outbox.act("subscription.create", principal, "subscription", row.id, rp=row.at, granted_s=row.granted_s)
        # Before the commit: if this fails, nothing is created; if the commit fails, the cursor left over is removed
        # with the log.
        control.subscription_cursor_set(row.at, row.id, cursor)
        if shared is not None:
            shared.begin()
    return row


def subscription_update(
    *,
    subscription_id: str,
    principal: Principal,
    changes: Mapping[str, Any],
    versions: frozenset[int] | None = None,
    now: datetime | None = None,
) -> Subscription:
    """Change `history` or `deliver` of a durable subscription.

    A shared one is changed at its keeper, but for its endpoint, which each holder has its own statement of.

    Args:
        changes: the new values; `history` members not named stay as they are, None sets the RP's bound.
        versions: those of If-Match; None for any.

    Raises NotFound, Gone, Forbidden, PreconditionFailed, InvalidRequest.
    """
    now = now or timezone.now()
    unknown = sorted(set(changes) - {"history", "deliver"})
    if unknown:
        raise InvalidRequest(f"{', '.join(unknown)} cannot be changed.")
    with change(now) as outbox:
        row, descriptor = _managed(subscription_id, principal, now)
        if row.keeper and row.deliver["mode"] != PULL and set(changes) == {"deliver"}:
            require(
                descriptor, principal, "subscribe"
            )  # an endpoint is stated at each holder; none is disclosed to others
        else:
            require_keeper(row)
        _require_version(row, versions)
        before = (row.bounds, row.deliver)
        if "history" in changes:
            held = {"max_events": row.max_events, "max_bytes": row.max_bytes, "max_age_s": row.max_age_s}
            row.bounds_set(_bounds({**held, **(changes["history"] or {})}, descriptor.history))
        if "deliver" in changes:
            row.deliver = _deliver(changes["deliver"], row)
            if row.keeper and row.deliver["mode"] != before[1]["mode"]:
                raise InvalidRequest("The mode of a subscription that several domains hold cannot be changed.")
        endpoint = "deliver" in changes and PULL not in (row.deliver["mode"], before[1]["mode"])
        if endpoint or (row.bounds, row.deliver) != before:
            row.version += 1
            versions_of = [row.version - 1, row.version]
            outbox.act("subscription.update", principal, "subscription", row.id, rp=row.at, version=versions_of)
            row.save()
            shared_changed(row, now)
            changed = {"subscription": subscription_data(row)}
            outbox.event(events.SUBSCRIPTION_CHANGED, row.lease_at, changed, domain_too=True)
            if "deliver" in changes and (row.deliver["mode"], before[1]["mode"]) != (PULL, PULL):
                endpoint_set(row, None if row.deliver["mode"] == PULL else changes["deliver"], outbox)
    return row


def subscription_renew(
    *, subscription_id: str, principal: Principal, lease_s: int | None = None, now: datetime | None = None
) -> LeaseAnswer:
    """Renew the lease from now. Raises NotFound, Gone (it has expired already), Forbidden, InvalidRequest."""
    now = now or timezone.now()
    with change(now) as outbox:
        row, descriptor = _managed(subscription_id, principal, now)
        require_renewable(row, now)
        if row.deliver["mode"] != PULL and not descriptor.allows(principal, "administer"):
            require(descriptor, principal, "subscribe")  # nothing else checks it while events are pushed
        lease_renew(row, lease_s, now)
        row.save(update_fields=LEASE_COLUMNS)
        shared_changed(row, now)
        outbox.lease_event(events.LEASE_RENEWED, row)
        outbox.act("subscription.renew", principal, "subscription", row.id, rp=row.at, granted_s=row.granted_s)
    return LeaseAnswer.of(row)


def subscription_delete(
    *,
    subscription_id: str,
    principal: Principal,
    versions: frozenset[int] | None = None,
    now: datetime | None = None,
) -> None:
    """End the subscription.

    Args:
        versions: those of If-Match; None for any.

    Raises NotFound, Gone, Forbidden, PreconditionFailed.
    """
    now = now or timezone.now()
    lag = losses_of([subscription_id]).get(subscription_id)
    with change(now) as outbox:
        row, _ = _managed(subscription_id, principal, now)
        require_keeper(row)
        _require_version(row, versions)
        lost: dict[str, Any] = {"lag": lag.events, "lost": lag.lost} if lag is not None and lag.lost else {}
        outbox.act("subscription.delete", principal, "subscription", row.id, rp=row.at, **lost)
        remove(row, outbox, "deleted", lag=lag, by=principal)


def remove(
    row: Subscription, outbox: Outbox, reason: str, *, lag: Lag | None = None, by: Principal | None = None
) -> None:
    """Delete the subscription within the caller's transaction.

    Args:
        lag: its lag, if the caller has read it.
        by: the principal that deletes it; None for none here.
    """
    subscription_ending(row, outbox, reason, lag=lag, by=by)
    data = {"subscription": subscription_data(row), "reason": reason}
    subscription, at, reported_at = row.id, row.at, row.lease_at
    shared_removed(row, reason, outbox.now)
    row.delete()
    outbox.event(events.SUBSCRIPTION_DELETED, reported_at, data, domain_too=True, counted=True)
    outbox.forget(at, subscription)


def _managed(subscription_id: str, principal: Principal, now: datetime) -> tuple[Subscription, Descriptor]:
    """Return the subscription, locked, and its RP's descriptor, if `principal` may manage it."""
    require_writer(principal)
    row = subscription_get(subscription_id, now=now, lock=True)
    descriptor = descriptor_get(row.at, now=now)
    require_managed(row, descriptor, principal)
    return row, descriptor


def _bounds(asked: Mapping[str, int | None], granted: HistoryBounds) -> HistoryBounds:
    """Return the requested bounds within the RP's bounds; the RP's where not stated."""
    unknown = sorted(set(asked) - set(HISTORY_MEMBERS))
    if unknown:
        raise InvalidRequest(f"history has no member {', '.join(unknown)}.")
    for member, value in asked.items():
        if value is not None and value < 1:
            raise InvalidRequest(f"history.{member} must be at least 1.")
    wanted = HistoryBounds(
        asked.get("max_events") or granted.max_events,
        asked.get("max_bytes") or granted.max_bytes,
        asked.get("max_age_s") or granted.max_age_s,
    )
    return tightest(wanted, granted)


def _deliver(deliver: Mapping[str, Any] | None, before: Subscription | None) -> dict[str, Any]:
    """Return `deliver` as it is stored and shown."""
    if deliver is None or deliver.get("mode") == PULL:
        if deliver is not None and set(deliver) != {"mode"}:
            raise InvalidRequest('deliver with the mode "pull" has no other members.')
        return {"mode": PULL}
    return endpoint_checked(deliver, before)


def _require_shareable(row: Subscription) -> None:
    if row.deliver["mode"] not in SHARED_MODES:
        raise InvalidRequest(f"A subscription that several domains hold has the mode {' or '.join(SHARED_MODES)}.")


def _cursor(wanted: positions.Position, descriptor: Descriptor) -> Cursor:
    """Return the cursor at which the subscription begins. A cursor is not checked against the history: the first read
    does that.

    One of another replica becomes the place here up to which its vector covers everything.
    """
    if isinstance(wanted, Cursor) and wanted.vector is None:
        return wanted
    log = control.log_state(descriptor.id) or control.ensure_log(descriptor.id, descriptor.history)
    if isinstance(wanted, Cursor):
        own = Feed(config().domain, log.root).key
        true = positions.believed(wanted.vector, log, own) if wanted.vector is not None else None
        if true is None or (wanted.epoch == log.epoch and true is wanted.vector):
            return wanted.place
        return Cursor(log.epoch, federated.first_lacking(descriptor.id, true, own) - 1)
    if isinstance(wanted, positions.StoredTime):
        # Events of that time that may have left the history are no loss of the subscription, which begins after them.
        place = control.offset_at(descriptor.id, wanted.ms)
        return Cursor(place.epoch, place.offset - 1)
    begin = positions.resolve(wanted, log)
    return Cursor(begin.epoch, begin.next - 1)


def _require_room(at: str, rp: str | None, now: datetime) -> None:
    """Raise QuotaExceeded if the RP has reached its quota of subscriptions. Locks the RP; NotFound or Gone if it has
    ended.
    """
    if rp is None:
        lock_domain()
    else:
        rendezvous_point_get(rp, now=now, lock=True)
    limit = config().subscriptions_per_rp_max
    if Subscription.objects.filter(at=at).count() >= limit:
        raise QuotaExceeded(f"A rendezvous point has at most {limit} durable subscriptions.", limit=limit)


def _require_version(row: Subscription, versions: frozenset[int] | None) -> None:
    if versions is not None and row.version not in versions:
        raise PreconditionFailed(
            f"The subscription's version is {row.version} now. Read it again and repeat your change."
        )
