"""Invitations of other homes, decided by the standing policy, recorded and reported."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F, Sum, Value
from django.db.models.functions import Concat
from django.utils import timezone

from eventing.core.errors import Forbidden, Unavailable
from eventing.operations.placement.models import InvitationReceived
from eventing.operations.placement.rules.invitations import InvitationAsked, history_granted, judged
from eventing.operations.placement.selectors.bounds import standing_policy
from eventing.operations.placement.selectors.own_state import pressure_now
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.replication.ports import InvitationOffered
from eventing.rps.models import RendezvousPoint

HOUR_S = 3600
KEPT_S = 86_400
PURGE_BATCH = 1000
LATER_S = 300
"""Seconds after which an inviting domain may ask again."""


def invitation_decide(offered: InvitationOffered, *, now: datetime | None = None) -> int:
    """Decide about an invitation by the standing policy. Returns the bytes of history that the replica may take.

    Raises Forbidden, or Unavailable where it may be accepted later, with the reason. An invitation beyond the rate of its home is
    refused without a record: a storm costs one query each.
    """
    now = now or timezone.now()
    policy = standing_policy()
    asked_last_hour = InvitationReceived.objects.filter(
        home=offered.home, at__gt=now - timedelta(seconds=HOUR_S)
    ).count()
    # A replica by invitation counts as made by its home, as a principal from elsewhere (Principal.identity).
    by_invitation = Concat(F("home"), Value("#"), F("home"))
    held = RendezvousPoint.objects.exclude(home="").filter(creator=by_invitation, expires_at__gt=now)
    totals = held.aggregate(bytes=Sum("max_bytes"))
    asked = InvitationAsked(
        home=offered.home,
        host=offered.host,
        history_bytes=offered.history_bytes,
        events_per_s=offered.events_per_s,
        asked_last_hour=asked_last_hour,
        replicas=held.count(),
        replicas_of_home=held.filter(home=offered.home).count(),
        history_bytes_total=totals["bytes"] or 0,
        pressure=pressure_now(),
    )
    refusal = judged(asked, policy)
    if refusal is None or refusal.reason != "too-many":
        reason, detail = ("", "") if refusal is None else (refusal.reason, refusal.detail)
        with change(now) as outbox:
            InvitationReceived.objects.create(home=offered.home, rp=offered.rp, at=now, reason=reason, detail=detail)
            data = {"home": offered.home, "rp": offered.rp, "reason": reason, "detail": detail}
            outbox.event(events.INVITATION_ANSWERED, "domain.admin", data)
    if refusal is None:
        return history_granted(offered.history_bytes, policy)
    if refusal.later:
        raise Unavailable(refusal.detail, retry_after_s=LATER_S)
    raise Forbidden(refusal.detail)


def invitations_purge(*, now: datetime | None = None) -> int:
    """Delete a batch of old invitations. Returns how many."""
    before = (now or timezone.now()) - timedelta(seconds=KEPT_S)
    ids = list(InvitationReceived.objects.filter(at__lte=before).values_list("id", flat=True)[:PURGE_BATCH])
    return InvitationReceived.objects.filter(id__in=ids).delete()[0]
