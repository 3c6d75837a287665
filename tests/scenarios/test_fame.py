"""Sudden fame among real domains: readers come by the thousand, replicas are placed and readers spread by the schedule alone, nobody loses an event.

Run with `-s` to see the figures. Times of a busy machine are no promise: they are printed, not asserted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from demo.harness.fame import Fame, FameRecord, FameSample, famous_network, found_overlay
from demo.harness.servers import wait_for
from tests.gateway.server import Prepared

CHANGES_MAX = 6
FIRST = 10
"""Readers before and between."""
WITNESSES = 50
"""Readers whose delays are measured, at most a tenth of all: few, as each waits for those that the same process serves before."""
CALM_S = 30.0
LEAVING_S = 15.0


class Crowding(NamedTuple):
    """A time of fame: when it began, when all readers had begun, when they began to leave (monotonic seconds)."""

    began: float
    full: float
    ended: float


def crowded(fame: Fame, readers: int, *, over_s: float, hold_s: float) -> Crowding:
    """Have so many readers begin within `over_s`, stay for `hold_s`, and leave, with everything that was published until then received."""
    began = time.monotonic()
    witnesses = min(WITNESSES, readers // 10)
    fame.readers.have(readers - witnesses, over_s=over_s)
    fame.witnesses.have(witnesses, over_s=over_s)

    def open_ones() -> int:
        return fame.readers.state.open + fame.witnesses.state.open

    wait_for(lambda: open_ones() == readers, over_s + 180, every_s=0.5, about=f"{readers} readers")
    full = time.monotonic()
    wait_for(lambda: time.monotonic() > full + hold_s, hold_s + 60, every_s=0.5)
    assert open_ones() == readers, (fame.readers.state, fame.witnesses.state)
    fame.all_have(fame.publisher.published)
    ended = time.monotonic()
    fame.readers.have(0, over_s=LEAVING_S)
    fame.witnesses.have(FIRST, over_s=LEAVING_S)
    wait_for(lambda: open_ones() == FIRST, LEAVING_S + 120, every_s=0.5, about="the crowd has left")
    return Crowding(began, full, ended)


def report(record: FameRecord, crowdings: list[Crowding], moves: int) -> None:
    """Print the figures."""
    calm = record.p99_ms(0, crowdings[0].began)
    print(f"\np99 of the delivery delay before: {calm:.0f} ms")
    for one in crowdings:
        during, after = record.p99_ms(one.began, one.full), record.p99_ms(one.full, one.ended)
        late = record.p99_ms(one.began + 60, one.ended)
        print(
            f"{one.full - one.began:.0f} s of growth: {during:.0f} ms, then {after:.0f} ms, from 60 s after its beginning"
            f" {late:.0f} ms: {late / calm:.2f} times as much as before"
        )
        samples = [sample for sample in record.samples if one.began <= sample.at_s <= one.ended]
        over_s = FameRecord(samples=samples).worst_over_share_s()
        print(f"  above 1.25 times its share: at most {over_s:.0f} s; in the end {dict(samples[-1].readers)}")
    for decision in record.decisions:
        print(
            f"  {decision['state']}: {decision['reason']}: + {decision['adds']} - {decision['retires']}: {decision['why']}"
        )
    print(f"changes of the placement: {record.changes()} within ten minutes; {moves} moves of readers")


def nothing_lost(fame: Fame) -> None:
    for crowd in (fame.readers, fame.witnesses):
        state = crowd.state
        assert (state.missing, state.doubled, state.errors) == (0, 0, [])
        assert state.received > 0


@pytest.fixture
def small_fame(tmp_path: Path, prepared: Prepared) -> Iterator[Fame]:
    """Three domains, and an RP at one of them with ten readers."""
    with famous_network(tmp_path, "abc", seed=prepared.migrated) as network:
        found_overlay(network, "abc")
        with Fame(network, "a", processes=1, publish_every_s=0.5) as fame:
            fame.witnesses.have(FIRST)
            wait_for(lambda: fame.witnesses.state.open == FIRST)
            yield fame


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.timeout(900)
def test_a_small_crowd_gets_replicas_and_is_spread_over_them_without_a_person(small_fame: Fame) -> None:
    fame = small_fame
    began = time.monotonic()
    fame.readers.have(600, over_s=10.0)
    wait_for(lambda: fame.readers.state.open == 600, 180)
    wait_for(lambda: fame.sample().serving == frozenset("abc"), 180, every_s=0.5, about="replicas at the others")
    full = time.monotonic()

    def spread() -> bool:
        sample = fame.sample()
        return not sample.over() and all(sample.readers[name] >= 100 for name in "abc")

    wait_for(spread, 400, every_s=0.5, about="no domain has more than 1.25 times its fair share")
    fame.all_have(fame.publisher.published)
    moves = fame.readers.state.moves
    nothing_lost(fame)
    fame.close()
    record = fame.record
    report(record, [Crowding(began, full, time.monotonic())], moves)
    assert {name for one in record.decisions for name in one["adds"]} == {"b.test", "c.test"}
    assert {one["reason"] for one in record.decisions} == {"load"}
    assert {one["decided_by"] for one in record.decisions} == {""}
    assert record.changes() <= CHANGES_MAX
    assert moves >= 200


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.processes
@pytest.mark.timeout(3600)
def test_five_thousand_readers_come_within_a_minute_and_leave_after_five_twice(
    tmp_path: Path, prepared: Prepared
) -> None:
    """Five domains, one of them with a replica from the start, so that the delay before is that of a forwarded event too."""
    with famous_network(tmp_path, "abcde", seed=prepared.migrated) as network:
        found_overlay(network, "abcde")
        with Fame(network, "a", replica="b") as fame:
            fame.witnesses.have(FIRST)
            wait_for(lambda: fame.witnesses.state.open == FIRST)
            calm = time.monotonic()
            wait_for(lambda: time.monotonic() > calm + CALM_S, CALM_S + 60, every_s=0.5)
            crowdings = []
            for _ in range(2):
                crowdings.append(crowded(fame, 5000, over_s=60.0, hold_s=300.0))
                nothing_lost(fame)
                left = time.monotonic()
                wait_for(lambda left=left: time.monotonic() > left + CALM_S, CALM_S + 60, every_s=0.5)  # type: ignore[misc]
            moves = fame.readers.state.moves + fame.witnesses.state.moves
            nothing_lost(fame)
        report(fame.record, crowdings, moves)
        assert {sample.serving for sample in fame.record.samples} >= {frozenset("abcde")}
        assert fame.record.changes() <= CHANGES_MAX


def sample(*readers: int, serving: str = "abc", at_s: float = 0.0) -> FameSample:
    return FameSample(at_s, dict(zip("abc", readers, strict=False)), frozenset(serving))


def test_a_share_counts_from_a_hundred_readers_and_against_the_domains_that_serve() -> None:
    assert sample(60, 10).over() == []
    assert sample(126, 87, 87).over() == ["a"]
    assert sample(125, 88, 87).over() == []
    assert sample(126, 0, 0, serving="a").over() == []


def test_the_record_tells_the_longest_time_above_the_share_and_the_most_changes_in_ten_minutes() -> None:
    over, even = (200, 50, 50), (100, 100, 100)
    record = FameRecord([sample(*(over if at in (1, 2, 3, 7, 8) else even), at_s=at) for at in range(10)])
    assert record.worst_over_share_s() == 2
    record.decisions = [
        {"state": state, "at_s": at}
        for state, at in (("done", 0.0), ("failed", 500.0), ("expired", 550.0), ("done", 700.0))
    ]
    assert record.changes() == 2
    record.delays_ms = [("a", float(at), float(at)) for at in range(1000)]
    assert record.p99_ms(0, 100) == 99
    assert record.p99_ms(0, 1000, at="a") == 990
