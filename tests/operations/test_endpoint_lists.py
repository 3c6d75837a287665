"""The list of all endpoints: its orders, filters, pages and figures."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from eventing.core.errors import InvalidCursor, InvalidRequest
from eventing.core.principals import Principal
from eventing.operations.selectors.endpoints import SORTS, endpoints_listed
from eventing.rps.models import RendezvousPoint
from eventing.store.client import client
from eventing.store.push_attempts import PushAttempt, attempt_commands
from eventing.subscriptions.push.rules.endpoint_states import EndpointStanding, EndpointState
from eventing.subscriptions.push.rules.request_figures import RequestFigures, request_figures
from eventing.subscriptions.push.services.endpoints import endpoint_pause
from eventing.subscriptions.push.services.outcomes import GivenUp, StandingFound, given_up_note, standings_save
from eventing.subscriptions.services.subscriptions import subscription_create
from tests.planes import principal

pytestmark = pytest.mark.usefixtures("stores")

NewRp = Callable[..., RendezvousPoint]
ACTIVE = EndpointStanding(EndpointState.ACTIVE, verified=True)


def hook(rp: RendezvousPoint, owner: Principal, standing: EndpointStanding | None = None) -> str:
    stated = {"mode": "webhook", "url": f"https://{owner.subject}.example.org/in?key=hidden"}
    made = subscription_create(reference=rp.id, principal=owner, deliver=stated)
    if standing is not None:
        standings_save([StandingFound(made.id, 1, standing)])
    return made.id


def failing(next_s: float) -> EndpointStanding:
    now = time.time()
    return EndpointStanding(EndpointState.FAILING, 2, now, now + next_s, "http-503", verified=True)


def listed(**query: Any) -> list[str]:
    return [one.subscription for one in endpoints_listed(**query)[0]]


@pytest.fixture
def hooks(new_rp: NewRp, ben: Principal) -> dict[str, str]:
    rp = new_rp()
    made = {
        "active": hook(rp, ben, ACTIVE),
        "later": hook(rp, ben, failing(900)),
        "soon": hook(rp, ben, failing(30)),
        "asked": hook(rp, ben),
        "paused": hook(rp, ben, ACTIVE),
    }
    subscription_create(reference=rp.id, principal=ben)  # is pulled, and not listed
    endpoint_pause(subscription_id=made["paused"], principal=ben)
    return made


def test_what_needs_a_person_is_listed_first(hooks: dict[str, str]) -> None:
    found = listed()
    assert (found[0], found[-2], found[-1]) == (hooks["paused"], hooks["asked"], hooks["active"])
    assert set(found[1:3]) == {hooks["later"], hooks["soon"]}


def test_the_soonest_next_attempt_is_listed_first(hooks: dict[str, str]) -> None:
    assert listed(sort="next")[:2] == [hooks["soon"], hooks["later"]]


def test_a_state_or_all_in_trouble_can_be_asked_for(hooks: dict[str, str]) -> None:
    assert listed(state="paused") == [hooks["paused"]]
    assert set(listed(state="troubled")) == set(hooks.values()) - {hooks["active"]}


def test_pages_of_every_order_have_each_endpoint_once(hooks: dict[str, str]) -> None:
    for sort in SORTS:
        whole, found, cursor = listed(sort=sort), [], None
        while True:
            items, cursor, complete = endpoints_listed(sort=sort, cursor=cursor, limit=2)
            assert complete
            found += [one.subscription for one in items]
            if cursor is None:
                break
        assert found == whole
        assert sorted(found) == sorted(hooks.values())


def test_a_cursor_of_another_order_and_unknown_orders_are_refused(hooks: dict[str, str]) -> None:
    _, cursor, _ = endpoints_listed(limit=2)
    with pytest.raises(InvalidCursor):
        endpoints_listed(sort="next", cursor=cursor)
    with pytest.raises(InvalidRequest):
        endpoints_listed(sort="color")
    with pytest.raises(InvalidRequest):
        endpoints_listed(state="asleep")


def test_owners_are_told_apart_and_no_secret_is_shown(hooks: dict[str, str], new_rp: NewRp) -> None:
    eve = principal("eve")
    own = hook(new_rp(), eve)
    items, _, _ = endpoints_listed(owner="eve")
    assert [one.subscription for one in items] == [own]
    assert "hidden" not in str(items[0])


def test_figures_are_those_of_requests_with_events(hooks: dict[str, str]) -> None:
    found = endpoints_listed(state="active")[0][0]
    assert (found.recent.requests, found.recent.p95_ms) == (0, None)
    attempts = [
        PushAttempt(1, what, "e", 1, 1, 1, verdict, "204", took_ms, "", b"")
        for what, verdict, took_ms in (
            ("event", "delivered", 10), ("event", "failed", 30), ("replay", "delivered", 20), ("test", "failed", 9000),
        )
    ]  # fmt: skip
    for command in attempt_commands(found.rp, found.subscription, attempts):
        client().execute_command(*command)
    assert given_up_note(GivenUp(found.subscription, "e", 3, 5, "http-400", 2))
    found = endpoints_listed(state="active")[0][0]
    assert (found.recent.requests, found.recent.delivered, found.recent.p95_ms) == (3, 2, 30)
    assert found.dead_letters == 1


@pytest.mark.parametrize(("count", "p95"), [(1, 1), (20, 19), (21, 20), (100, 95)])
def test_the_95th_percentile_is_by_nearest_rank(count: int, p95: int) -> None:
    attempts = [("event", "delivered", took) for took in range(count, 0, -1)]
    assert request_figures(attempts) == RequestFigures(count, count, p95)
