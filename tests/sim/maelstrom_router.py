"""Nodes of Maelstrom as processes, and the network between them: what Maelstrom itself does, as far as our tests need it.

with MaelstromRouter(3, latency_s=0.05) as router:
    router.ask("n0", "broadcast", message=1)
    router.partition("n0")
    router.run(2.0)
"""

from __future__ import annotations

import heapq
import itertools
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

import msgspec

from demo.harness.servers import ROOT
from portal.supervisor.parent_watchdog import death_signal

ANSWER_WITHIN_S = 60.0
CLIENT = "c1"
NODE = (sys.executable, str(ROOT / "manage.py"), "simulate", "node")


class MaelstromRouter:
    """Nodes n0, n1, ... as processes, initialised when the block begins.

    Args:
        count: of nodes.
        latency_s: of messages between nodes, on average.
        arguments: for `simulate node`.
        errors: file for what the nodes write to standard error.

    Attributes:
        passed: messages between nodes that arrived.
    """

    def __init__(self, count: int, errors: Path, *, latency_s: float = 0.02, arguments: tuple[str, ...] = ()) -> None:
        self.names = [f"n{number}" for number in range(count)]
        self.passed = 0
        self._latency_s, self._arguments, self._errors = latency_s, arguments, errors
        self._random = Random(1)
        self._cut: set[frozenset[str]] = set()
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._read: dict[str, bytes] = dict.fromkeys(self.names, b"")
        self._mail: list[tuple[float, int, str, bytes]] = []
        self._order, self._numbers = itertools.count(), itertools.count(1)
        self._replies: dict[int, dict[str, Any]] = {}
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        with self._errors.open("ab") as errors:
            for name in self.names:
                self._nodes[name] = node = subprocess.Popen(
                    [*NODE, *self._arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    cwd=ROOT,
                    preexec_fn=death_signal(signal.SIGKILL),
                )
                assert node.stdout is not None
                self._selector.register(node.stdout, selectors.EVENT_READ, name)
        for name in self.names:
            assert self.ask(name, "init", node_id=name, node_ids=self.names)["type"] == "init_ok"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in self._nodes.values():
            node.kill()
            node.communicate()
        self._selector.close()

    def ask(self, node: str, kind: str, **members: Any) -> dict[str, Any]:
        """A client's request, and the body of its reply. The network goes on meanwhile."""
        number = next(self._numbers)
        body = {"type": kind, "msg_id": number, **members}
        self._give(node, msgspec.json.encode({"src": CLIENT, "dest": node, "body": body}))
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while number not in self._replies:
            assert time.monotonic() < deadline, f"{node} did not answer {kind}: {self._errors.read_text()}"
            assert self._nodes[node].poll() is None, f"{node} has ended: {self._errors.read_text()}"
            self._turn(0.1)
        return self._replies.pop(number)

    def partition(self, *one: str) -> None:
        """Cut these nodes off from all others."""
        self._cut = {frozenset((a, b)) for a in one for b in self.names if b not in one}

    def heal(self) -> None:
        """Undo the partition."""
        self._cut = set()

    def run(self, for_s: float) -> None:
        """Let the network go on for so long."""
        end = time.monotonic() + for_s
        while (left := end - time.monotonic()) > 0:
            self._turn(left)

    def _turn(self, within_s: float) -> None:
        """Deliver what is due, and read what has come."""
        while self._mail and self._mail[0][0] <= time.monotonic():
            _, _, node, line = heapq.heappop(self._mail)
            self.passed += 1
            self._give(node, line)
        wait_s = min(within_s, self._mail[0][0] - time.monotonic()) if self._mail else within_s
        for key, _ in self._selector.select(max(0.0, wait_s)):
            read = os.read(key.fd, 1 << 16)
            if not read:
                self._selector.unregister(key.fileobj)
            *lines, self._read[key.data] = (self._read[key.data] + read).split(b"\n")
            for line in lines:
                self._route(line)

    def _route(self, line: bytes) -> None:
        message = msgspec.json.decode(line)
        if message["dest"] == CLIENT:
            self._replies[message["body"]["in_reply_to"]] = message["body"]
        elif frozenset((message["src"], message["dest"])) not in self._cut:
            at = time.monotonic() + self._latency_s * (0.5 + self._random.random())
            heapq.heappush(self._mail, (at, next(self._order), message["dest"], line))

    def _give(self, node: str, line: bytes) -> None:
        to = self._nodes[node].stdin
        assert to is not None
        to.write(line + b"\n")
        to.flush()
