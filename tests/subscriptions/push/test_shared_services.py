"""Endpoints of subscriptions that several domains hold, in SQL: which are shared, and what a record of another domain leaves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from eventing.core.errors import Conflict, InvalidRequest
from eventing.core.principals import Principal
from eventing.rps.models import RendezvousPoint
from eventing.subscriptions.push.models import PushEndpoint
from eventing.subscriptions.push.selectors import endpoints_able
from eventing.subscriptions.rules.delivery_ability import EndpointAbility
from eventing.subscriptions.services.subscriptions import subscription_create

pytestmark = pytest.mark.usefixtures("stores")

NewRp = Callable[..., RendezvousPoint]
HOOK = {"mode": "webhook", "url": "https://hooks.example.org/in"}


def test_a_webhook_may_have_several_holders_and_other_endpoints_may_not(new_rp: NewRp, ben: Principal) -> None:
    with pytest.raises(Conflict, match="other domains are needed"):
        subscription_create(reference=new_rp().id, principal=ben, deliver=HOOK, replicas=2)
    with pytest.raises(InvalidRequest, match="pull or webhook"):
        subscription_create(
            reference=new_rp().id, principal=ben, deliver={**HOOK, "mode": "cloudevents-http"}, replicas=2
        )


def test_an_endpoint_is_able_once_it_has_consented_and_states_when_it_is_called_again(
    new_rp: NewRp, ben: Principal
) -> None:
    rp, soon = new_rp(), timezone.now() + timedelta(minutes=5)
    states = {
        "unverified": None,
        "active": EndpointAbility(),
        "throttled": EndpointAbility(),
        "failing": EndpointAbility(round(soon.timestamp() * 1000)),
        "paused": None,
        "gone": None,
    }
    made = {state: subscription_create(reference=rp.id, principal=ben, deliver=HOOK).id for state in states}
    for state, one in made.items():
        PushEndpoint.objects.filter(pk=one).update(state=state, next_at=soon)
    found = endpoints_able([*made.values(), "sub_unknown"])
    assert {state: found.get(one) for state, one in made.items()} == states
