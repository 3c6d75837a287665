"""Subscriptions with an endpoint at several real domains: one delivers, another takes over, nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from demo.harness.network import DELIVERY_LEASE_S, Network, mesh
from demo.harness.servers import wait_for
from tests.scenarios.test_shared_subscriptions import Owner
from tests.subscriptions.push.receiver import Receiver

pytestmark = [pytest.mark.processes, pytest.mark.long]

SETTINGS: dict[str, Any] = {
    "records": 0,
    "delivery_lease_s": DELIVERY_LEASE_S,
    "push": 1,
    "push_private": 1,
    "push_ports": "1-65535",
    "push_retries_s": "0.5,1,60,60,60",
    "allow_private_issuers": 1,
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, prepared: Any) -> Iterator[Network]:
    """Two domains that deliver to endpoints."""
    with Network(tmp_path_factory.mktemp("both"), "ab", seed=prepared.migrated, **SETTINGS) as running:
        running.shape(mesh(running.names))
        yield running


@pytest.fixture
def network(both: Network) -> Network:
    """The two domains, whole."""
    both.heal()
    for name in both.names:
        if not both[name].is_running:
            both.start(name)
    return both


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint."""
    with Receiver() as running:
        yield running


def ids(receiver: Receiver, path: str) -> list[str]:
    """Return the ids of the events received at a path, in order."""
    return [one["id"] for one in receiver.events(path)]


def pushed(network: Network, receiver: Receiver, *, at_b: bool = True) -> Owner:
    """Create a subscription that a and b hold, its endpoint `/a` stated at a, and `/b` at b."""
    owner = Owner(network, network.replicated_rp("a", "b"), deliver={"mode": "webhook", "url": receiver.url("/a")})
    if at_b:
        answer = owner.of("b", "PATCH", json={"deliver": {"mode": "webhook", "url": receiver.url("/b")}})
        assert answer.status_code == 200, answer.text
        wait_for(lambda: owner.of("b", "GET", "/endpoint").json()["state"] == "active", about="it consents at b too")
    wait_for(lambda: owner.of("a", "GET", "/endpoint").json()["state"] == "active", about="it consents at a")
    owner.delivered_at("a", seen_from="b")
    return owner


def told(owner: Owner) -> None:
    """Wait until both holders know the same acknowledgements, of everything that was published."""
    published = len(owner.network.published[owner.rp])
    wait_for(
        lambda: all(sum((owner.shown(at) or {})["acked"].values()) == published for at in "ab"), 90, about="all is told"
    )


def test_one_domain_delivers_and_when_it_is_killed_the_other_goes_on_behind_what_was_delivered(
    network: Network, receiver: Receiver
) -> None:
    owner = pushed(network, receiver)
    before = network.publish(owner.rp, "a", 10) + network.publish(owner.rp, "b", 10)
    wait_for(lambda: len(ids(receiver, "/a")) >= 20, 90, about="a delivers all")
    assert sorted(ids(receiver, "/a")) == sorted(before)
    assert ids(receiver, "/b") == [], "b does not deliver meanwhile"
    told(owner)
    network.kill("a")
    after = network.publish(owner.rp, "b", 10)
    wait_for(lambda: len(ids(receiver, "/b")) >= 10, 120, about="b takes over")
    assert ids(receiver, "/b") == after, "in order, and nothing again that was acknowledged"
    network.start("a")
    owner.delivered_at("b", seen_from="a")
    last = network.publish(owner.rp, "a", 5)
    wait_for(lambda: len(ids(receiver, "/b")) >= 15, 90, about="b goes on")
    assert ids(receiver, "/b") == [*after, *last]
    assert len(ids(receiver, "/a")) == 20, "a stands down"


def test_a_domain_that_is_cut_off_loses_nothing_and_what_either_side_delivered_is_not_sent_again(
    network: Network, receiver: Receiver
) -> None:
    owner = pushed(network, receiver)
    network.partition("a", "b")
    try:
        owner.delivered_at("b")
        at_a, at_b = network.publish(owner.rp, "a", 5), network.publish(owner.rp, "b", 5)
        wait_for(lambda: ids(receiver, "/a") == at_a, 90, about="a delivers what reaches it")
        wait_for(lambda: ids(receiver, "/b") == at_b, 90, about="b delivers what reaches it")
    finally:
        network.heal()
    network.converged(owner.rp)
    told(owner)
    owner.delivered_at("b", seen_from="a")
    last = network.publish(owner.rp, "a", 3)
    wait_for(lambda: set(last) <= set(ids(receiver, "/b")), 90, about="b goes on")
    assert set(ids(receiver, "/a")) | set(ids(receiver, "/b")) == set(network.published[owner.rp])


def test_a_holder_whose_endpoint_is_paused_or_fails_lets_the_other_deliver(
    network: Network, receiver: Receiver
) -> None:
    owner = pushed(network, receiver)
    assert owner.of("a", "POST", "/endpoint/pause").status_code == 200
    owner.delivered_at("b")
    first = network.publish(owner.rp, "a", 3)
    wait_for(lambda: ids(receiver, "/b") == first, 90, about="b delivers")
    assert owner.of("a", "POST", "/endpoint/resume").status_code == 200
    receiver.answer["/b"] = 500
    second = network.publish(owner.rp, "a", 3)
    wait_for(lambda: set(second) <= set(ids(receiver, "/a")), 120, about="a delivers what b cannot")
    assert [one for one in ids(receiver, "/a") if one in second] == second


def test_a_holder_without_an_endpoint_is_told_no_address_and_does_not_take_over(
    network: Network, receiver: Receiver
) -> None:
    owner = pushed(network, receiver, at_b=False)
    assert owner.of("b", "GET").json()["deliver"] == {"mode": "webhook"}
    assert owner.of("b", "GET", "/endpoint").status_code == 404
    answer = owner.of("b", "PATCH", json={"deliver": {"mode": "pull"}})
    assert answer.status_code == 400, "the mode is the keeper's"
    network.kill("a")
    until = time.monotonic() + 3 * DELIVERY_LEASE_S
    wait_for(lambda: time.monotonic() > until, 60, about="its turn passes")
    assert (owner.shown("b") or {})["delivers"] is None
    network.start("a")
    owner.delivered_at("a")
    published = network.publish(owner.rp, "b", 3)
    wait_for(lambda: ids(receiver, "/a") == published, 90, about="a delivers again")
