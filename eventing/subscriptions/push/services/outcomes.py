"""Writes of the deliverer: how endpoints stand after attempts, events that were given up, replays and tests that are over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from django.utils import timezone

from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.models import PushDeadLetter, PushEndpoint
from eventing.subscriptions.push.rules.endpoint_states import REASON_CHARS_MAX, EndpointStanding, EndpointState
from eventing.subscriptions.push.services.endings import GONE_REASON
from eventing.subscriptions.push.services.standings import changed_event, standing_set
from eventing.subscriptions.push.services.warnings import WARNED_OF
from eventing.subscriptions.push.ws_eventing.sinks import MODE as WS_EVENTING
from eventing.subscriptions.services.subscriptions import remove

DEAD_LETTERS_MAX = 1000  # bound: dead letters of a subscription; the endpoint is paused instead of a further one
STANDING_COLUMNS = ("verified", "failures", "reason", "failing_since", "next_at")  # of a state that stays
BATCH = 200  # bound: endpoints of one transaction; the others are in the next one


@dataclass(frozen=True, slots=True)
class StandingFound:
    """Standing of an endpoint after an attempt; discarded if its owner did something since `generation`.

    Attributes:
        consented: whether the endpoint had consented before the attempt, which may not be stored: of several standings
            that wait for the database the last one is written.
    """

    subscription: str
    generation: int
    standing: EndpointStanding
    consented: bool = False


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Events of a subscription that were given up."""

    subscription: str
    epoch: str
    first: int
    last: int
    reason: str
    attempts: int


def standings_save(found: Sequence[StandingFound], *, now: datetime | None = None) -> None:
    """Write standings, and report those with another state."""
    for begin in range(0, len(found), BATCH):
        some = {one.subscription: one for one in found[begin : begin + BATCH]}
        with change(now or timezone.now()) as outbox:
            rows = PushEndpoint.objects.filter(pk__in=some).select_for_update().order_by("pk")
            same: list[PushEndpoint] = []
            for row in rows:
                one = some[row.pk]
                if row.generation != one.generation:
                    continue
                changed = row.state != one.standing.state
                standing_set(row, one.standing, outbox.now)
                if not changed:
                    same.append(row)
                elif _reported(row, outbox, consented=one.consented):
                    row.save()
            PushEndpoint.objects.bulk_update(same, STANDING_COLUMNS)


def allowed_rate_save(subscription_id: str, generation: int, rate: int | None) -> None:
    """Note the requests a minute that an endpoint allowed when it consented; None for no bound."""
    PushEndpoint.objects.filter(pk=subscription_id, generation=generation).exclude(allowed_rate=rate).update(
        allowed_rate=rate
    )


def _reported(row: PushEndpoint, outbox: Outbox, *, consented: bool) -> bool:
    """Report another state, before it is saved, and have its owner warned of it. Returns False for an endpoint that ends with its subscription.

    A subscription of WS-Eventing whose endpoint is gone ends, since nobody can state another endpoint for it.
    """
    subscription = Subscription.objects.get(pk=row.pk)
    changed_event(outbox, row, subscription)
    if row.state in WARNED_OF and subscription.deliver.get("warn_url"):
        row.warn_at = outbox.now
    if row.state != EndpointState.GONE or subscription.deliver.get("mode") != WS_EVENTING:
        return True
    if consented:
        PushEndpoint.objects.filter(pk=row.pk).update(verified=True)  # who has consented is told of the end
    remove(subscription, outbox, GONE_REASON)
    return False


def given_up_note(given_up: GivenUp, *, bounded: bool = True, now: datetime | None = None) -> bool:
    """Note events that were given up, and report them.

    Args:
        bounded: whether the number of dead letters decides; without it, events that the log lost are only reported once
            there are too many.

    Returns False if the subscription may have no further dead letter; nothing is noted then.
    """
    with change(now or timezone.now()) as outbox:
        at = Subscription.objects.filter(pk=given_up.subscription).values_list("at", flat=True).first()
        if at is None:
            return True
        full = PushDeadLetter.objects.filter(subscription=given_up.subscription).count() >= DEAD_LETTERS_MAX
        if full and bounded:
            return False
        reason = given_up.reason[:REASON_CHARS_MAX]
        if not full:
            PushDeadLetter.objects.create(
                subscription_id=given_up.subscription,
                epoch=given_up.epoch,
                first=given_up.first,
                last=given_up.last,
                reason=reason,
                attempts=given_up.attempts,
                created_at=outbox.now,
            )
        outbox.event(events.DELIVERY_GIVEN_UP, at, {**asdict(given_up), "reason": reason})
    return True


def replay_progressed(replay_id: int, first: int) -> None:
    """Note that the events of a replay before the offset `first` were delivered."""
    PushDeadLetter.objects.filter(pk=replay_id).update(first=first)


def replay_done(replay_id: int) -> None:
    """Remove a dead letter whose events were delivered."""
    PushDeadLetter.objects.filter(pk=replay_id).delete()


def replay_failed(replay_id: int, reason: str, attempts: int) -> None:
    """Note that a replay failed: its events are a dead letter again."""
    PushDeadLetter.objects.filter(pk=replay_id).update(
        replay=False, reason=reason[:REASON_CHARS_MAX], attempts=attempts
    )


def test_done(subscription_id: str, test_id: str) -> None:
    """Note that the test event was sent."""
    PushEndpoint.objects.filter(pk=subscription_id, test_id=test_id).update(test_id="")
