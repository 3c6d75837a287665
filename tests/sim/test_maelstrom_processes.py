"""`manage.py simulate node` as Maelstrom runs it: one process for each node, lines of JSON, a network that is cut and healed."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from demo.harness.servers import ROOT
from tests.sim.maelstrom_router import NODE, MaelstromRouter

pytestmark = pytest.mark.processes

READ_WITHIN_S = 60.0


def read_everywhere(router: MaelstromRouter, member: str, holds: Callable[[Any], bool]) -> None:
    """Wait until each node reads what it should."""
    deadline = time.monotonic() + READ_WITHIN_S
    while not all(holds(router.ask(name, "read")[member]) for name in router.names):
        assert time.monotonic() < deadline, [router.ask(name, "read") for name in router.names]
        router.run(0.1)


def test_broadcasts_reach_all_nodes_through_a_partition_that_heals(tmp_path: Path) -> None:
    with MaelstromRouter(3, tmp_path / "errors") as router:
        line = {"n0": ["n1"], "n1": ["n0", "n2"], "n2": ["n1"]}
        for name in router.names:
            assert router.ask(name, "topology", topology=line)["type"] == "topology_ok"
        router.partition("n0")
        for value in range(20):
            assert router.ask(router.names[value % 3], "broadcast", message=value)["type"] == "broadcast_ok"
        router.run(1.0)
        assert set(router.ask("n0", "read")["messages"]) == set(range(0, 20, 3)), "the others are on the other side"
        router.heal()
        read_everywhere(router, "messages", lambda read: sorted(read) == list(range(20)))


def test_a_set_and_a_counter_converge(tmp_path: Path) -> None:
    with MaelstromRouter(2, tmp_path / "errors", arguments=("--workload", "g-set")) as router:
        for element in range(9):
            assert router.ask(router.names[element % 2], "add", element=element)["type"] == "add_ok"
        read_everywhere(router, "value", lambda read: sorted(read) == list(range(9)))
    with MaelstromRouter(2, tmp_path / "errors", arguments=("--workload", "pn-counter")) as router:
        for number in range(9):
            assert router.ask(router.names[number % 2], "add", delta=number - 2)["type"] == "add_ok"
        read_everywhere(router, "value", lambda read: read == 18)


def test_a_node_ends_with_its_input_and_writes_nothing_but_messages() -> None:
    asked = b'{"src":"c1","dest":"n1","body":{"type":"init","msg_id":1,"node_id":"n1","node_ids":["n1"]}}\n'
    done = subprocess.run(NODE, input=asked, capture_output=True, cwd=ROOT, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.splitlines() == [
        b'{"src":"n1","dest":"c1","body":{"type":"init_ok","msg_id":1,"in_reply_to":1}}'
    ]
