"""The network between hosts of one machine, with real packets, and that nothing is left of it."""

from __future__ import annotations

import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from demo.harness.servers import wait_for
from portal.supervisor.parent_watchdog import death_signal
from tests.hosts.network import ROOT, HostNetwork
from tests.processes import alive

pytestmark = pytest.mark.processes
PORT = 4000
BUSY_S = 5.0
"""Time for which a busy machine may not run a process: no packet is waited for so long in vain."""


@pytest.fixture
def network() -> Iterator[HostNetwork]:
    with HostNetwork(["a", "b", "c"], seed=7) as made:
        yield made


def datagrams(network: HostNetwork, name: str) -> socket.socket:
    """A socket for datagrams of a host; the caller closes it."""
    with network[name].inside():
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((network[name].address, PORT))
    made.settimeout(BUSY_S)
    return made


class Echo:
    """Answers every datagram at a host, from a thread."""

    def __init__(self, network: HostNetwork, name: str) -> None:
        self._socket = datagrams(network, name)
        self._socket.settimeout(0.05)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                packet, origin = self._socket.recvfrom(2048)
            except TimeoutError:
                continue
            self._socket.sendto(packet, origin)

    def __enter__(self) -> Echo:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(BUSY_S)
        self._socket.close()


def round_trip_s(network: HostNetwork, asking: socket.socket, to: str) -> float:
    began = time.monotonic()
    asking.sendto(b"ping", (network[to].address, PORT))
    asking.recv(2048)
    return time.monotonic() - began


def sent(network: HostNetwork, origin: str, to: str, numbers: range) -> None:
    """Send a datagram for each number, and wait until each has been delivered or lost."""
    before = sum(network.carried(origin, to))
    with network[origin].inside(), closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sending:
        for number in numbers:
            sending.sendto(str(number).encode(), (network[to].address, PORT))
    wait_for(lambda: sum(network.carried(origin, to)) >= before + len(numbers), about="the switch has seen all")


def arrived(receiving: socket.socket) -> list[int]:
    """What has arrived so far."""
    numbers = []
    receiving.setblocking(False)
    try:
        while True:
            numbers.append(int(receiving.recv(2048)))
    except BlockingIOError:
        return numbers


