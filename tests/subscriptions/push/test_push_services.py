"""Writes of push: what is stored of an endpoint, who may do what with it, and what administrative events say."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from eventing.core.errors import Conflict, Forbidden, InvalidCursor, NotFound, QuotaExceeded
from eventing.core.events.cursors import Cursor
from eventing.core.principals import Principal
from eventing.log import control
from eventing.rps.models import RendezvousPoint
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.models import PushDeadLetter, PushEndpoint
from eventing.subscriptions.push.process.course import Course
from eventing.subscriptions.push.rules.endpoint_states import EndpointStanding, EndpointState
from eventing.subscriptions.push.selectors import endpoints_named, endpoints_page, replays_waiting
from eventing.subscriptions.push.services import outcomes
from eventing.subscriptions.push.services.endpoints import (
    endpoint_pause,
    endpoint_resume,
    endpoint_secret_rotate,
    endpoint_test,
)
from eventing.subscriptions.push.services.outcomes import (
    GivenUp,
    StandingFound,
    allowed_rate_save,
    given_up_note,
    standings_save,
)
from eventing.subscriptions.push.services.replays import dead_letters_replay, range_replay
from eventing.subscriptions.push.services.vault import SecretsNotOpened, unseal
from eventing.subscriptions.services.subscriptions import subscription_create, subscription_update
from tests.planes import events_made, principal, types_at

pytestmark = pytest.mark.usefixtures("stores")

NewRp = Callable[..., RendezvousPoint]
SECRET = "whsec_" + "A" * 40
OTHER = "whsec_" + "B" * 40
URL = "https://hooks.example.org/in?key=hidden"


def hook(rp: RendezvousPoint, owner: Principal, **deliver: Any) -> Subscription:
    stated = {"mode": "webhook", "url": URL, "secret": SECRET, "headers": {"X-Key": "hidden"}, **deliver}
    return subscription_create(reference=rp.id, principal=owner, deliver=stated)


def test_neither_the_row_nor_the_answer_has_a_secret(new_rp: NewRp, ben: Principal) -> None:
    row = hook(new_rp(), ben)
    sealed = bytes(PushEndpoint.objects.get(pk=row.id).sealed)
    for hidden in (b"hidden", SECRET.encode(), b"AAAA"):
        assert hidden not in sealed
    assert "hidden" not in str(row.deliver)
    assert SECRET not in str(row.deliver)
    opened = unseal(row.id, sealed)
    assert (opened.url, opened.headers, opened.signing()) == (URL, (("X-Key", "hidden"),), (SECRET,))


def test_what_is_sealed_for_one_subscription_opens_for_no_other(new_rp: NewRp, ben: Principal) -> None:
    rp = new_rp()
    sealed = bytes(PushEndpoint.objects.get(pk=hook(rp, ben).id).sealed)
    with pytest.raises(SecretsNotOpened):
        unseal(hook(rp, ben).id, sealed)


def test_a_change_keeps_the_secrets_that_it_does_not_state(new_rp: NewRp, ben: Principal) -> None:
    row = hook(new_rp(), ben)
    standings_save([StandingFound(row.id, 1, EndpointStanding(EndpointState.ACTIVE, verified=True))])
    changed = subscription_update(
        subscription_id=row.id, principal=ben, changes={"deliver": {"mode": "webhook", "format": "binary"}}
    )
    held = PushEndpoint.objects.get(pk=row.id)
    assert changed.deliver["format"] == "binary"
    assert unseal(row.id, bytes(held.sealed)).signing() == (SECRET,)
    assert held.state == "active", "the address is the same: it need not consent again"


def test_the_rate_that_an_endpoint_allowed_is_kept_until_it_has_another_address(new_rp: NewRp, ben: Principal) -> None:
    row = hook(new_rp(), ben)
    allowed_rate_save(row.id, 1, 120)
    allowed_rate_save(row.id, 2, 999)  # the answer to a question that its owner has overtaken
    assert endpoints_named([row.id])[row.id].allowed_rate == 120
    stated = {"mode": "webhook", "url": "https://other.example.org/"}
    subscription_update(subscription_id=row.id, principal=ben, changes={"deliver": stated})
    assert endpoints_named([row.id])[row.id].allowed_rate is None


def test_another_address_must_consent(new_rp: NewRp, ben: Principal) -> None:
    row = hook(new_rp(), ben)
    standings_save([StandingFound(row.id, 1, EndpointStanding(EndpointState.ACTIVE, verified=True))])
    stated = {"mode": "webhook", "url": "https://other.example.org/"}
    subscription_update(subscription_id=row.id, principal=ben, changes={"deliver": stated})
    held = PushEndpoint.objects.get(pk=row.id)
    assert (held.state, held.verified, held.host) == ("unverified", False, "other.example.org")


def test_a_subscription_that_is_pulled_again_has_no_endpoint(new_rp: NewRp, ben: Principal) -> None:
    row = hook(new_rp(), ben)
    subscription_update(subscription_id=row.id, principal=ben, changes={"deliver": {"mode": "pull"}})
    assert not PushEndpoint.objects.exists()
    with pytest.raises(NotFound):
        endpoint_pause(subscription_id=row.id, principal=ben)


def test_during_a_rotation_two_secrets_sign(new_rp: NewRp, ben: Principal) -> None:
    row = hook(new_rp(), ben)
    endpoint_secret_rotate(subscription_id=row.id, principal=ben, secret=OTHER, keep_s=60)
    held = unseal(row.id, bytes(PushEndpoint.objects.get(pk=row.id).sealed))
    assert held.signing() == (OTHER, SECRET)
    assert held.signing(time.time() + 61) == (OTHER,)


def test_a_verdict_about_an_earlier_generation_is_discarded(new_rp: NewRp, ben: Principal) -> None:
    row = hook(new_rp(), ben)
    endpoint_pause(subscription_id=row.id, principal=ben)
    standings_save([StandingFound(row.id, 1, EndpointStanding(EndpointState.ACTIVE, verified=True))])
    assert PushEndpoint.objects.get(pk=row.id).state == "paused"


def test_what_an_attempt_changed_is_not_forgotten_when_the_row_is_read_before_it_is_stored(
    new_rp: NewRp, ben: Principal
) -> None:
    row = hook(new_rp(), ben)
    feed: Any = None
    course = Course(endpoints_named([row.id])[row.id], feed)
    consented = course.standing = EndpointStanding(EndpointState.ACTIVE, verified=True)
    course.update(endpoints_named([row.id])[row.id])
    assert course.standing == consented
    stated = {"mode": "webhook", "url": "https://other.example.org/"}
    subscription_update(subscription_id=row.id, principal=ben, changes={"deliver": stated})
    course.update(endpoints_named([row.id])[row.id])
    assert course.standing.state == "unverified", "what its owner does counts"


def test_a_state_is_reported_once_on_both_administrative_rps(new_rp: NewRp, ben: Principal) -> None:
    rp = new_rp()
    row = hook(rp, ben)  # reports the first state
    failing = EndpointStanding(EndpointState.FAILING, 1, time.time(), time.time() + 5, "http-503", verified=True)
    for _ in range(3):
        standings_save([StandingFound(row.id, 1, failing)])
    for at in (f"{rp.id}.admin", "domain.admin"):
        assert types_at(at).count("endpoint.changed") == 2


def test_only_the_owner_and_administrators_look_after_an_endpoint(new_rp: NewRp, ben: Principal) -> None:
    row, eve = hook(new_rp(), ben), principal("eve")
    for act in (endpoint_pause, endpoint_resume, endpoint_test, dead_letters_replay):
        with pytest.raises(Forbidden):
            act(subscription_id=row.id, principal=eve)


def test_one_host_has_a_bounded_number_of_endpoints_without_consent(
    new_rp: NewRp, ben: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    rp = new_rp()
    made = [hook(rp, ben) for _ in range(20)]
    with pytest.raises(QuotaExceeded):
        hook(rp, ben)
    standings_save([StandingFound(made[0].id, 1, EndpointStanding(EndpointState.ACTIVE, verified=True))])
    hook(rp, ben)


def test_a_dead_letter_is_reported_and_replayed(new_rp: NewRp, ben: Principal) -> None:
    rp = new_rp()
    row = hook(rp, ben)
    assert given_up_note(GivenUp(row.id, "abc", 3, 5, "http-400", 2))
    assert "delivery.given-up" in types_at(f"{rp.id}.admin")
    with pytest.raises(Conflict):
        dead_letters_replay(subscription_id=row.id, principal=ben)
    standings_save([StandingFound(row.id, 1, EndpointStanding(EndpointState.ACTIVE, verified=True))])
    assert dead_letters_replay(subscription_id=row.id, principal=ben) == 1
    (replay,) = replays_waiting([], 10)
    assert (replay.first, replay.last, replay.attempts) == (3, 5, 2)
    outcomes.replay_failed(replay.id, "http-500", 3)
    assert replays_waiting([], 10) == []
    assert PushDeadLetter.objects.get().reason == "http-500"


def test_there_is_no_dead_letter_beyond_the_bound(
    new_rp: NewRp, ben: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = hook(new_rp(), ben)
    monkeypatch.setattr(outcomes, "DEAD_LETTERS_MAX", 2)
    assert [given_up_note(GivenUp(row.id, "abc", n, n, "x", 1)) for n in range(1, 4)] == [True, True, False]
    assert PushDeadLetter.objects.count() == 2


def test_a_range_that_the_log_lacks_is_not_replayed(new_rp: NewRp, ben: Principal) -> None:
    rp = new_rp()
    row = hook(rp, ben)
    standings_save([StandingFound(row.id, 1, EndpointStanding(EndpointState.ACTIVE, verified=True))])
    epoch = control.append(rp.id, events_made(5), rp.bounds).epoch
    for first, last in (
        (Cursor(epoch, 3), Cursor(epoch, 3)),
        (Cursor(epoch, 0), Cursor(epoch, 6)),
        (Cursor("x", 0), Cursor("x", 1)),
    ):
        with pytest.raises(InvalidCursor):
            range_replay(subscription_id=row.id, principal=ben, first=first, last=last)
    assert range_replay(subscription_id=row.id, principal=ben, first=Cursor(epoch, 1), last=Cursor(epoch, 3)) == 1


def test_a_paused_endpoint_is_not_delivered_to(new_rp: NewRp, ben: Principal) -> None:
    row = hook(new_rp(), ben)
    assert [one.id for one in endpoints_page("")[0]] == [row.id]
    endpoint_pause(subscription_id=row.id, principal=ben)
    assert endpoints_page("")[0] == []
