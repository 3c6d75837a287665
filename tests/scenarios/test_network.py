"""Three domains carry one RP through what networks and operators do: nothing is lost, doubled, doubted or out of order."""

from __future__ import annotations

import shutil

import pytest

from demo.harness.network import Network
from demo.harness.servers import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]


def test_three_domains_carry_one_rp_with_publishers_and_subscribers_at_each(network: Network) -> None:
    rp = network.replicated_rp("a", "b", "c")
    readers = [network.reader(rp, name) for name in "abc"]
    publishers = [network.publisher(rp, name, every_s=0.02) for name in "abc"]
    wait_for(lambda: len(network.published.get(rp, ())) >= 60)
    for publisher in publishers:
        publisher.stop()
    network.converged(rp)
    for reader in readers:
        reader.has(network.published[rp])
        assert not reader.gaps
    assert not any(network.misbehaviour(name) for name in "abc")


def test_a_partition_heals_and_what_both_sides_published_meanwhile_arrives_on_both(network: Network) -> None:
    rp = network.replicated_rp("a", "b", "c")
    readers = {name: network.reader(rp, name) for name in "abc"}
    network.publish(rp, "b", 5)
    network.converged(rp)
    network.isolate("a")
    here, there = network.publish(rp, "a", 20), network.publish(rp, "b", 20) + network.publish(rp, "c", 20)
    readers["a"].has(here)
    for name in "bc":
        readers[name].has(there)
    assert not set(here) & set(readers["b"].ids)
    assert not set(there) & set(readers["a"].ids)
    network.heal()
    network.converged(rp)
    for reader in readers.values():
        reader.has(network.published[rp])


def test_a_way_that_is_cut_in_one_direction_only_stops_nothing_for_long(network: Network) -> None:
    rp = network.replicated_rp("a", "b", "c")
    readers = {name: network.reader(rp, name) for name in "bc"}
    network.partition("a", "b", one_way=True)
    for reader in readers.values():
        reader.has(network.publish(rp, "a", 10))


def test_slow_ways_and_connections_that_break_midway_delay_events_and_lose_none(network: Network) -> None:
    rp = network.replicated_rp("a", "b", "c")
    reader = network.reader(rp, "b")
    network.partition("c", "b")
    network.delay("a", "b", 0.1)
    network.proxy("a", "b").drop_after(5000)
    reader.has(network.publish(rp, "a", 100))
    network.converged(rp, "a", "b")


def test_what_a_publishes_reaches_c_by_b_where_a_and_c_cannot_reach_each_other(network: Network) -> None:
    network.partition("a", "c")
    rp = network.create_rp("a")
    network.join(rp, "b", "a")
    network.join(rp, "c", "b")  # b passes its wish on to the home, and brings the answer
    at_a, at_c = network.reader(rp, "a"), network.reader(rp, "c")
    at_c.has(network.publish(rp, "a", 20))
    at_a.has(network.publish(rp, "c", 20))
    network.converged(rp)


def test_a_domain_that_was_killed_comes_back_and_lacks_nothing(network: Network) -> None:
    rp = network.replicated_rp("a", "b", "c")
    before = network.publish(rp, "c", 20)
    reader = network.reader(rp, "c")
    network.converged(rp)
    network.kill("c")
    network.publish(rp, "a", 20)
    network.publish(rp, "b", 20)
    network.converged(rp, "a", "b")
    network.start("c")
    after = network.publish(rp, "c", 20)
    network.converged(rp)
    network.reader(rp, "b").has([*before, *after])
    reader.has(network.published[rp])


def test_history_that_was_trimmed_during_an_outage_is_a_gap_that_names_what_is_missing(network: Network) -> None:
    rp = network.replicated_rp("a", "b", "c", history={"max_events": 20})
    reader = network.reader(rp, "c")
    reader.has(network.publish(rp, "a", 5))
    network.isolate("c")
    lost = network.publish(rp, "a", 100)
    network.converged(rp, "a", "b")
    network.heal()
    reader.has(lost[-20:])
    assert reader.gaps, "the reader that was connected is told"
    pulled = network["c"].ask("GET", f"/api/v1/rps/{rp}/events?after={reader.received[4].cursor}")
    assert not pulled["recovered"]
    assert list(pulled["gap"]["feeds"].values()) == [[6, 85]], "exactly what is missing, by feed and sequence"
    reader.has(network.publish(rp, "a", 5))
    network.converged(rp)
    assert not network.counted("c", "false-gap")
    assert not network.counted("c", "withheld")


