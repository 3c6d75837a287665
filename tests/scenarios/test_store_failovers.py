"""Two domains, and a failover of the Redis of one of them, the home of an RP or its replica: what was promised is nowhere lost, no number is given twice, and
readers at both domains are told what was withdrawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from demo.harness.network import Network, NetworkDomain
from demo.harness.servers import wait_for
from tests.gateway.server import Prepared
from tests.store.failover import Servers
from tests.store.redis_process import RedisProcess

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.processes]


@pytest.fixture
def stores(new_redis: Callable[..., RedisProcess], tmp_path: Path) -> dict[str, Servers]:
    """Redis with a replica, for each of two domains."""
    made = {}
    for name in "ab":
        (tmp_path / f"link-{name}").mkdir()
        made[name] = Servers(new_redis, tmp_path / f"link-{name}")
    return made


@pytest.fixture
def two(stores: dict[str, Servers], tmp_path: Path, prepared: Prepared) -> Iterator[Network]:
    network = Network(tmp_path, "ab", seed=prepared.migrated, records=0)
    for name, servers in stores.items():
        network.members[name] = NetworkDomain(tmp_path, name, seed=prepared.migrated, records=0, redis_url=servers.url)
    with network:
        network.peer("a", "b")
        yield network


def fail_over(servers: Servers) -> None:
    """Kill the primary, and promote its replica."""
    servers.primary.kill()
    servers.promote(servers.replicas[0])


@pytest.mark.parametrize("failing", ["a", "b"])
def test_what_was_promised_is_at_both_domains_after_a_failover_of_either(
    two: Network, stores: dict[str, Servers], failing: str
) -> None:
    rp = two.replicated_rp("a", "b", ack="replicated:1")
    readers = [two.reader(rp, name) for name in "ab"]
    publishers = [two.publisher(rp, name) for name in "ab"]
    wait_for(lambda: len(readers[0].received) > 30, 60, about="events of both domains arrive")
    fail_over(stores[failing])
    stores[failing].replicas = [stores[failing].add_replica()]
    before = len(two.published[rp])
    wait_for(lambda: len(two.published[rp]) > before + 40, 90, about="both publish again")
    for publisher in publishers:
        publisher.stop()
    two.converged(rp)
    for reader in readers:
        reader.has(two.published[rp])
        assert reader.gaps == []
    assert [two.misbehaviour(name) for name in "ab"] == [[], []]
    assert [two.quarantined(name) for name in "ab"] == [set(), set()]
    for name in "ab":
        assert two[name].manage("verify_chain").returncode == 0


@pytest.mark.parametrize("failing", ["a", "b"])
def test_what_was_stored_only_and_lost_is_withdrawn_and_comes_back_from_the_other_domain(
    two: Network, stores: dict[str, Servers], failing: str
) -> None:
    rp = two.replicated_rp("a", "b")
    readers = {name: two.reader(rp, name) for name in "ab"}
    for name in "ab":
        two.publish(rp, name, 5)
    two.converged(rp)
    servers = stores[failing]
    servers.in_step()
    servers.cut(servers.replicas[0])
    for name in "ab":
        two.publish(rp, name, 5)
    two.converged(rp)
    for reader in readers.values():
        reader.has(two.published[rp])
    withdrawn = [f"{failing}-{number}" for number in range(6, 11)]
    fail_over(servers)
    for name in "ab":
        two.publish(rp, name, 5)
    two.converged(rp)
    other = readers.pop("b" if failing == "a" else "a")
    other.has(two.published[rp])
    assert other.gaps == [], "the other domain has lost nothing"
    (reader,) = readers.values()

    def has_all() -> bool:
        """The new feed may begin before the reader is told that events were withdrawn: then it keeps them."""
        times = 2 if any(gap.rewound for gap in reader.gaps) else 1
        return set(two.published[rp]) <= set(reader.ids) and all(reader.ids.count(one) == times for one in withdrawn)

    wait_for(lambda: bool(reader.gaps) and has_all(), 90, about="what the domain lost comes back from the other one")
    assert [one for one in set(reader.ids) if reader.ids.count(one) > 1 and one not in withdrawn] == []
    print("withdrawn:", [gap.rewound for gap in reader.gaps])
    for name in "ab":
        two.reader(rp, name, subject="newcomer").has(two.published[rp], ordered=False)
    assert [two.misbehaviour(name) for name in "ab"] == [[], []]
    assert [two.quarantined(name) for name in "ab"] == [set(), set()]
    for name in "ab":
        assert two[name].manage("verify_chain").returncode == 0


def test_what_was_lost_before_it_was_forwarded_is_told_at_home_and_unknown_elsewhere(
    two: Network, stores: dict[str, Servers]
) -> None:
    """The domains are cut from each other while the home stores events without its replica."""
    rp = two.replicated_rp("a", "b")
    readers = {name: two.reader(rp, name) for name in "ab"}
    two.publish(rp, "a", 5)
    two.converged(rp)
    for reader in readers.values():
        reader.has(two.published[rp])
    servers = stores["a"]
    servers.in_step()
    servers.cut(servers.replicas[0])
    two.partition("a", "b")
    lost = two.publish(rp, "a", 3)
    readers["a"].has(lost)
    del two.published[rp][-3:]
    fail_over(servers)
    two.heal()
    kept = [*two.published[rp], *two.publish(rp, "a", 4)]
    two.converged(rp)
    wait_for(lambda: set(kept) <= set(readers["b"].ids), 60, about="b's reader has what was published after")
    assert not set(lost) & set(readers["b"].ids)
    wait_for(lambda: set(kept) <= set(readers["a"].ids), 60, about="a's reader has what was published after")
    assert [gap.rewound and gap.rewound[1:] for gap in readers["a"].gaps] == [(6, 8)]
    newcomer = two.reader(rp, "b", subject="newcomer")
    wait_for(lambda: len(newcomer.ids) >= len(kept), 60, about="a newcomer at b has all")
    assert sorted(newcomer.ids) == sorted(kept)
    assert [two.misbehaviour(name) for name in "ab"] == [[], []]
    assert [two.quarantined(name) for name in "ab"] == [set(), set()]
