"""Endpoints that fail, or are paused because they did; for alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Window
from django.db.models.functions import Coalesce, RowNumber
from django.utils import timezone

from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.rules.endpoint_states import BY_OWNER, EndpointState

_FAILING = (EndpointState.FAILING, EndpointState.THROTTLED)


@dataclass(frozen=True, slots=True)
class FailingEndpoint:
    """An endpoint that fails: the subscription's id and RP, the RP in words, the address without its query."""

    id: str
    rp: str
    label: str
    url: str
    state: str
    reason: str
    since: datetime


def endpoints_failing(rps: Sequence[str] | None, count: int) -> list[FailingEndpoint]:
    """Return the endpoints of these RPs (None: of all) that have failed for longest: `count` of each RP, or of all.

    Those that were paused by their owner, and those that have not consented yet or are gone, are not among them.
    """
    rows = PushEndpoint.objects.filter(subscription__expires_at__gt=timezone.now())
    failing = rows.filter(state__in=_FAILING) | rows.filter(state=EndpointState.PAUSED).exclude(reason=BY_OWNER)
    failing = failing.annotate(since=Coalesce("failing_since", "state_at")).order_by("since", "pk")
    if rps is None:
        found = list(failing.select_related("subscription__rp")[:count])
    else:
        longest = Window(RowNumber(), partition_by="subscription__at", order_by=[F("since"), F("pk")])
        of_rps = failing.filter(subscription__at__in=rps).annotate(place=longest)
        found = list(of_rps.filter(place__lte=count).select_related("subscription__rp"))
    return [_row(row) for row in found]


def _row(row: PushEndpoint) -> FailingEndpoint:
    subscription = row.subscription
    rp = subscription.rp
    return FailingEndpoint(
        id=row.pk,
        rp=subscription.at,
        label=subscription.at if rp is None or subscription.at != rp.pk else rp.name or rp.pk,
        url=str(subscription.deliver.get("url", "")),
        state=row.state,
        reason=row.reason,
        since=row.failing_since or row.state_at,
    )
