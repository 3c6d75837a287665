"""Writes of contact points: create, change, delete. Each is in the audit, without what is secret."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from eventing.access.rules.permission import require_operator
from eventing.conf import config
from eventing.core.errors import Conflict, InvalidRequest, QuotaExceeded
from eventing.core.principals import Principal
from eventing.operations.notification.models import AlarmNotice, ContactPoint
from eventing.operations.notification.rules.contact_points import (
    CONTACT_POINTS_MAX,
    GROUP_S_DEFAULT,
    KINDS,
    MAIL,
    WEBHOOK,
    addresses_checked,
    name_checked,
)
from eventing.operations.notification.selectors import contact_point_get
from eventing.operations.notification.services.vault import SealedTarget, TargetNotOpened, seal, unseal
from eventing.outbox.services import change
from eventing.rps.rules.watches import SEVERITIES
from eventing.sql.random_ids import random_id
from eventing.subscriptions.push.rules.addresses import EndpointUrl, endpoint_url, ports_parse
from eventing.subscriptions.push.rules.signatures import SECRET_PREFIX, secret_parse

SECRET_BYTES = 32


def contact_point_create(
    *,
    principal: Principal,
    name: str,
    kind: str,
    url: str | None = None,
    secret: str | None = None,
    to: Sequence[str] | None = None,
    severity: str = "warning",
    resolved: bool = True,
    group_s: int = GROUP_S_DEFAULT,
    now: datetime | None = None,
) -> tuple[ContactPoint, str | None]:
    """Create a contact point. Returns the row, and the secret of a webhook, which is not shown again.

    Args:
        url, secret: of a webhook; without a secret one is made.
        to: addresses of mail.

    For operators. Raises Forbidden, InvalidRequest, Conflict (the name is taken), QuotaExceeded.
    """
    now = now or timezone.now()
    require_operator(principal)
    if kind not in KINDS:
        raise InvalidRequest(f"kind is one of {', '.join(KINDS)}.")
    row = ContactPoint(
        id=f"cp_{random_id()}",
        kind=kind,
        severity=_severity(severity),
        resolved=resolved,
        group_s=group_s,
        created_at=now,
        created_by=principal.identity,
        next_at=now,
    )
    target = _target(kind, SealedTarget(), {"url": url, "secret": secret, "to": to})
    with change(now) as outbox:
        _named(row, name)
        if ContactPoint.objects.count() >= CONTACT_POINTS_MAX:
            raise QuotaExceeded(f"A domain has at most {CONTACT_POINTS_MAX} contact points.", limit=CONTACT_POINTS_MAX)
        _aim(row, target)
        row.save(force_insert=True)
        outbox.act("contact-point.create", principal, "contact-point", row.id, name=row.name, target=row.shown)
    return row, target.secret or None


def contact_point_change(
    *, contact_point: str, principal: Principal, changes: Mapping[str, Any], now: datetime | None = None
) -> ContactPoint:
    """Change members of a contact point, all but its kind; failures are forgotten, and the next attempt is made at once.

    For operators. Raises Forbidden, NotFound, InvalidRequest, Conflict (the name is taken).
    """
    now = now or timezone.now()
    require_operator(principal)
    with change(now) as outbox:
        row = contact_point_get(contact_point, lock=True)
        if "name" in changes:
            _named(row, changes["name"])
        if changes.keys() & {"url", "secret", "to"}:
            try:
                held = unseal(row.id, bytes(row.sealed))
            except TargetNotOpened:
                held = SealedTarget()
            _aim(row, _target(row.kind, held, changes))
        if changes.get("resolved") and not row.resolved:  # alarms that ended before are not notified now
            AlarmNotice.objects.filter(contact_point=row, alarm__cleared_at__isnull=False).update(resolved=True)
        row.severity = _severity(changes.get("severity", row.severity))
        row.resolved, row.group_s = changes.get("resolved", row.resolved), changes.get("group_s", row.group_s)
        row.failures, row.failure, row.next_at = 0, "", now
        row.save()
        outbox.act("contact-point.change", principal, "contact-point", row.id, name=row.name, changed=sorted(changes))
    return row


def contact_point_delete(*, contact_point: str, principal: Principal, now: datetime | None = None) -> None:
    """Delete a contact point. For operators. Raises Forbidden, NotFound."""
    require_operator(principal)
    with change(now or timezone.now()) as outbox:
        row = contact_point_get(contact_point, lock=True)
        outbox.act("contact-point.delete", principal, "contact-point", row.id, name=row.name, target=row.shown)
        row.delete()


def _named(row: ContactPoint, name: str) -> None:
    row.name = name_checked(name)
    if ContactPoint.objects.filter(name=row.name).exclude(id=row.id).exists():
        raise Conflict("There is another contact point of this name.")


def _aim(row: ContactPoint, target: SealedTarget) -> None:
    row.sealed = seal(row.id, target)
    row.shown = _url(target.url).shown if target.url else ", ".join(target.to)


def _target(kind: str, held: SealedTarget, stated: Mapping[str, Any]) -> SealedTarget:
    """Return the target with what is stated. Raises InvalidRequest."""
    url, secret, to = stated.get("url"), stated.get("secret"), stated.get("to")
    if kind == MAIL:
        if url is not None or secret is not None:
            raise InvalidRequest("A contact point by mail has neither url nor secret.")
        if not config().smtp_host:
            raise InvalidRequest("This domain sends no mail: HERALD_SMTP_HOST is not set.")
        return SealedTarget(to=addresses_checked(held.to if to is None else to))
    if to is not None:
        raise InvalidRequest(f"A contact point of kind {WEBHOOK} has a url, and no `to`.")
    _url(url := held.url if url is None else url)
    secret = secret or held.secret or SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
    secret_parse(secret)
    return SealedTarget(url=url, secret=secret)


def _url(text: str) -> EndpointUrl:
    settings = config()
    return endpoint_url(text, ports=ports_parse(settings.push_ports), private=settings.push_private, member="url")


def _severity(severity: str) -> str:
    if severity not in SEVERITIES:
        raise InvalidRequest(f"severity is one of {', '.join(SEVERITIES)}.")
    return severity
