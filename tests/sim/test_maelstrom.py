"""Nodes of Maelstrom over the machines of overlay: what was added or broadcast anywhere is read everywhere, whatever the network does."""

from __future__ import annotations

from typing import Any

import pytest

from eventing.overlay.gossip_object import PAYLOAD_BYTES_MAX
from eventing.sim.maelstrom import EXCHANGE, GOSSIP, MaelstromMessage
from tests.sim.maelstrom_network import MaelstromNetwork

LINE = [(0, 1), (1, 2), (2, 3), (3, 4)]
GRID = [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7), (7, 8), (0, 3), (3, 6), (1, 4), (4, 7), (2, 5), (5, 8)]
ALL_WITH_ALL = [(one, other) for one in range(6) for other in range(one)]
BAD: dict[str, Any] = {"loss": 0.2, "repeats": 0.2}


def broadcast(network: MaelstromNetwork, count: int, *, every_s: float = 0.05) -> list[int]:
    """Give values to the nodes in turn; the values."""
    values = list(range(count))
    for value in values:
        assert (
            network.ask(network.names[value % len(network.names)], "broadcast", message=value)["type"] == "broadcast_ok"
        )
        network.run(every_s)
    return values


def read(network: MaelstromNetwork, node: str, member: str) -> Any:
    """What a node reads."""
    reply = network.ask(node, "read")
    assert reply["type"] == "read_ok"
    return reply[member]


def assert_read_once_everywhere(network: MaelstromNetwork, values: list[int]) -> None:
    for name in network.names:
        assert sorted(read(network, name, "messages")) == values, name


@pytest.mark.parametrize("topology", [LINE, GRID, ALL_WITH_ALL], ids=["line", "grid", "all with all"])
@pytest.mark.parametrize("faults", [{}, BAD], ids=["reliable", "lossy"])
def test_what_is_broadcast_at_any_node_is_read_once_at_each(
    topology: list[tuple[int, int]], faults: dict[str, Any]
) -> None:
    network = MaelstromNetwork(1 + max(max(way) for way in topology), 1, topology, **faults)
    values = broadcast(network, 60)
    network.run(15.0)
    assert_read_once_everywhere(network, values)


def test_once_the_trees_stand_a_value_arrives_once_at_each_node() -> None:
    network = MaelstromNetwork(6, 2, ALL_WITH_ALL)
    broadcast(network, 120)
    network.run(10.0)
    before = network.values
    network.ask("n0", "broadcast", message="one more")
    network.run(10.0)
    assert all("one more" in read(network, name, "messages") for name in network.names)
    assert network.values - before == len(network.names) - 1


def test_both_sides_of_a_partition_go_on_and_read_all_once_it_has_healed() -> None:
    network = MaelstromNetwork(9, 3, GRID)
    network.partition("n0", "n1", "n2")
    values = broadcast(network, 90)
    network.run(5.0)
    here = read(network, "n0", "messages")
    assert sorted(here) == [value for value in values if value % 9 < 3]
    assert sorted(read(network, "n8", "messages")) == [value for value in values if value % 9 >= 3]
    network.heal()
    network.run(15.0)
    assert_read_once_everywhere(network, values)


@pytest.mark.parametrize("faults", [{}, BAD], ids=["reliable", "lossy"])
def test_a_set_grows_to_the_same_elements_at_each_node(faults: dict[str, Any]) -> None:
    network = MaelstromNetwork(5, 4, **faults)
    network.partition("n0", "n1")
    for element in range(60):
        node = network.names[element % 5]
        assert network.ask(node, "add", element=element)["type"] == "add_ok"
        assert element in read(network, node, "value"), "a node reads what was added at it"
        network.run(0.3)
    network.heal()
    network.run(30.0)
    for name in network.names:
        assert sorted(read(network, name, "value")) == list(range(60))


def test_a_set_forgets_nothing_though_rows_lapse_behind_a_partition() -> None:
    network = MaelstromNetwork(3, 5)
    network.ask("n0", "add", element="kept")
    network.run(10.0)
    network.partition("n0")
    network.run(60.0)
    assert read(network, "n2", "value") == ["kept"]


@pytest.mark.parametrize("faults", [{}, BAD], ids=["reliable", "lossy"])
def test_a_counter_is_the_sum_of_all_deltas_at_each_node(faults: dict[str, Any]) -> None:
    network = MaelstromNetwork(5, 6, **faults)
    deltas = [delta for number in range(40) for delta in (number, -3)]
    for number, delta in enumerate(deltas):
        assert network.ask(network.names[number % 5], "add", delta=delta)["type"] == "add_ok"
        network.run(0.1)
    network.run(30.0)
    assert [read(network, name, "value") for name in network.names] == [sum(deltas)] * 5


def test_a_full_row_is_said_and_what_was_added_before_stays() -> None:
    network = MaelstromNetwork(2, 7)
    added = []
    for number in range(PAYLOAD_BYTES_MAX):
        reply = network.ask("n0", "add", element=f"element {number}")
        if reply["type"] == "error":
            break
        added.append(f"element {number}")
    assert reply["code"] == 11
    network.run(30.0)
    assert sorted(read(network, "n1", "value")) == sorted(added)


def test_requests_that_cannot_be_understood_are_answered_with_the_codes_of_maelstrom() -> None:
    network = MaelstromNetwork(2, 8)
    assert network.ask("n0", "cas")["code"] == 10
    assert network.ask("n0", "add", delta="one")["code"] == 12
    assert network.ask("n0", "add", element=[1])["code"] == 12
    assert network.ask("n0", "broadcast")["code"] == 12
    assert network.ask("n0", "topology", topology={})["code"] == 12


@pytest.mark.parametrize("kind", [EXCHANGE, GOSSIP])
@pytest.mark.parametrize(
    "message", [None, {}, {"number": -1}, [], ["gossip", 7], {"number": 1, "answers": True, "have": {}}]
)
def test_what_is_no_message_of_a_node_changes_nothing(kind: str, message: Any) -> None:
    network = MaelstromNetwork(2, 9)
    network.run(5.0)
    sent = network.nodes["n0"].handle(MaelstromMessage("n1", "n0", {"type": kind, "message": message}), network.now)
    assert [one.body["type"] for one in sent] == []
    assert broadcast(network, 4)
    network.run(5.0)
    assert sorted(read(network, "n1", "value")) == []


def test_the_same_seed_takes_the_same_course() -> None:
    courses = []
    for _ in range(2):
        network = MaelstromNetwork(5, 10, LINE, **BAD)
        broadcast(network, 50)
        network.run(10.0)
        courses.append((network.passed, network.values, network.now))
    assert courses[0] == courses[1]
