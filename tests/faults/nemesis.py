"""The nemesis: which faults happen when, drawn by a seed, and their doing and undoing.

A fault is an object with `begin` and `end`; so is a network of another kind, with `cut` and `heal` (Cut).
"""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import httpx
import redis

from tests.faults.domain import FaultyDomain, role_of
from tests.faults.history import History
from tests.store.cluster_process import Node

PROMOTED_WITHIN_S = 5.0


class Cuttable(Protocol):
    """A way that can be cut: demo/harness/proxy.py, or a host of a network of namespaces."""

    def cut(self) -> None:
        """Let nothing pass."""

    def heal(self) -> None:
        """Let everything pass again."""


class Step(NamedTuple):
    """A fault that begins `at_s` seconds after the begin of the run and lasts `for_s`. `pick`, 0 to 1, draws its target."""

    at_s: float
    fault: str
    pick: float
    for_s: float


def schedule(seed: int, seconds: float, faults: Sequence[str]) -> list[Step]:
    """Faults of a run: one begins every 1 to 4 s, and lasts 0.3 to 5 s, so that some overlap. The last seconds are without."""
    rng = random.Random(seed)
    steps, at = [], rng.uniform(1.0, 3.0)
    while at < seconds - 2.0:
        for_s = min(rng.choice((rng.uniform(0.3, 1.5), rng.uniform(1.5, 5.0))), seconds - at)
        steps.append(Step(round(at, 2), rng.choice(faults), rng.random(), round(for_s, 2)))
        at += rng.uniform(1.0, 4.0)
    return steps


