"""Warnings to owners: due when the domain pauses an endpoint, not when its owner does; repeated, and given up at last."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from eventing.core.principals import Principal
from eventing.rps.models import RendezvousPoint
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.rules.endpoint_states import EndpointStanding, EndpointState, paused
from eventing.subscriptions.push.services.endpoints import endpoint_pause, endpoint_resume
from eventing.subscriptions.push.services.outcomes import StandingFound, standings_save
from eventing.subscriptions.push.services.warnings import PAUSES_S, warning_done, warning_failed, warnings_due
from eventing.subscriptions.services.subscriptions import subscription_create

pytestmark = pytest.mark.usefixtures("stores")

NewRp = Callable[..., RendezvousPoint]
ACTIVE = EndpointStanding(EndpointState.ACTIVE, verified=True)


def hook(rp: RendezvousPoint, owner: Principal, **deliver: Any) -> str:
    """Create a webhook whose endpoint has consented."""
    stated = {
        "mode": "webhook",
        "url": "https://a.example.org/",
        "warn_url": "https://w.example.org/?k=hidden",
        **deliver,
    }
    subscription = subscription_create(reference=rp.id, principal=owner, deliver=stated).id
    standings_save([StandingFound(subscription, 1, ACTIVE)])
    return subscription


def pause(subscription: str) -> None:
    generation = PushEndpoint.objects.get(pk=subscription).generation
    standings_save([StandingFound(subscription, generation, paused(ACTIVE, "schedule-exhausted: http-500"))])


def test_a_pause_of_the_domain_is_due_with_what_happened(new_rp: NewRp, ben: Principal) -> None:
    subscription = hook(new_rp(), ben)
    assert warnings_due([], 10) == []
    pause(subscription)
    (due,) = warnings_due([], 10)
    assert (due.subscription, due.owner, due.number) == (subscription, ben.identity, 0)
    assert (due.data["state"], due.data["reason"]) == ("paused", "schedule-exhausted: http-500")
    assert "hidden" not in str(due.data)
    warning_done(due)
    assert warnings_due([], 10) == []


def test_an_owner_who_pauses_is_not_warned(new_rp: NewRp, ben: Principal) -> None:
    endpoint_pause(subscription_id=hook(new_rp(), ben), principal=ben)
    assert warnings_due([], 10) == []


def test_without_an_address_nobody_is_warned(new_rp: NewRp, ben: Principal) -> None:
    pause(hook(new_rp(), ben, warn_url=None))
    assert warnings_due([], 10) == []


def test_a_failed_warning_is_tried_again_and_given_up_at_last(new_rp: NewRp, ben: Principal) -> None:
    subscription, now = hook(new_rp(), ben), timezone.now()
    pause(subscription)
    for pause_s in PAUSES_S:
        now += timedelta(seconds=1)
        (due,) = warnings_due([], 10, now=now)
        warning_failed(due, now=now)
        assert warnings_due([], 10, now=now + timedelta(seconds=pause_s - 1)) == []
        now += timedelta(seconds=pause_s)
    (due,) = warnings_due([], 10, now=now)
    warning_failed(due, now=now)
    assert warnings_due([], 10, now=now + timedelta(days=30)) == []


def test_an_endpoint_that_is_resumed_meanwhile_is_not_warned_of(new_rp: NewRp, ben: Principal) -> None:
    subscription = hook(new_rp(), ben)
    pause(subscription)
    (due,) = warnings_due([], 10)
    endpoint_resume(subscription_id=subscription, principal=ben)
    assert warnings_due([], 10) == []
    warning_failed(due)
    assert PushEndpoint.objects.get(pk=subscription).warn_at is None