def test_keys_are_rotated_while_events_flow(network: Network) -> None:
    rp = network.replicated_rp("a", "b", "c")
    reader = network.reader(rp, "c")
    publisher = network.publisher(rp, "a")
    before = network["a"].signing_key["kid"]
    rotation = {"signs_after_s": 5}  # by then the peers know the new key, on a busy machine too
    network["a"].ask("POST", "/api/v1/keys/rotate", rotation)
    wait_for(lambda: network["a"].signing_key["kid"] != before, 60)
    published = len(network.published[rp])
    wait_for(lambda: len(network.published[rp]) >= published + 20, 60)
    publisher.stop()
    network.converged(rp)
    reader.has(network.published[rp])
    assert not network.misbehaviour("b")
    assert not network.misbehaviour("c")


@pytest.mark.long
def test_a_domain_restored_from_an_old_backup_uses_no_number_again(network: Network) -> None:
    rp = network.replicated_rp("a", "b", "c")
    reader = network.reader(rp, "a")
    network.publish(rp, "c", 10)
    network.converged(rp)
    network.stop("c")
    data, backup = network["c"].data_dir, network["c"].data_dir.with_name("backup")
    shutil.copytree(data, backup)
    network.start("c")
    network.publish(rp, "c", 10)  # these the backup knows nothing of, but the others hold them
    network.converged(rp)
    network.stop("c")
    shutil.rmtree(data)
    backup.rename(data)
    network.start("c")
    network.publish(rp, "c", 10)
    network.converged(rp)
    reader.has(network.published[rp])
    network.reader(rp, "c").has(
        network.published[rp], ordered=False
    )  # there the old feed came back after the new one began
    for name in "ab":
        assert not network.counted(name, "equivocation")
        assert "c.test" not in network.quarantined(name)


@pytest.mark.long
def test_a_reader_of_a_domain_restored_whole_is_given_nothing_of_other_origins_again(network: Network) -> None:
    rp = network.replicated_rp("a", "b", "c")
    for name in "abc":
        network.publish(rp, name, 20)
    network.converged(rp)
    network.stop("c")
    data, backup = network["c"].data_dir, network["c"].data_dir.with_name("backup")
    shutil.copytree(data, backup)
    network.start("c")
    for name in "abc":
        network.publish(rp, name, 10)
    network.converged(rp)
    before = network.reader(rp, "c")
    before.has(network.published[rp])
    cursor = before.received[-1].cursor
    before.stop()
    network.stop("c")
    shutil.rmtree(data)
    backup.rename(data)
    network.isolate("c")  # so that nobody shows c that it was put back before the reader is there
    network.start("c")
    reader = network.reader(rp, "c", from_=cursor)
    network.heal()
    reader.has([event for name in "abc" for event in network.publish(rp, name, 5)], ordered=False)
    network.converged(rp)
    again = sorted(set(before.ids) & set(reader.ids))
    assert [event for event in again if not event.startswith("c-")] == []
    assert len(again) <= 30, "what c published itself it cannot tell from what others say, and is given in doubt"


@pytest.mark.long
def test_a_home_restored_from_an_old_backup_is_heard_again_when_it_changes_an_rp(network: Network) -> None:
    rp = network.replicated_rp("a", "b", "c")

    def change(title: str) -> None:
        network["a"].ask("PATCH", f"/api/v1/rps/{rp}", {"title": title})

    def shown(title: str, *at: str) -> bool:
        return all(network[name].ask("GET", f"/api/v1/rps/{rp}")["title"] == title for name in at)

    wait_for(lambda: shown("", *"bc"))
    network.stop("a")
    data, backup = network["a"].data_dir, network["a"].data_dir.with_name("backup")
    shutil.copytree(data, backup)
    network.start("a")
    for title in ("2", "3", "4"):
        change(title)
    wait_for(lambda: shown("4", *"bc"))
    for name in "bc":
        network.publish(rp, name)
    network.converged(rp)  # with these events came the statements that they have taken: none are left to tell
    network.stop("a")
    shutil.rmtree(data)
    backup.rename(data)
    network.start("a")
    change("of the backup")  # version 2, where the others hold 4
    wait_for(lambda: shown("of the backup", *"abc"))
    for name in "bc":
        assert not network.counted(name, "equivocation")
