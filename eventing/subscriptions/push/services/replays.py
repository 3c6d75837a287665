"""Requests to send events again: dead letters, one, several or all; or a range of the log, delivered or not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from eventing.access.rules.permission import require_writer
from eventing.core.errors import Conflict, InvalidCursor, InvalidRequest, QuotaExceeded
from eventing.core.events.cursors import Cursor
from eventing.core.principals import Principal
from eventing.log import control
from eventing.outbox.services import change
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.permission import require
from eventing.subscriptions.push.models import PushDeadLetter
from eventing.subscriptions.push.rules.endpoint_states import EndpointState
from eventing.subscriptions.push.selectors import endpoint_get
from eventing.subscriptions.push.services.notices import deliverer_notify
from eventing.subscriptions.push.services.outcomes import DEAD_LETTERS_MAX
from eventing.subscriptions.selectors.subscriptions import subscription_get
from eventing.subscriptions.services.permission import require_managed

ALL = "all"
REQUESTED = "requested"
IDS_MAX = 100  # bound: dead letters named in one request; the request is refused


def dead_letters_replay(
    *, subscription_id: str, principal: Principal, ids: Sequence[int] | None = None, now: datetime | None = None
) -> int:
    """Have dead letters sent again; those whose events the log no longer has fail again.

    Args:
        ids: None for all of the subscription.

    Returns their number. Raises NotFound, Gone, Forbidden, Conflict, InvalidRequest.
    """
    if ids is not None and len(ids) > IDS_MAX:
        raise InvalidRequest(f"At most {IDS_MAX} dead letters are named at once.")
    with change(now or timezone.now()) as outbox:
        rp = _managed(subscription_id, principal, outbox.now)
        rows = PushDeadLetter.objects.filter(subscription=subscription_id, replay=False)
        if ids is not None:
            rows = rows.filter(id__in=ids)
        count: int = rows.update(replay=True)
        outbox.act("delivery.replay", principal, "subscription", subscription_id, rp=rp, dead_letters=count)
        transaction.on_commit(lambda: deliverer_notify(subscription_id), robust=True)
    return count


def range_replay(
    *, subscription_id: str, principal: Principal, first: Cursor, last: Cursor, now: datetime | None = None
) -> int:
    """Have the events after the cursor `first` up to the cursor `last` sent again, whether they were delivered or not.

    Returns 1. Raises NotFound, Gone, Forbidden, Conflict, InvalidCursor, QuotaExceeded.
    """
    with change(now or timezone.now()) as outbox:
        rp = _managed(subscription_id, principal, outbox.now)
        require(descriptor_get(rp, now=outbox.now), principal, "history")
        log = control.log_state(rp)
        if log is None or {first.epoch, last.epoch} != {log.epoch} or not first.offset < last.offset < log.next:
            raise InvalidCursor(
                "from and to are cursors of the log's present epoch, from before to, with events between."
            )
        if PushDeadLetter.objects.filter(subscription=subscription_id).count() >= DEAD_LETTERS_MAX:
            raise QuotaExceeded(f"A subscription has at most {DEAD_LETTERS_MAX} dead letters and replays.")
        PushDeadLetter.objects.create(
            subscription_id=subscription_id,
            epoch=first.epoch,
            first=first.offset + 1,
            last=last.offset,
            reason=REQUESTED,
            replay=True,
            created_at=outbox.now,
        )
        span = [first.offset + 1, last.offset]
        outbox.act("delivery.replay", principal, "subscription", subscription_id, rp=rp, offsets=span)
        transaction.on_commit(lambda: deliverer_notify(subscription_id), robust=True)
    return 1


def dead_letter_delete(*, subscription_id: str, principal: Principal, dead_letter: int) -> None:
    """Discard a dead letter. Raises NotFound, Gone, Forbidden."""
    with change(timezone.now()) as outbox:
        rp = _managed(subscription_id, principal, outbox.now, working=False)
        PushDeadLetter.objects.filter(subscription=subscription_id, pk=dead_letter).delete()
        outbox.act("delivery.discard", principal, "subscription", subscription_id, rp=rp, dead_letter=dead_letter)


def _managed(subscription_id: str, principal: Principal, now: datetime, *, working: bool = True) -> str:
    """Return the RP of a subscription that `principal` may manage, and whose endpoint can be sent to."""
    require_writer(principal)
    subscription = subscription_get(subscription_id, now=now, lock=True)
    require_managed(subscription, descriptor_get(subscription.at, now=now), principal)
    row = endpoint_get(subscription_id)
    if working and row.state in (EndpointState.GONE, EndpointState.UNVERIFIED):
        raise Conflict(f"The endpoint is {row.state}: nothing is sent to it.")
    return subscription.at