class Nemesis:
    """Does faults to a domain.

    Args:
        ways: further ways to cut, by name: those of a network that the domain's hosts are in.
    """

    def __init__(self, domain: FaultyDomain, history: History, ways: dict[str, Cuttable] | None = None) -> None:
        self._domain, self._history = domain, history
        self._busy: set[object] = set()  # what has a fault now
        self._lock = threading.Lock()
        self._ways = ways or {}
        self.faults: dict[str, Callable[[Step], str]] = {
            "kill gateway": lambda step: self._gateway(step, self._kill_gateway),
            "stop gateway": lambda step: self._gateway(step, self._stop_gateway),
            "restart gateway": lambda step: self._gateway(step, self._restart_gateway),
            "cut gateway": lambda step: self._gateway(step, self._cut_gateway),
        }
        self._nodes = [] if domain.cluster is None else domain.cluster.nodes
        if self._nodes:
            self.faults |= {
                "kill primary": lambda step: self._node(step, "master", self._kill),
                "kill replica": lambda step: self._node(step, "slave", self._kill),
                "stop primary": lambda step: self._node(step, "master", self._stop),
                "stop replica": lambda step: self._node(step, "slave", self._stop),
                "planned failover": lambda step: self._node(step, "slave", self._fail_over),
            }
        if self._nodes and domain.ways_of(self._nodes[0]):
            self.faults |= {
                "cut primary": lambda step: self._node(step, "master", self._cut_node),
                "cut replica": lambda step: self._node(step, "slave", self._cut_node),
                "cut bus of primary": lambda step: self._node(step, "master", self._cut_bus),
                "isolate primary": lambda step: self._node(step, "master", self._isolate_node),
            }
        if self._ways:
            self.faults["cut way"] = self._cut_way

    def run(self, steps: Sequence[Step]) -> None:
        """Do these faults; return when all are undone."""
        began, doing = time.monotonic(), []
        for step in steps:
            time.sleep(max(0.0, began + step.at_s - time.monotonic()))
            doing.append(self._domain.threads.submit(self._do, step))
        for one in doing:
            one.result()

    def _do(self, step: Step) -> None:
        self._history.add("nemesis", step.fault, "invoke", for_s=step.for_s)
        try:
            what = self.faults[step.fault](step)
        except (redis.RedisError, OSError, AssertionError) as error:
            what = f"not done: {error}"
        self._history.add("nemesis", step.fault, "info", what=what)

    # Servers

    def _node(self, step: Step, role: str, do: Callable[[Node, Step], str]) -> str:
        free = [node for node in self._nodes if node not in self._busy]
        those = [node for node in free if role_of(node) == role]
        if not those:
            return f"no {role} is without a fault"
        node = those[int(step.pick * len(those))]
        if not self._taken(node):
            return "another fault was faster"
        try:
            return f"{node.folder.name}: {do(node, step)}"
        finally:
            self._busy.discard(node)

    def _taken(self, what: object, beside: frozenset[object] = frozenset()) -> bool:
        """Take something for a fault; return False if it, or anything of `beside`, has one."""
        with self._lock:
            if what in self._busy or self._busy & beside:
                return False
            self._busy.add(what)
            return True

    def _kill(self, node: Node, step: Step) -> str:
        node.kill()
        time.sleep(step.for_s)  # the fault itself, as in all that follow
        node.start()
        return "killed and started again"

    def _stop(self, node: Node, step: Step) -> str:
        node.pause(True)
        time.sleep(step.for_s)
        node.pause(False)
        return "stopped and continued"

    def _cut_node(self, node: Node, step: Step) -> str:
        """Commands and replication do not reach it; the cluster bus does."""
        return self._cut(self._domain.ways_of(node)[:1], step)

    def _cut_bus(self, node: Node, step: Step) -> str:
        """The other servers do not reach it and may promote its replica; gateways and replicas reach it."""
        return self._cut(self._domain.ways_of(node)[1:], step)

    def _isolate_node(self, node: Node, step: Step) -> str:
        """Nothing reaches it; what it sends by itself does arrive."""
        return self._cut(self._domain.ways_of(node), step)

    def _fail_over(self, node: Node, step: Step) -> str:
        node.ask("CLUSTER", "FAILOVER")
        until = time.monotonic() + PROMOTED_WITHIN_S
        while role_of(node) != "master":
            if time.monotonic() > until:
                return "was not promoted"
            time.sleep(0.02)
        return "promoted"

    # Gateways

    def _gateway(self, step: Step, do: Callable[[int, Step], str]) -> str:
        count = len(self._domain.entrances)
        number = int(step.pick * count)
        if not self._taken(number, frozenset(range(count))):
            return "a gateway has a fault already"
        try:
            return f"gateway {number}: {do(number, step)}"
        finally:
            self._busy.discard(number)

    def _kill_gateway(self, number: int, step: Step) -> str:
        self._domain.entrances[number].cut()  # its socket is the test's, and would take connections
        self._domain.gateways.kill_gateway(number)
        time.sleep(step.for_s)
        return f"killed and {self._start_gateway(number)}"

    def _start_gateway(self, number: int) -> str:
        """Start a gateway. One that does not answer in time writes into its log what it is at, and another one is started."""
        gateways, began = self._domain.gateways, time.monotonic()
        gateways.spawn_gateway(number)
        try:
            gateways.wait_gateway(number)
        except httpx.HTTPError as error:
            gateways.gateway_process(number).send_signal(signal.SIGABRT)
            gateways.wait_stopped(number)
            gateways.spawn_gateway(number)
            return f"started again twice: {error!r}"
        finally:
            self._domain.entrances[number].heal()
        return f"started again in {time.monotonic() - began:.1f} s"

    def _stop_gateway(self, number: int, step: Step) -> str:
        self._domain.gateways.pause_gateway(True, number)
        time.sleep(step.for_s)
        self._domain.gateways.pause_gateway(False, number)
        return "stopped and continued"

    def _restart_gateway(self, number: int, step: Step) -> str:
        self._domain.gateways.terminate_gateway(number)
        try:
            how = f"ended with {self._domain.gateways.wait_stopped(number)}"
        except subprocess.TimeoutExpired as error:  # its log has what it was at
            how = f"did not stop within {error.timeout:g} s"
        self._domain.entrances[number].cut()
        return f"{how}, {self._start_gateway(number)}"

    def _cut_gateway(self, number: int, step: Step) -> str:
        return self._cut([self._domain.entrances[number]], step)

    # Ways

    def _cut_way(self, step: Step) -> str:
        names = sorted(self._ways)
        name = names[int(step.pick * len(names))]
        if not self._taken(name):
            return f"{name} is cut already"
        try:
            return f"{name}: {self._cut([self._ways[name]], step)}"
        finally:
            self._busy.discard(name)

    @staticmethod
    def _cut(ways: Sequence[Cuttable], step: Step) -> str:
        with contextlib.ExitStack() as healed:
            for way in ways:
                healed.callback(way.heal)
                way.cut()
            time.sleep(step.for_s)
        return "cut and healed"
