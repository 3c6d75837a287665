"""Writes of endpoints by their owners: stated, paused, resumed, tested, secrets rotated. The deliverer is notified after
the commit; a lost notice is found by its sweep.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from msgspec.structs import astuple, replace

from eventing.access.rules.permission import require_writer
from eventing.conf import config
from eventing.core.errors import Conflict, InvalidRequest, QuotaExceeded
from eventing.core.events.lag import Lag
from eventing.core.principals import Principal
from eventing.outbox.services import Outbox, change
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.sql.locking import lock_domain
from eventing.sql.random_ids import random_id
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.rules.addresses import ports_parse
from eventing.subscriptions.push.rules.credentials import StatedCredential
from eventing.subscriptions.push.rules.endpoint_states import (
    BY_OWNER,
    EndpointStanding,
    EndpointState,
    paused,
    resumed,
)
from eventing.subscriptions.push.rules.options import HIDDEN, MODES, WebhookOptions, webhook_options
from eventing.subscriptions.push.rules.signatures import secret_parse
from eventing.subscriptions.push.selectors import endpoint_get, standing_of, unverified_count
from eventing.subscriptions.push.services import endings
from eventing.subscriptions.push.services.notices import deliverer_notify
from eventing.subscriptions.push.services.standings import changed_event, standing_set
from eventing.subscriptions.push.services.vault import (
    SECRETS_MAX,
    EndpointSecrets,
    SealedCredential,
    SealedIdentity,
    SealedSecret,
    SecretsNotOpened,
    seal,
    unseal,
)
from eventing.subscriptions.push.ws_eventing.sinks import MODE as WS_EVENTING
from eventing.subscriptions.push.ws_eventing.sinks import SinkOptions, sink_options
from eventing.subscriptions.selectors.subscriptions import subscription_get
from eventing.subscriptions.services.permission import require_managed

KEEP_S_DEFAULT = 86_400
KEEP_S_MAX = 7 * 86_400  # bound: seconds for which a replaced secret signs on; the request is refused
_DEPENDENT = {
    "format": ("batch",),
    "ordered": ("in_flight",),
    "secret": ("signature",),
    "client_certificate": ("client_key",),
}
"""Options whose default depends on another one, which therefore are not kept when that one is stated."""


def options_checked(deliver: Mapping[str, Any], before: Subscription | None) -> dict[str, Any]:
    """Validate `deliver` and return it as shown (subscriptions/ports.py: endpoint_checked)."""
    return _options(deliver, before).shown


def endpoint_set(row: Subscription, deliver: Mapping[str, Any] | None, outbox: Outbox) -> None:
    """Write the endpoint of a subscription (subscriptions/ports.py: endpoint_set).

    A new endpoint, or one with another address, is asked for its consent before anything else. Its event follows that of
    the subscription.
    """
    transaction.on_commit(lambda: deliverer_notify(row.id), robust=True)
    before = PushEndpoint.objects.select_for_update().filter(pk=row.id).first()
    if deliver is None:
        if before is not None:
            before.delete()
        return
    options = _options(deliver, row if before else None)
    held = _secrets(before) if before else None
    secrets = held.secrets if held and held.secrets and held.secrets[0].value == options.secret else ()
    if options.secret and not secrets:
        secrets = (SealedSecret(options.secret),)
    sealed = seal(row.id, _sealed_of(options, secrets))
    if before is not None and held is not None and held.url == options.url:
        before.sealed, before.generation = sealed, before.generation + 1
        before.save(update_fields=["sealed", "generation"])
        return
    lock_domain()  # counts and their bound
    limit = config().push_unverified_max
    for counted in ({"owner": row.owner}, {"host": options.parts.host}):
        if unverified_count(**counted) >= limit:
            raise QuotaExceeded(
                f"At most {limit} endpoints of one owner, and at one host, may be without consent. Try again when those "
                "have answered, or delete some.",
                limit=limit,
            )
    made = before or PushEndpoint(subscription=row, generation=0)
    made.sealed, made.host, made.generation = sealed, options.parts.host, made.generation + 1
    made.allowed_rate = None
    standing_set(made, EndpointStanding(), outbox.now)
    made.save()
    changed_event(outbox, made, row)


def endpoint_pause(*, subscription_id: str, principal: Principal, now: datetime | None = None) -> PushEndpoint:
    """Stop deliveries until `endpoint_resume`; events wait in the log. Raises NotFound, Gone, Forbidden."""
    return _changed(subscription_id, principal, "pause", lambda row: paused(standing_of(row), BY_OWNER), now)


def endpoint_resume(*, subscription_id: str, principal: Principal, now: datetime | None = None) -> PushEndpoint:
    """Try at once, with the whole retry schedule ahead. Raises NotFound, Gone, Forbidden, Conflict (the endpoint is gone)."""
    return _changed(subscription_id, principal, "resume", lambda row: resumed(standing_of(row)), now)


def endpoint_test(*, subscription_id: str, principal: Principal, now: datetime | None = None) -> str:
    """Have a test event sent; one that waits already is the same. Returns its id. Raises NotFound, Gone, Forbidden, Conflict."""
    with change(now or timezone.now()) as outbox:
        row, _ = _managed(subscription_id, principal, outbox.now)
        if row.state in (EndpointState.PAUSED, EndpointState.GONE):
            raise Conflict(f"The endpoint is {row.state}; resume it first.")
        if not row.test_id:
            row.test_id, row.generation = f"test_{random_id()}", row.generation + 1
            row.save(update_fields=["test_id", "generation"])
            transaction.on_commit(lambda: deliverer_notify(subscription_id), robust=True)
    return row.test_id


def endpoint_secret_rotate(
    *,
    subscription_id: str,
    principal: Principal,
    secret: str,
    keep_s: int = KEEP_S_DEFAULT,
    now: datetime | None = None,
) -> PushEndpoint:
    """Sign with another secret; the present one signs too for `keep_s` seconds. Raises NotFound, Gone, Forbidden, InvalidRequest."""
    secret_parse(secret)
    if not 0 <= keep_s <= KEEP_S_MAX:
        raise InvalidRequest(f"keep_s is from 0 to {KEEP_S_MAX} seconds.")
    with change(now or timezone.now()) as outbox:
        row, subscription = _managed(subscription_id, principal, outbox.now)
        if subscription.deliver["mode"] == "websub":
            raise Conflict("The subscriber states the secret, in another request to the WebSub hub.")
        held = _secrets(row)
        if subscription.deliver.get("mode") == WS_EVENTING:
            raise Conflict("Messages of WS-Eventing are not signed; the endpoint has no secret.")
        if held is None:
            raise Conflict("The domain's secret key changed since the endpoint was stated. State deliver.url anew.")
        at = outbox.now.timestamp()
        older = [SealedSecret(one.value, min(one.until or at + keep_s, at + keep_s)) for one in held.secrets[:1]]
        secrets = (SealedSecret(secret), *(older if keep_s else ()))[:SECRETS_MAX]
        row.sealed = seal(subscription_id, replace(held, secrets=secrets))
        row.generation += 1
        row.save(update_fields=["sealed", "generation"])
        if subscription.deliver.get("signature") == "v1a":
            subscription.deliver = {**subscription.deliver, "signature": "both"}
            subscription.version += 1
            subscription.save(update_fields=["deliver", "version"])
        outbox.act("endpoint.rotate-secret", principal, "subscription", subscription_id, rp=subscription.at)
        transaction.on_commit(lambda: deliverer_notify(subscription_id), robust=True)
    return row


def subscription_ended(
    row: Subscription, outbox: Outbox, reason: str, *, lag: Lag | None = None, by: Principal | None = None
) -> None:
    """Notify the deliverer that a subscription ends, and its subscriber (subscriptions/ports.py: subscription_ending)."""
    endings.subscription_ended(row, reason, by)
    if row.deliver.get("mode") != "pull":
        subscription_id = row.id
        transaction.on_commit(lambda: deliverer_notify(subscription_id), robust=True)


def _changed(
    subscription_id: str, principal: Principal, what: str, standing: Any, now: datetime | None
) -> PushEndpoint:
    with change(now or timezone.now()) as outbox:
        row, subscription = _managed(subscription_id, principal, outbox.now)
        if row.state == EndpointState.GONE:
            raise Conflict("The endpoint answered 410 and is gone. State another deliver.url, or the same one again.")
        standing_set(row, standing(row), outbox.now)
        row.generation += 1
        row.save()
        outbox.act(f"endpoint.{what}", principal, "subscription", subscription_id, rp=subscription.at)
        changed_event(outbox, row, subscription)
        transaction.on_commit(lambda: deliverer_notify(subscription_id), robust=True)
    return row


def _managed(subscription_id: str, principal: Principal, now: datetime) -> tuple[PushEndpoint, Subscription]:
    """Return the endpoint, locked, and its subscription, if `principal` may manage it."""
    require_writer(principal)
    subscription = subscription_get(subscription_id, now=now, lock=True)
    require_managed(subscription, descriptor_get(subscription.at, now=now), principal)
    return endpoint_get(subscription_id, lock=True), subscription


def _options(deliver: Mapping[str, Any], before: Subscription | None) -> WebhookOptions | SinkOptions:
    """Validate `deliver` over what the subscription has."""
    if not config().push:
        raise InvalidRequest("This domain delivers to no endpoints (HERALD_PUSH); pull the events.")
    ports, private = ports_parse(config().push_ports), config().push_private
    if deliver.get("mode") == WS_EVENTING:
        return sink_options(str(deliver["sink"]), ports=ports, private=private)
    if deliver.get("mode") not in MODES:
        raise InvalidRequest(f"deliver.mode is pull, {' or '.join(MODES)}.")
    stated = dict(deliver)
    if before is not None and before.deliver.get("mode") == deliver["mode"]:
        row = PushEndpoint.objects.filter(pk=before.id).first()
        held = _secrets(row) if row is not None else None
        if held is not None:
            kept = {**before.deliver, **_held_options(held)}
            for name, dependent in _DEPENDENT.items():
                if name in stated:
                    kept = {one: value for one, value in kept.items() if one not in dependent}
            held_fields = dict(held.headers)
            fields = {name: held_fields.get(name) if value == HIDDEN else value for name, value in _fields(stated)}
            stated = {**kept, **stated, **({"headers": fields} if "headers" in stated else {})}
    return webhook_options(stated, ports=ports, private=private)


def _fields(stated: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list((stated.get("headers") or {}).items())


def _held_options(held: EndpointSecrets) -> dict[str, Any]:
    """Return the options that are sealed, as `webhook_options` takes them."""
    identity, credential = held.identity, held.credential
    return {
        "url": held.url,
        "headers": dict(held.headers),
        "secret": held.secrets[0].value if held.secrets else None,
        "client_certificate": identity.certificate if identity else None,
        "client_key": identity.key if identity else None,
        "warn_url": held.warn_url,
        **({"credential": StatedCredential(*astuple(credential))} if credential else {}),
    }


def _sealed_of(options: WebhookOptions | SinkOptions, secrets: tuple[SealedSecret, ...]) -> EndpointSecrets:
    if isinstance(options, SinkOptions):
        return EndpointSecrets(options.url, mode_data=options.mode_data)
    identity, credential = options.identity, options.credential
    return EndpointSecrets(
        options.url,
        options.headers,
        secrets,
        identity=SealedIdentity(identity.certificate, identity.key, identity.digest) if identity else None,
        warn_url=options.warn_url,
        credential=SealedCredential(credential.type, credential.identifier, credential.field, credential.until)
        if credential
        else None,
    )


def _secrets(row: PushEndpoint) -> EndpointSecrets | None:
    try:
        return unseal(row.subscription_id, bytes(row.sealed))
    except SecretsNotOpened:
        return None


def secrets_signing(row: PushEndpoint) -> int:
    """Return the number of secrets that sign now."""
    held = _secrets(row)
    return len(held.signing(time.time())) if held else 0
