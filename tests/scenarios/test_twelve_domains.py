"""Twelve domains that one sponsor brought in, each a peer of the founder only, and one RP at all of them: what no administrator wired.

They link by themselves, carry each other's events at the cost of one copy, go on when any three are killed, the founder among them, and come
back when all start again at once. A thirteenth one only calls out, as behind NAT. The tests are one story, in order. Run with `-s` to
see the figures.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import redis

from demo.harness.network import Network, NetworkDomain
from demo.harness.reader import Reader
from demo.harness.servers import wait_for
from eventing.core.config import Config
from eventing.overlay.graft_timer import GRAFT_S
from tests.gateway.server import Prepared
from tests.scenarios.watching import AdminWatch

pytestmark = [pytest.mark.processes, pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(900)]

TWELVE, FOUNDER, NAT = "abcdefghijkl", "a", "m"
SMALL: dict[str, Any] = {"workers": 0, "reports": "off", "records": 0}
"""Three processes for each domain (docs/decisions/0073): two cores have to carry thirteen of them."""
LINKS_MIN = 3
LINKED_WITHIN_S = 30.0
PEERED_WITHIN_S = 60.0
AGAIN_WITHIN_S = 120.0
"""For all links after all domains were started at once: it includes the starts."""
EVENTS, EVERY_S = 30, 1.5
REQUESTS_MAX = 45.0
"""Requests between the domains for each event: 11 with its run, and vectors over the links beside the tree, which wait for company
(eventing/overlay/announcements.py). It was a hundred where both ends of each link announced each event at once. Some more than the 35
of tests/overlay/test_announcements.py, as a busy machine grafts early.
"""
REST_S = 15.0
COPIES_MAX, COPIES_MAX_BUSY = 1.02, 1.25
"""On a machine so busy that events take longer than a link waits for them, early grafts send some twice: 1.04 with six domains, 1.15 with twelve
beside another test."""
P99_MS_MAX = 10_000
"""The aim is 300 ms on two free cores, which are not here while other tests run; the figure is printed."""
CARRIED_WITHIN_S = 15.0
LOST = ("a", "e", "j")


class Federation:
    """The domains, and what the story has made so far."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.names = [*TWELVE, NAT]
        self.rp = ""
        self.readers: dict[str, Reader] = {}

    def links(self, name: str) -> set[str]:
        """Short names of the domains with which one has a link."""
        items = self.network[name].ask("GET", "/api/v1/overlay/links")["items"]
        return {str(link["peer"]).removesuffix(".test") for link in items if link["up"]}

    def wait_whole(self, *names: str, within_s: float, domains: int) -> float:
        """Wait until the directories of these domains are complete and their links one component; seconds that it took."""
        began = time.monotonic()

        def whole() -> bool:
            states = [self.network[name].ask("GET", "/api/v1/overlay") for name in names]
            if any(one["domains"] != domains or one["links"] < LINKS_MIN for one in states):
                return False
            return component({name: self.links(name) for name in names}, names[0]) == set(names)

        wait_for(whole, within_s, every_s=0.5, about="all directories complete, one component")
        return time.monotonic() - began

    def read(self, *names: str) -> None:
        """Start readers, from now on."""
        for name in names:
            self.readers[name] = self.network.reader(self.rp, name, from_="now")

    def publish(self, *names: str) -> list[str]:
        """Publish one event at each of these domains."""
        return [event for name in names for event in self.network.publish(self.rp, name)]

    def traffic(self) -> tuple[int, int, int]:
        """Events that the twelve received of others, copies beside them, and the requests that brought these or vectors."""
        rows = [row for name in TWELVE for row in _traffic(self.network[name])]
        events, copies, requests = (
            sum(int(row.get(name, 0)) for row in rows) for name in (b"events", b"copies", b"requests")
        )
        return events, copies, requests


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Federation]:
    """Thirteen running domains; all are peers of the founder, and of nobody else."""
    folder = tmp_path_factory.mktemp("twelve")
    made = Network(folder, TWELVE, seed=prepared.migrated, **SMALL)
    made.names.append(NAT)
    made.members[NAT] = NetworkDomain(folder, NAT, seed=prepared.migrated, overlay_callable=0, **SMALL)
    began = time.monotonic()
    with made as network:
        print(f"\n{len(made.names)} domains start in {time.monotonic() - began:.0f} s")
        for name in (*TWELVE[1:], NAT):
            wait_for(lambda name=name: peered(network, name), PEERED_WITHIN_S, every_s=1.0)  # type: ignore[misc]
        yield Federation(network)


def peered(network: Network, name: str) -> bool:
    """Peer a domain with the founder; False if the machine is too busy with their starts."""
    try:
        network.peer(FOUNDER, name)
    except AssertionError:
        return False
    return True


def component(links: Mapping[str, set[str]], start: str) -> set[str]:
    """The domains that are reached from one over links that both ends have."""
    reached: set[str] = set()
    todo = [start]
    while todo:
        one = todo.pop()
        if one not in reached:
            reached.add(one)
            todo += [other for other in sorted(links[one]) if one in links.get(other, ())]
    return reached


