"""Writes of subscriptions that the WebSub hub makes: created or replaced once the subscriber's intent is verified, ended.

The topic and the callback identify a subscription (section 5.1), so its id is computed from them. The sender of the request owns it;
without a token the owner is nobody's identity, of the callback's host, and only further requests to the hub change it.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from eventing.conf import config
from eventing.core.errors import Forbidden, QuotaExceeded
from eventing.core.events import positions
from eventing.core.events.cursors import Cursor
from eventing.core.ids import ADMIN_SUFFIX, DOMAIN_ADMINS
from eventing.core.principals import ANONYMOUS
from eventing.log import control
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.rps.rules.descriptor import Descriptor
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get
from eventing.sql.leases import lease_grant
from eventing.sql.locking import lock_domain
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.rules.addresses import EndpointUrl, endpoint_url, ports_parse
from eventing.subscriptions.push.rules.endpoint_states import EndpointStanding, EndpointState
from eventing.subscriptions.push.services.notices import deliverer_notify
from eventing.subscriptions.push.services.standings import changed_event, standing_set
from eventing.subscriptions.push.services.unsettled import UnsettledRequest, subscription_id
from eventing.subscriptions.push.services.vault import EndpointSecrets, SealedSecret, seal
from eventing.subscriptions.push.websub.distribution import link_field
from eventing.subscriptions.push.websub.topics import hub_url, topic_url
from eventing.subscriptions.selectors.event_data import subscription_data
from eventing.subscriptions.selectors.quotas import subscriptions_at
from eventing.subscriptions.services.quotas import require_owner_quota
from eventing.subscriptions.services.subscriptions import remove

WEBSUB = "websub"
_STRANGER = "#"  # no identity of a token begins so


def stranger_at(host: str) -> str:
    """Return the owner of subscriptions with callbacks at a host that were requested without a token."""
    return _STRANGER + host


def callback_parse(callback: str) -> EndpointUrl:
    """Parse a callback by the domain's settings for endpoints. Raises InvalidRequest."""
    settings = config()
    return endpoint_url(callback, ports=ports_parse(settings.push_ports), private=settings.push_private)


def discovery_field(rp: str) -> str:
    """Return the field `Link` by which subscribers find hub and topic of an RP (rps/ports.py); empty where nothing is
    delivered."""
    settings = config()
    return link_field(hub_url(settings.base_url), topic_url(settings.base_url, rp)) if settings.push else ""


def websub_exists(rp: str, callback: str, *, now: datetime | None = None) -> bool:
    """Return True if the hub has a subscription of this topic and callback whose lease runs."""
    rows = Subscription.objects.filter(id=subscription_id(rp, callback), expires_at__gt=now or timezone.now())
    return bool(rp) and rows.exists()


def websub_subscribe(request: UnsettledRequest, *, now: datetime) -> str:
    """Create the subscription of a verified request, or replace its lease, secret and owner. Returns its id.

    A new subscription begins at the log's end; a replaced one continues where it is, and its endpoint is tried at once.

    Args:
        now: time of the verification request, from which the lease counts.

    Raises NotFound, Gone, Forbidden, QuotaExceeded, redis.RedisError (nothing is changed then).
    """
    descriptor = descriptor_get(request.rp, now=now)
    if request.owner.startswith(_STRANGER) and not descriptor.allows(ANONYMOUS, "subscribe"):
        raise Forbidden("The policy does not allow strangers to subscribe here.")
    found = subscription_id(descriptor.id, request.callback)
    with change(now) as outbox:
        row = Subscription.objects.select_for_update().filter(id=found).first()
        if row is not None and row.expires_at <= now:
            remove(row, outbox, "lease-expired")
            row = None
        if row is None:
            _create(found, request, descriptor, outbox)
        else:
            _replace(row, request, outbox)
        transaction.on_commit(lambda: deliverer_notify(found), robust=True)
    return found


