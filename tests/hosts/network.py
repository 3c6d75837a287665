"""Several hosts on one machine, and the network between them: delays, losses and cuts, also of one way only.

    with HostNetwork(["a", "b", "desk"], seed=7) as network:
        with network["a"].inside():                  # the calling thread is on host a
            server = subprocess.Popen([...])         # and what it makes is of host a for good: processes, sockets, threads
        network.delay("a", "b", 0.05, jitter_s=0.01)
        network.cut_one_way("a", "b")                # silent, as a network is: nobody is told, nothing is refused
        network.heal()

Each host has an address of its own and all ports, so servers are given their usual ones. Files, unix sockets and the clock are shared.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from tests.hosts import namespaces

ROOT = Path(__file__).resolve().parents[2]
NETWORK = "10.77.0"
HOSTS_MAX = 250
ANSWER_S = 30.0
STOP_S = 30.0


class Host:
    """One host: namespaces with an address and a name, which socket.gethostname() returns there."""

    def __init__(self, name: str, address: str) -> None:
        self.name, self.address = name, address
        self.namespaces = namespaces.made(name, address)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Have the calling thread be on this host for a block. Not around an `await`: all tasks of its loop would be."""
        with namespaces.inside(self.namespaces):
            yield


class HostNetwork:
    """Running hosts. Skips the test, with the reason, where the system does not permit them.

    Args:
        names: of the hosts.
        seed: of what is lost and of jitter: the same for the n-th packet of a way in each run.
    """

    def __init__(self, names: Sequence[str], *, seed: int = 0) -> None:
        reason = namespaces.missing()
        if reason:
            pytest.skip(reason)
        assert len(set(names)) == len(names) <= HOSTS_MAX, "each host has a name of its own"
        self.hosts: dict[str, Host] = {}
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(ANSWER_S)
        try:
            for number, name in enumerate(names, 1):
                self.hosts[name] = Host(name, f"{NETWORK}.{number}")
            handed = [theirs.fileno(), *(one for host in self.hosts.values() for one in host.namespaces[:2])]
            self.switch = subprocess.Popen(
                [sys.executable, "-m", "tests.hosts.switch", str(handed[0]), str(seed), *map(str, handed[1:])],
                cwd=ROOT,
                pass_fds=handed,
                start_new_session=True,
            )
            for name in names:
                self.carried(name, name)  # it answers, so it runs
        except BaseException:
            self._close_descriptors()
            raise
        finally:
            theirs.close()
            for host in self.hosts.values():
                os.close(host.namespaces.device)

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the switch, and kill what is left on the hosts."""
        self._close_descriptors()
        try:
            self.switch.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.switch.kill()
            self.switch.wait()
            raise

    # -- faults: each holds when its call returns -------------------------------------------------------------------

    def cut(self, one: str, other: str) -> None:
        """Let nothing pass between two hosts, either way."""
        self.cut_one_way(one, other)
        self.cut_one_way(other, one)

    def cut_one_way(self, origin: str, to: str) -> None:
        """Let nothing of `origin` reach `to`."""
        self._set(origin, to, is_cut=True)

    def delay(self, one: str, other: str, delay_s: float, jitter_s: float = 0.0) -> None:
        """Delay packets between two hosts, either way, by `delay_s` and up to `jitter_s` more."""
        for origin, to in ((one, other), (other, one)):
            self._set(origin, to, delay_s=delay_s, jitter_s=jitter_s)

    def lose(self, one: str, other: str, share: float) -> None:
        """Lose a share (0 to 1) of the packets between two hosts, either way."""
        for origin, to in ((one, other), (other, one)):
            self._set(origin, to, loss=share)

    def heal(self, *names: str) -> None:
        """Undo faults: between two hosts, of one host with all others, or all by default."""
        for origin in self.hosts:
            for to in self.hosts:
                if origin != to and set(names) <= {origin, to}:
                    self._ask(origin, to, heal=True)

    def carried(self, origin: str, to: str) -> tuple[int, int]:
        """Return how many packets of a way have been delivered, and lost."""
        answer = self._ask(origin, to)
        return int(answer["delivered"]), int(answer["lost"])

    def _set(self, origin: str, to: str, **values: float) -> None:
        self._ask(origin, to, set=values)

    def _ask(self, origin: str, to: str, **message: Any) -> dict[str, Any]:
        names = list(self.hosts)
        with self._lock:
            self._control.send(json.dumps({"from": names.index(origin), "to": names.index(to), **message}).encode())
            answer: dict[str, Any] = json.loads(self._control.recv(65_536))
        return answer

    def _close_descriptors(self) -> None:
        self._control.close()
        for host in self.hosts.values():
            with contextlib.suppress(OSError):
                os.close(host.namespaces.net)
                os.close(host.namespaces.uts)