def _traffic(member: NetworkDomain) -> list[dict[bytes, bytes]]:
    socket = Config.from_env({"HERALD_DATA_DIR": str(member.data_dir)}).redis_socket
    with redis.Redis(unix_socket_path=str(socket)) as store:
        return [store.hgetall(key) for key in store.keys("herald:peer:*:traffic")]


def test_links_stand_within_half_a_minute(federation: Federation) -> None:
    network, names = federation.network, federation.names
    network[FOUNDER].ask("POST", "/api/v1/overlay/found")
    for name in names:
        if name != FOUNDER:
            network[name].ask("POST", "/api/v1/overlay/join", {"sponsor": f"{FOUNDER}.test"})
    linked_s = federation.wait_whole(*names, within_s=LINKED_WITHIN_S, domains=len(names))
    print(f"\nlinks stand {linked_s:.1f} s after the last has joined")
    assert federation.links(NAT), "a domain that only calls out takes part"
    unwired = [(one, other) for one in TWELVE[1:] for other in federation.links(one) if other != FOUNDER]
    assert unwired, "links that no administrator made"


def test_events_reach_all_at_the_cost_of_one_copy(federation: Federation) -> None:
    network, chance = federation.network, random.Random(1)
    federation.rp = network.replicated_rp(FOUNDER, *TWELVE[1:])
    federation.read(*TWELVE)
    federation.publish(*TWELVE)
    network.converged(federation.rp)
    cold = federation.traffic()
    # What all publish at once while they join is mostly asked for: the next event of each is what makes its tree.
    for name in TWELVE:
        federation.publish(name)
        network.converged(federation.rp)
    time.sleep(REST_S)  # trees come to rest
    before = federation.traffic()
    received, copies, _ = (now - then for now, then in zip(before, cold, strict=True))
    print(f"\n{(received + copies) / received:.3f} payload copies per receiver while trees are made")

    delays = []
    for _ in range(EVENTS):
        published = time.monotonic()
        (event,) = federation.publish(chance.choice(TWELVE))
        missing = list(federation.readers.values())
        while missing:
            missing = [reader for reader in missing if event not in reader.ids[-3:]]
            assert time.monotonic() - published < CARRIED_WITHIN_S
            time.sleep(0.002)
        delays.append(time.monotonic() - published)
        time.sleep(EVERY_S)
    received, copies, requests = (now - then for now, then in zip(federation.traffic(), before, strict=True))
    delays.sort()
    p50_ms, p99_ms = (round(1000 * delays[int(share * (len(delays) - 1))]) for share in (0.5, 0.99))
    per_receiver = (received + copies) / received
    links = sum(len(federation.links(name) & set(TWELVE)) for name in TWELVE) // 2
    print(f"\n{per_receiver:.3f} payload copies per receiver; to the farthest reader p50 {p50_ms} ms, p99 {p99_ms} ms")
    print(f"{requests / EVENTS:.1f} requests per event over {links} links")
    assert received == EVENTS * (len(TWELVE) - 1)
    assert per_receiver <= (COPIES_MAX if p99_ms <= 1000 * GRAFT_S else COPIES_MAX_BUSY)
    assert p99_ms <= P99_MS_MAX
    assert requests / EVENTS <= REQUESTS_MAX


def test_delivery_goes_on_when_three_are_killed_the_home_among_them(federation: Federation) -> None:
    network, left = federation.network, [name for name in TWELVE if name not in LOST]
    watch = AdminWatch(network, *left)
    for name in LOST:
        network.kill(name)
    began = time.monotonic()
    published = federation.publish(*left)
    for name in left:
        federation.readers[name].has(published, within_s=CARRIED_WITHIN_S)
    print(f"\n{', '.join(LOST)} killed: events of all others are at all others after {time.monotonic() - began:.1f} s")
    others = [*left, NAT]
    mended_s = federation.wait_whole(*others, within_s=AGAIN_WITHIN_S, domains=len(federation.names))
    print(f"links mended {mended_s:.1f} s later")
    dropped = [event for name in left for event in watch.told(name, "overlay.link.dropped")]
    reasons = {event["reason"] for event in dropped if event["peer"].removesuffix(".test") in LOST}
    assert reasons <= {"silent", "transport", "evicted", "rotated"}, "found dead, or dropped by chance before that"
    assert [row for name in left for row in network.misbehaviour(name)] == [], "nobody is accused for a crash"


def test_all_come_back_when_all_start_again_within_a_minute(federation: Federation) -> None:
    network, names = federation.network, federation.names
    for name in names:
        if name not in LOST:
            network.kill(name)
    began = time.monotonic()
    network.start()
    started_s = time.monotonic() - began
    whole_s = federation.wait_whole(*names, within_s=AGAIN_WITHIN_S, domains=len(names))
    print(f"\nall start again in {started_s:.0f} s; all links stand {whole_s:.1f} s later")
    federation.read(*TWELVE)
    published = federation.publish(*TWELVE)
    network.converged(federation.rp)
    for name in TWELVE:
        federation.readers[name].has(published)
    assert [row for name in names for row in network.misbehaviour(name)] == []
