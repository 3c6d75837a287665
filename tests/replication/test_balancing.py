"""Steps by which a domain above its bounded share moves readers: by the measured excess, over the room of others, with hysteresis."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from eventing.replication.rules.balancing import (
    HELD_S,
    STALE_STEP,
    STALE_STEP_S,
    STEP_S,
    BalancingMove,
    BalancingStep,
    RpReaders,
    balancing_steps,
    wants_loads,
)
from eventing.replication.rules.ranking import LOAD_FACTOR, ReplicaServer, drawn_by_room
from eventing.replication.rules.reader_moves import NAMED_MAX, ReaderMove, new_is_drawn, targets_by_room

NOW = 1000.0


def server(name: str, sessions: int | None = None, *, fresh: bool = True, capacity: int = 10_000) -> ReplicaServer:
    return ReplicaServer(name, f"https://{name}.example", capacity, sessions, fresh=fresh)


def step(servers: list[ReplicaServer], before: BalancingMove | None = None, **more: Any) -> BalancingStep | None:
    """The step of the domain a for an RP that all its readers read."""
    rp = RpReaders("rp", more.get("readers", servers[0].sessions or 0), servers, more.get("leaving", 0))
    return balancing_steps([rp], "a", {"rp": before} if before else {}, more.get("now", NOW)).get("rp")


def test_one_step_moves_the_whole_measured_excess_by_the_room_of_others() -> None:
    found = step([server("a", 3000), server("b", 0), server("c", 500)])
    assert found is not None
    assert found.share * 3000 == pytest.approx(3000 - 3500 / 3)
    weight = dict(found.rooms)
    assert weight["https://b.example"] == 1000
    assert weight["https://c.example"] == round(1000 * (1.1 * 3500 / 3 - 500) / (1.1 * 3500 / 3))
    assert (found.new_share, found.until) == (1.0, NOW + HELD_S)


@pytest.mark.parametrize(
    "servers",
    [
        [server("a", 1249), server("b", 1000), server("c", 750)],  # within the bound
        [server("a", 99), server("b", 0)],  # few sessions
        [server("a", 3000), server("b", 1500, capacity=1500), server("c", 10, capacity=10)],  # nobody has room
    ],
)
def test_a_domain_within_its_bound_or_with_few_readers_or_among_full_ones_moves_nobody(
    servers: list[ReplicaServer],
) -> None:
    assert step(servers) is None


def test_a_move_of_a_few_readers_is_not_begun() -> None:
    assert step([server("a", 400), server("b", 0)], readers=4) is None


def test_domains_above_their_bounds_divide_the_room_of_the_others() -> None:
    servers = [server("a", 900), server("b", 1800), server("c", 0), server("d", 0)]
    found = step(servers)
    assert found is not None
    mine, theirs, room = 900 - 675, 1800 - 675, 2 * 1.1 * 675
    assert found.share * 900 == pytest.approx(min(mine, room * mine / (mine + theirs)))


def test_the_next_step_waits_until_the_last_had_its_effect_and_for_old_figures_longer() -> None:
    servers = [server("a", 3000), server("b", 0)]
    before = BalancingMove(NOW, NOW + 90, 3000)
    assert step(servers, before, now=NOW + STEP_S - 0.1) is None
    assert step(servers, before, now=NOW + STEP_S) is not None
    old = [server("a", 3000), server("b", 0, fresh=False)]
    assert step(old, before, now=NOW + STALE_STEP_S - 1) is None
    found = step(old)
    assert found is not None
    assert found.share == STALE_STEP


def test_old_figures_count_only_where_no_fresh_room_is_left() -> None:
    found = step([server("a", 3000), server("b", 0), server("c", 0, fresh=False)])
    assert found is not None
    assert [url for url, _ in found.rooms] == ["https://b.example"]


def test_readers_that_begin_are_pointed_elsewhere_until_a_while_after_the_last_time_above_the_bound() -> None:
    """Below the bound no reader moves that is there: the distance to the fair share is the hysteresis."""
    before = BalancingMove(NOW, NOW + 90, 2400)
    slightly = step([server("a", 1100), server("b", 1000), server("c", 900)], before, now=NOW + 10)
    assert slightly is not None
    assert (slightly.share, slightly.new_share, slightly.until) == (0.0, 1.0, before.until)
    below = step([server("a", 900), server("b", 1000), server("c", 1100)], before, now=NOW + 10)
    assert below is not None
    assert below.share == 0.0
    assert below.new_share == pytest.approx(2 / 3)
    assert step([server("a", 1100), server("b", 1000), server("c", 900)], before, now=NOW + 90) is None


def test_growth_since_the_last_step_counts_as_room() -> None:
    """Or else a domain with the only room left would get all readers that begin until the next step."""
    servers = [server("a", 1000), server("b", 550), server("c", 100)]
    calm = step(servers)
    growing = step(servers, BalancingMove(NOW - STEP_S, NOW + 60, 1000))
    assert calm is not None
    assert growing is not None
    assert dict(calm.rooms)["https://b.example"] < dict(growing.rooms)["https://b.example"] < 1000


def test_readers_that_were_redirected_and_have_not_gone_yet_are_not_replaced_by_others() -> None:
    servers, before = [server("a", 600), server("b", 0), server("c", 0)], BalancingMove(NOW - STEP_S, NOW + 60, 600)
    found = step(servers, before, leaving=300)
    assert found is not None
    assert found.share * 300 == pytest.approx(400 - 300), "of those who stay"
    done = step(servers, before, leaving=400)
    assert done is not None
    assert done.share == 0.0
    assert done.new_share == pytest.approx(2 / 3), "it is at its fair share soon"
    assert step(servers, None, leaving=400) is None
    full = step([server("a", 600, capacity=100), server("b", 0, capacity=50)], before, leaving=48)
    assert full is not None
    assert full.share == 0.0, "they take the room that is left"


def test_several_rps_together_move_no_more_than_the_excess() -> None:
    servers = [server("a", 700), server("b", 300)]
    rps = [RpReaders(f"rp{n}", 200, servers) for n in range(3)]
    assert sum(one.share * 200 for one in balancing_steps(rps, "a", {}, NOW).values()) <= 200.0 + 1e-9


def test_others_are_asked_above_the_bound_while_a_step_lasts_and_where_a_load_is_unknown() -> None:
    equal = [server("a", 500), server("b", 500)]
    assert not wants_loads(equal, "a", None)
    assert wants_loads(equal, "a", BalancingMove(NOW, NOW + 60, 1000))
    assert wants_loads([server("a", 500), server("b", None)], "a", None)
    assert wants_loads([server("a", 500), server("b", 100)], "a", None)
    assert not wants_loads([server("a", 99), server("b", 0)], "a", None)


@pytest.mark.parametrize("lag", [0, 1, 4, 9])
def test_clients_that_follow_late_do_not_make_a_domain_move_more_than_its_excess(lag: int) -> None:
    """Readers go `lag` steps after their redirect."""
    at, pending, before = Counter({"a": 600, "b": 0, "c": 0}), list[tuple[int, str]](), None
    for turn in range(30):
        for due, to in [one for one in pending if one[0] <= turn]:
            pending.remove((due, to))
            at["a"] -= 1
            at[to] += 1
        servers = [server(name, at[name]) for name in "abc"]
        found = step(servers, before, now=turn * STEP_S, leaving=len(pending))
        if found is None:
            continue
        before = BalancingMove(turn * STEP_S, found.until, found.readers)
        for reader in range(round(found.share * (at["a"] - len(pending)))):
            (to,) = drawn_by_room(found.rooms, f"{turn} {reader}", 1)
            pending.append((turn + lag, to[8]))
    assert not pending
    assert 195 <= at["a"] <= LOAD_FACTOR * 200
    assert max(at["b"], at["c"]) <= LOAD_FACTOR * 200


def test_steps_lead_within_few_rounds_to_the_fair_share_and_then_end() -> None:
    """Ten thousand readers at one of eight domains; every domain steps by itself, with what it was told before the round."""
    at = Counter({"a": 10_000})
    names, under_way = list("abcdefgh"), dict[str, BalancingMove]()
    for turn in range(12):
        now = turn * STEP_S
        told = {name: at[name] for name in names}
        for own in names:
            servers = [server(name, told[name]) for name in names]
            before = under_way.get(own)
            found = balancing_steps([RpReaders("rp", told[own], servers)], own, {"rp": before} if before else {}, now)
            if "rp" not in found:
                continue
            one = found["rp"]
            under_way[own] = BalancingMove(now, one.until, one.readers)
            for reader in range(round(one.share * told[own])):
                (to,) = drawn_by_room(one.rooms, f"{own} {turn} {reader}", 1)
                at[own] -= 1
                at[to[8]] += 1
        if turn >= 2:
            assert max(at.values()) <= LOAD_FACTOR * 10_000 / 8
    assert sum(at.values()) == 10_000


def test_a_reader_that_was_redirected_here_is_not_among_those_that_begin() -> None:
    move = ReaderMove("m", "rp", 0.5, (), 2000.0, 5.0, "", new_share=1.0, rooms=(("https://b.example", 1000),))
    assert new_is_drawn(move, "s", 0)
    assert not new_is_drawn(move, "s", 1)
    drawn = sum(new_is_drawn(ReaderMove("m", "rp", 0.5, (), 2000.0, 5.0, ""), f"s{n}", 1) for n in range(1000))
    assert 400 < drawn < 600, "a move without a share for these draws them as the others"


def test_each_reader_is_named_a_few_domains_drawn_by_their_room() -> None:
    rooms = (("https://b.example", 1000), ("https://c.example", 500), ("https://d.example", 0))
    move = ReaderMove("m", "rp", 0.5, (), 2000.0, 5.0, "", rooms=rooms)
    first = Counter(targets_by_room(move, f"s{n}")[0] for n in range(6_000))
    assert abs(first["https://b.example"] - 4_000) < 200
    assert first.keys() == {"https://b.example", "https://c.example"}
    assert len(targets_by_room(move, "s")) == NAMED_MAX
