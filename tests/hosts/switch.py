"""The switch between hosts: a process that moves IP packets from one TUN device to another.

    python -m tests.hosts.switch CONTROL SEED DEVICE NAMESPACE DEVICE NAMESPACE ...

All arguments but SEED are inherited descriptors; the n-th pair is of the host with address NETWORK.n. CONTROL is a socket of whole messages (JSON):
changes of ways, each answered when it holds. When the other end of CONTROL is closed, which the kernel does however its process ended, the
switch kills every process that is left in its namespaces, and ends. With the last descriptor and process the namespaces and their devices are gone.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from tests.hosts.ways import Way

PACKET_BYTES = 65_536
PACKETS_AT_ONCE = 64  # bound: packets read from one device before the others' turn
PENDING_MAX = 100_000  # bound: packets under way; further ones are lost, as in a router whose queue is full
IPV4, IPV4_HEADER_BYTES, DESTINATION_LAST = 4, 20, 19
REAP_ROUNDS = 100  # bound: looks for processes that were forked while others were killed

Pending = tuple[float, int, Way, int, bytes]


class Switch:
    """Moves packets between devices, by index.

    Args:
        devices: non-blocking descriptors of TUN devices.
        seed: of losses and jitter.
    """

    def __init__(self, devices: list[int], seed: str) -> None:
        self._devices = devices
        count = range(len(devices))
        self.ways = [[Way(f"{seed}:{origin}:{to}") for to in count] for origin in count]
        self._pending: list[Pending] = []
        self._number = 0

    def read(self, origin: int) -> None:
        """Take what waits at a device; pass on what is due at once."""
        ways, device = self.ways[origin], self._devices[origin]
        for _ in range(PACKETS_AT_ONCE):
            try:
                packet = os.read(device, PACKET_BYTES)
            except BlockingIOError:
                return
            if len(packet) < IPV4_HEADER_BYTES or packet[0] >> 4 != IPV4:
                continue  # IPv6 looks for neighbours
            to = packet[DESTINATION_LAST] - 1
            if not 0 <= to < len(ways):
                continue
            now = time.monotonic()
            way = ways[to]
            at = way.due(now)
            if at is None:
                continue
            if at <= now:
                self._deliver(way, to, packet)
            elif len(self._pending) < PENDING_MAX:
                self._number += 1
                heapq.heappush(self._pending, (at, self._number, way, to, packet))
            else:
                way.lost += 1

    def wait_s(self) -> float | None:
        """Time until a packet is due, seconds; None if none is under way."""
        return max(0.0, self._pending[0][0] - time.monotonic()) if self._pending else None

    def deliver_due(self) -> None:
        """Pass on the packets whose time has come."""
        now = time.monotonic()
        while self._pending and self._pending[0][0] <= now:
            _, _, way, to, packet = heapq.heappop(self._pending)
            self._deliver(way, to, packet)

    def change(self, message: dict[str, Any]) -> dict[str, Any]:
        """Apply a message of HostNetwork; return the answer."""
        way = self.ways[message["from"]][message["to"]]
        if message.get("heal"):
            way.heal()
        for name, value in message.get("set", {}).items():
            setattr(way, name, value)
        return {"delivered": way.delivered, "lost": way.lost}

    def _deliver(self, way: Way, to: int, packet: bytes) -> None:
        if way.arrives():
            with contextlib.suppress(OSError):  # the host is going
                os.write(self._devices[to], packet)


def reap(namespaces: list[int], spared: set[int]) -> None:
    """Kill the processes in these namespaces, but for `spared`, until there are none."""
    ours = {(one.st_dev, one.st_ino) for one in map(os.fstat, namespaces)}
    for _ in range(REAP_ROUNDS):
        found = [pid for pid in _pids() if pid not in spared and _namespace(pid) in ours]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)  # the killed ones end


def _pids() -> list[int]:
    return [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]


def _namespace(pid: int) -> tuple[int, int] | None:
    try:
        found = Path(f"/proc/{pid}/ns/net").stat()
    except OSError:  # it has ended
        return None
    return found.st_dev, found.st_ino


def serve(control: socket.socket, switch: Switch, devices: list[int]) -> None:
    """Move packets and obey until `control` is closed."""
    poll = select.epoll()
    poll.register(control, select.EPOLLIN)
    for device in devices:
        poll.register(device, select.EPOLLIN)
    index = {device: number for number, device in enumerate(devices)}
    while True:
        for descriptor, _ in poll.poll(switch.wait_s()):
            if descriptor != control.fileno():
                switch.read(index[descriptor])
                continue
            message = control.recv(PACKET_BYTES)
            if not message:
                return
            control.send(json.dumps(switch.change(json.loads(message))).encode())
        switch.deliver_due()


def main(arguments: list[str]) -> None:
    """Run the switch; arguments as of the head of this module."""
    descriptors = [int(one) for one in arguments[2:]]
    devices, namespaces = descriptors[::2], descriptors[1::2]
    owner = os.getppid()
    control = socket.socket(fileno=int(arguments[0]))
    try:
        serve(control, Switch(devices, arguments[1]), devices)
    except ConnectionError:
        pass  # the owner has ended before it read the answer
    finally:
        reap(namespaces, {os.getpid(), owner})


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C at the tests' terminal: their own end ends this
    main(sys.argv[1:])