def test_each_host_has_its_own_ports_and_reaches_the_others(network: HostNetwork) -> None:
    with Echo(network, "b"), Echo(network, "c"), closing(datagrams(network, "a")) as asking:
        for to in "bc":
            assert min(round_trip_s(network, asking, to) for _ in range(5)) < BUSY_S
    with pytest.raises(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outside:
        outside.bind((network["a"].address, PORT))


def test_a_delay_is_kept_and_no_packet_comes_earlier(network: HostNetwork) -> None:
    network.delay("a", "b", 0.02)
    with Echo(network, "b"), Echo(network, "c"), closing(datagrams(network, "a")) as asking:
        delayed = [round_trip_s(network, asking, "b") for _ in range(20)]
        direct = [round_trip_s(network, asking, "c") for _ in range(20)]
        network.heal("a", "b")
        healed = [round_trip_s(network, asking, "b") for _ in range(20)]
    assert 0.04 <= min(delayed) <= 0.04 * 1.1 + 0.01, "the quickest of 20: others may have met a busy machine"
    assert min(direct) < 0.02
    assert min(healed) < 0.02


def test_packets_stay_in_order_whatever_the_jitter(network: HostNetwork) -> None:
    network.delay("a", "b", 0.001, jitter_s=0.05)
    with closing(datagrams(network, "b")) as receiving:
        sent(network, "a", "b", range(100))
        assert arrived(receiving) == list(range(100))


def losses(seed: int) -> tuple[list[int], tuple[int, int]]:
    """What arrives of 1,000 packets of which a fifth is lost, and the counts."""
    with HostNetwork("ab", seed=seed) as network, closing(datagrams(network, "b")) as receiving:
        network.lose("a", "b", 0.2)
        numbers: list[int] = []
        for begin in range(0, 1000, 50):  # fewer than a socket's buffer holds
            sent(network, "a", "b", range(begin, begin + 50))
            numbers += arrived(receiving)
        return numbers, network.carried("a", "b")


def test_the_stated_share_is_lost_and_the_same_packets_with_the_same_seed() -> None:
    numbers, (delivered, lost) = losses(7)
    assert delivered == len(numbers)
    assert delivered + lost == 1000
    assert 150 <= lost <= 250
    assert losses(7)[0] == numbers
    assert losses(8)[0] != numbers


def test_a_cut_one_way_stops_one_way_only_and_heals(network: HostNetwork) -> None:
    network.cut_one_way("a", "b")
    with closing(datagrams(network, "a")) as at_a, closing(datagrams(network, "b")) as at_b:
        sent(network, "a", "b", range(5))
        sent(network, "b", "a", range(5))
        sent(network, "c", "b", range(10, 15))
        assert arrived(at_a) == [0, 1, 2, 3, 4]
        assert arrived(at_b) == [10, 11, 12, 13, 14]
        network.heal("b")
        sent(network, "a", "b", range(5))
        assert arrived(at_b) == [0, 1, 2, 3, 4]


def test_a_connection_is_silent_while_its_hosts_are_cut_and_goes_on_afterwards(network: HostNetwork) -> None:
    with network["b"].inside():
        listening = socket.create_server((network["b"].address, PORT))
    with listening, network["a"].inside():
        near = socket.create_connection((network["b"].address, PORT), timeout=BUSY_S)
        far, _ = listening.accept()
    with near, far:
        network.cut("a", "b")
        near.sendall(b"waits")
        far.settimeout(0.3)
        with pytest.raises(TimeoutError):
            far.recv(100)
        network.heal()
        far.settimeout(60)
        assert far.recv(100) == b"waits"


def children(network: HostNetwork) -> list[psutil.Process]:
    """A process on host a that would sleep long, and a child of it."""
    with network["a"].inside():
        shell = subprocess.Popen(["sh", "-c", "sleep 600 & wait"], start_new_session=True)
    process = psutil.Process(shell.pid)
    wait_for(process.children, about="the child runs")
    return [process, *process.children()]


def test_closing_ends_the_switch_and_what_is_left_on_the_hosts() -> None:
    with HostNetwork("ab") as network:
        left = [*children(network), psutil.Process(network.switch.pid)]
        mine = Path("/proc/thread-self/ns/net").stat().st_ino
        name = socket.gethostname()
        with network["b"].inside():
            assert Path("/proc/thread-self/ns/net").stat().st_ino != mine
            assert socket.gethostname() == "b"
        assert socket.gethostname() == name
        assert Path("/proc/thread-self/ns/net").stat().st_ino == mine
    wait_for(lambda: not alive(left), about="they have ended")


OWNER = """
import json, os, sys
from tests.hosts.network import HostNetwork
from tests.hosts.test_network import children
network = HostNetwork("ab")
inodes = [os.fstat(host.namespaces.net).st_ino for host in network.hosts.values()]
print(json.dumps({"pids": [network.switch.pid, *(one.pid for one in children(network))], "namespaces": inodes}), flush=True)
with network["a"].inside():  # the owner itself is on a host when it is killed
    sys.stdin.read()
"""


def namespaces_in_use() -> set[int]:
    """The namespaces that any process is in, or holds open."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.add((process / "ns/net").stat().st_ino)
            found |= {one.stat().st_ino for one in (process / "fd").iterdir() if str(one.readlink()).startswith("net:")}
        except OSError:  # it has ended
            continue
    return found


def test_nothing_is_left_after_the_owner_was_killed() -> None:
    with HostNetwork("a"):  # skips where the owner could not make one
        pass
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'client'}", "DJANGO_SETTINGS_MODULE": "tests.settings"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=death_signal(signal.SIGKILL),
    )
    assert owner.stdout is not None
    assert owner.stdin is not None
    with owner.stdin, owner.stdout:
        told: dict[str, Any] = json.loads(owner.stdout.readline())
        processes = [psutil.Process(pid) for pid in told["pids"]]
        assert set(told["namespaces"]) <= namespaces_in_use()
        assert len(alive(processes)) == 3
        owner.kill()
        owner.wait()
    wait_for(lambda: not alive(processes), about="switch and processes have ended")
    wait_for(lambda: not namespaces_in_use() & set(told["namespaces"]), about="the namespaces are gone")


def test_without_root_it_is_said_what_is_missing(tmp_path: Path) -> None:
    user: dict[str, Any] = {}
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    # The interpreter and the tree may be closed to others: the module, which needs nothing else, is handed over.
    source = (ROOT / "tests/hosts/namespaces.py").read_text() + "\nprint(missing())"
    program = Path("/usr/bin/python3")
    found = subprocess.run(
        [str(program) if program.exists() else sys.executable, "-c", source],
        capture_output=True,
        text=True,
        cwd="/",
        timeout=60,
        check=False,
        **user,
    )
    assert found.stdout.startswith("hosts on one machine need "), found
    assert "root" in found.stdout or "/dev/net/tun" in found.stdout


@pytest.mark.long
@pytest.mark.soak
def test_five_hosts_are_up_within_two_seconds_and_what_the_switch_carries() -> None:
    """Prints what the switch carries; only a machine with nothing else to do keeps the bounds."""
    began = time.monotonic()
    with HostNetwork("abcde") as network:
        print(f"five hosts up in {time.monotonic() - began:.2f} s")
        assert time.monotonic() - began < 2
        switch = psutil.Process(network.switch.pid)
        print(f"at 5,000 packets/s: {_load(network, switch, 5000, 3.0):.0%} of a core")
        bytes_per_s, cpu = _streamed(network, switch, 200_000_000)
        print(f"one stream of TCP: {bytes_per_s / 1e6:.0f} MB/s, {cpu:.0%} of a core")
        assert bytes_per_s > 5e6


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _load(network: HostNetwork, switch: psutil.Process, rate: int, for_s: float) -> float:
    """Send datagrams at a rate; return the switch's share of a core."""
    before, began, count = _cpu_s(switch), time.monotonic(), 0
    with closing(datagrams(network, "a")) as sending, closing(datagrams(network, "b")):
        while (now := time.monotonic() - began) < for_s:
            while count < now * rate:
                sending.sendto(b"x" * 500, (network["b"].address, PORT))
                count += 1
            time.sleep(0.002)
    share = (_cpu_s(switch) - before) / for_s
    assert sum(network.carried("a", "b")) >= 0.9 * rate * for_s
    assert share < 0.3
    return share


def _streamed(network: HostNetwork, switch: psutil.Process, size: int) -> tuple[float, float]:
    """Send so many bytes over one connection; return bytes/s and the switch's share of a core."""
    with network["b"].inside():
        listening = socket.create_server((network["b"].address, PORT))
    with listening, network["a"].inside():
        near = socket.create_connection((network["b"].address, PORT), timeout=60)
        far, _ = listening.accept()
    before, began = _cpu_s(switch), time.monotonic()
    with near, far:
        sending = threading.Thread(target=lambda: near.sendall(b"x" * size), daemon=True)
        sending.start()
        left = size
        while left:
            left -= len(far.recv(1 << 20))
        sending.join(60)
    took = time.monotonic() - began
    return size / took, (_cpu_s(switch) - before) / took