def websub_unsubscribe(request: UnsettledRequest, *, now: datetime | None = None) -> None:
    """End the subscription of a verified request; one that has ended already is left."""
    with change(now or timezone.now()) as outbox:
        rows = Subscription.objects.select_for_update()
        row = rows.filter(id=subscription_id(request.rp, request.callback)).first()
        if row is not None:
            outbox.act("subscription.delete", None, "subscription", row.id, who=request.owner, rp=row.at, by=WEBSUB)
            remove(row, outbox, "deleted")


def _create(found: str, request: UnsettledRequest, descriptor: Descriptor, outbox: Outbox) -> None:
    row = Subscription(
        id=found,
        rp_id=None if descriptor.id in DOMAIN_ADMINS else descriptor.id.removesuffix(ADMIN_SUFFIX),
        at=descriptor.id,
        owner=request.owner,
        created_at=outbox.now,
    )
    row.bounds_set(descriptor.history)
    require_owner_quota(row.owner)
    if row.rp_id is None:
        lock_domain()
    else:
        rendezvous_point_get(row.rp_id, now=outbox.now, lock=True)
    limit = config().subscriptions_per_rp_max
    if subscriptions_at(descriptor.id) >= limit:
        raise QuotaExceeded(f"A rendezvous point has at most {limit} durable subscriptions.", limit=limit)
    log = control.log_state(descriptor.id) or control.ensure_log(descriptor.id, descriptor.history)
    begin = positions.resolve("now", log)
    cursor = Cursor(begin.epoch, begin.next - 1)
    row.start = str(cursor)
    _state(row, request, outbox)
    row.save(force_insert=True)
    outbox.event(
        events.SUBSCRIPTION_CREATED,
        row.lease_at,
        {"subscription": subscription_data(row)},
        domain_too=True,
        counted=True,
    )
    _endpoint(row, PushEndpoint(subscription=row, generation=0), request, outbox)
    outbox.lease_event(events.LEASE_GRANTED, row)
    outbox.act("subscription.create", None, "subscription", row.id, who=row.owner, rp=row.at, granted_s=row.granted_s)
    control.subscription_cursor_set(row.at, row.id, cursor)  # as in subscriptions/services/subscriptions.py


def _replace(row: Subscription, request: UnsettledRequest, outbox: Outbox) -> None:
    row.owner, row.version = request.owner, row.version + 1
    _state(row, request, outbox)
    row.save()
    endpoint = PushEndpoint.objects.select_for_update().filter(pk=row.id).first()
    outbox.event(events.SUBSCRIPTION_CHANGED, row.lease_at, {"subscription": subscription_data(row)}, domain_too=True)
    _endpoint(row, endpoint or PushEndpoint(subscription=row, generation=0), request, outbox)
    outbox.lease_event(events.LEASE_RENEWED, row)
    outbox.act("subscription.renew", None, "subscription", row.id, who=row.owner, rp=row.at, granted_s=row.granted_s)


def _state(row: Subscription, request: UnsettledRequest, outbox: Outbox) -> None:
    row.deliver = {
        "mode": WEBSUB,
        "url": callback_parse(request.callback).shown,
        "ordered": True,
        "in_flight": 1,
        "signature": config().websub_signature if request.secret else "none",
    }
    lease_grant(row, request.lease_s, outbox.now)


def _endpoint(row: Subscription, endpoint: PushEndpoint, request: UnsettledRequest, outbox: Outbox) -> None:
    secrets = (SealedSecret(request.secret),) if request.secret else ()
    endpoint.sealed = seal(row.id, EndpointSecrets(request.callback, (), secrets))
    endpoint.host, endpoint.generation = callback_parse(request.callback).host, endpoint.generation + 1
    standing_set(endpoint, EndpointStanding(EndpointState.ACTIVE, verified=True), outbox.now)
    endpoint.save()
    changed_event(outbox, endpoint, row)
