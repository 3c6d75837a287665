"""Domains that one sponsor brought in find each other: links that no administrator made, which mend by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from demo.harness.network import Network
from demo.harness.servers import wait_for
from eventing.store.keys import OVERLAY_TURN_KEY

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]

SHAPE = [("a", "b"), ("a", "c")]
LINKED_WITHIN_S = KNOWN_WITHIN_S = FOUND_OUT_WITHIN_S = SELF_SUSPECTED_WITHIN_S = 120.0


@pytest.fixture
def overlay(network: Network) -> Iterator[Network]:
    """The overlay that a founded, and that b and c joined."""
    yield from founded(network)


@pytest.fixture
def overlay_of_peers(network: Network) -> Iterator[Network]:
    """The same with a peering of b and c: the way between them can be cut only if they use each other's peer address."""
    network.peer("b", "c")
    yield from founded(network)


def founded(network: Network) -> Iterator[Network]:
    network["a"].ask("POST", "/api/v1/overlay/found")
    for name in "bc":
        network[name].ask("POST", "/api/v1/overlay/join", {"sponsor": "a.test"})
    yield network
    for name in "abc":
        network[name].ask("POST", "/api/v1/overlay/leave")


def links(network: Network, name: str) -> dict[str, dict[str, Any]]:
    """The links that stand, by peer."""
    return {link["peer"]: link for link in network[name].ask("GET", "/api/v1/overlay/links")["items"] if link["up"]}


def linked(network: Network, name: str, *others: str) -> bool:
    return set(links(network, name)) == {f"{other}.test" for other in others}


def reporting(network: Network, name: str) -> tuple[int, float]:
    """How many domains state their load, as a domain knows it, with the coverage of that."""
    picture = network[name].ask("GET", "/api/v1/overlay")["picture"]
    found: dict[str, Any] = picture["whole"]["reporting"] if picture else {"value": 0, "coverage": 0.0}
    return found["value"], found["coverage"]


def told(network: Network, name: str, kind: str) -> list[dict[str, Any]]:
    """Data of the administrative events of a kind."""
    found: list[dict[str, Any]] = []
    after = "earliest"
    while True:  # the tests that share the domain may have left more than a page
        page = network[name].ask("GET", f"/api/v1/rps/domain.admin/events?limit=1000&after={after}")
        if not page["events"]:
            return found
        found += [event["data"] for event in page["events"] if event["type"] == f"io.herald.overlay.{kind}"]
        after = page["cursor"]


@pytest.mark.long
def test_domains_that_share_a_sponsor_link_by_themselves_and_mend(overlay: Network) -> None:
    for name, others in (("a", "bc"), ("b", "ac"), ("c", "ab")):
        wait_for(lambda name=name, others=others: linked(overlay, name, *others), LINKED_WITHIN_S)  # type: ignore[misc]
        assert overlay[name].ask("GET", "/api/v1/overlay")["domains"] == 3
    assert not overlay.peer_state("b", "c"), "no administrator agreed on this link"
    explained = overlay["b"].ask("GET", "/api/v1/overlay/domains/c.test")
    assert (explained["sponsors"], explained["rooted"], explained["peer"]) == (["a.test"], True, None)
    assert explained["link"]["reason"] in ("chosen", "accepted")
    wait_for(lambda: {made["peer"] for made in told(overlay, "b", "link.made")} >= {"a.test", "c.test"})

    def granted() -> list[str]:
        """The last two of b and c; tests that share the domain may have had others before."""
        domains = [one["domain"] for one in told(overlay, "a", "sponsorship.granted")]
        return [name for name in domains if name in ("b.test", "c.test")][-2:]

    wait_for(lambda: granted() == ["b.test", "c.test"], about="a tells whom it has sponsored")

    version = overlay["c"].ask("GET", "/api/v1/overlay")["version"]
    overlay.kill("c")
    for name, other in (("a", "b"), ("b", "a")):
        wait_for(lambda name=name, other=other: linked(overlay, name, other), FOUND_OUT_WITHIN_S)  # type: ignore[misc]

    def dropped() -> list[str]:
        return [one["reason"] for one in told(overlay, "b", "link.dropped") if one["peer"] == "c.test"]

    wait_for(lambda: dropped()[-1:] in (["transport"], ["silent"]), about="b tells why the link ended")
    assert overlay["b"].ask("GET", "/api/v1/overlay")["domains"] == 3, "only its record's end removes a domain"

    overlay.start("c")
    for name, others in (("a", "bc"), ("b", "ac"), ("c", "ab")):
        wait_for(lambda name=name, others=others: linked(overlay, name, *others), FOUND_OUT_WITHIN_S)  # type: ignore[misc]
    status = overlay["c"].ask("GET", "/api/v1/overlay")
    assert status["domains"] == 3
    assert status["version"] > version

    for name in "ab":  # the row of each has reached all meanwhile: the aggregate is the count
        wait_for(lambda name=name: reporting(overlay, name) == (3, 1.0), KNOWN_WITHIN_S, every_s=0.5)  # type: ignore[misc]


@pytest.mark.long
def test_a_forwarder_that_was_killed_is_replaced_and_the_links_stand_again(overlay: Network) -> None:
    wait_for(lambda: linked(overlay, "b", "a", "c"), LINKED_WITHIN_S)
    with redis.Redis(unix_socket_path=str(overlay["b"].data_dir / "redis.sock")) as store:
        before = store.get(OVERLAY_TURN_KEY)
        assert before
        pid = overlay["b"].kill("forwarder")
        overlay["b"].wait_replaced("forwarder", pid)
        wait_for(lambda: store.get(OVERLAY_TURN_KEY) not in (None, before), about="another process took over")
    wait_for(lambda: linked(overlay, "b", "a", "c"), FOUND_OUT_WITHIN_S)


@pytest.mark.long
def test_a_domain_to_which_all_links_are_silent_suspects_itself(overlay_of_peers: Network) -> None:
    overlay = overlay_of_peers
    wait_for(lambda: linked(overlay, "c", "a", "b"), LINKED_WITHIN_S)
    before = len(told(overlay, "c", "self-suspected"))
    for name in "ab":
        overlay.partition("c", name, blackhole=True)
    wait_for(lambda: len(told(overlay, "c", "self-suspected")) > before, SELF_SUSPECTED_WITHIN_S)
    event = told(overlay, "c", "self-suspected")[-1]
    assert (event["silent"], event["links"]) == (2, 2)
    overlay.heal()
    wait_for(lambda: linked(overlay, "c", "a", "b"), LINKED_WITHIN_S)


def test_a_domain_without_a_sponsor_is_not_admitted(overlay: Network) -> None:
    refused = overlay["a"].ask("POST", "/api/v1/overlay/join", {"sponsor": "d.test"}, expect=[409])
    assert "no peer" in refused["detail"]
    refused = overlay["b"].ask("POST", "/api/v1/overlay/join", {"sponsor": "c.test"}, expect=[409])
    assert "no peer" in refused["detail"]
