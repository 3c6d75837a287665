"""Ranking of the domains where a reader may continue: bounded loads, spread by room, the same for the same reader."""

from __future__ import annotations

from collections import Counter

import pytest

from eventing.replication.rules.ranking import (
    ALTERNATIVES_MAX,
    LOAD_FACTOR,
    ROOM_FACTOR,
    ReplicaServer,
    excess,
    fair_shares,
    ranked,
    rooms,
)
from eventing.replication.rules.reader_moves import ReaderMove, is_drawn, pause_s, valid_s


def server(name: str, sessions: int | None = None, *, capacity: int = 10_000, **more: float) -> ReplicaServer:
    return ReplicaServer(name, f"https://{name}.example", capacity, sessions, more.get("delay_ms"))


def test_the_fair_share_is_by_capacity() -> None:
    servers = [server("a", 900), server("b", 0, capacity=20_000), server("c", None)]
    assert fair_shares(servers) == [300.0, 600.0, 300.0]


def test_no_domain_is_named_that_has_more_than_its_bounded_share() -> None:
    servers = [server("a", 100), server("b", 130), server("c", 20), server("d", 150)]
    assert {one.url for one in ranked(servers, "a", "r")} == {"https://c.example"}
    assert rooms(servers) == pytest.approx([10.0, 0.0, 90.0, 0.0])


def test_a_suspected_domain_and_one_without_address_are_not_named() -> None:
    servers = [server("a", 10), server("b", 0)._replace(suspected=True), server("c", 0)._replace(url="")]
    assert ranked(servers, "a", "r") == []


def test_a_class_bounds_what_a_domain_that_reports_no_load_attracts() -> None:
    small = server("b", 0, capacity=1_000)
    assert rooms([server("a", 50_000, capacity=100_000), small])[1] <= ROOM_FACTOR * 50_000 / 101


def test_readers_spread_over_domains_as_these_have_room_and_each_is_given_its_own_order_again() -> None:
    servers = [server("a", 3000), server("b", 0), server("c", 500), server("d", 1000)]
    first = Counter(ranked(servers, "a", f"reader {n}")[0].url[8] for n in range(20_000))
    room = dict(zip("abcd", rooms(servers), strict=True))
    for name in "bcd":
        expected = 20_000 * room[name] / (room["b"] + room["c"] + room["d"])
        assert abs(first[name] - expected) < 5 * expected**0.5
    assert ranked(servers, "a", "reader 7") == ranked(list(reversed(servers)), "a", "reader 7")


def test_of_many_domains_the_nearest_are_named_and_others_drawn() -> None:
    servers = [server("own", 10), *(server(f"d{n:02}", 5, delay_ms=float(n)) for n in range(40))]
    named = ranked(servers, "own", "r")
    assert len(named) == ALTERNATIVES_MAX
    assert {f"https://d{n:02}.example" for n in range(8)} <= {one.url for one in named}
    assert all(1 <= one.weight <= 1000 for one in named)


def test_redirects_in_bounded_shares_lead_to_no_domain_above_its_bound() -> None:
    """Ten thousand readers arrive at one of eight domains; each round moves its excess to where the ranking says."""
    at = Counter({"a": 10_000})
    names = list("abcdefgh")
    for turn in range(6):
        servers = [server(name, at[name]) for name in names]
        for name in names:
            share = excess(servers, name) / max(1, at[name])
            move = ReaderMove(f"{name}{turn}", "rp", share, (), 60.0, 0.0, "")
            moving = [n for n in range(at[name]) if is_drawn(move, f"{name} {n}")]
            for reader in moving:
                to = ranked(servers, name, f"{name} {reader}")[0].url[8]
                at[name] -= 1
                at[to] += 1
    assert sum(at.values()) == 10_000
    assert max(at.values()) <= LOAD_FACTOR * 10_000 / 8


def test_the_share_is_drawn_by_session_and_spread_evenly_over_its_time() -> None:
    move = ReaderMove("m", "rp", 0.3, (), 1000.0, 40.0, "")
    drawn = [f"s{n}" for n in range(10_000) if is_drawn(move, f"s{n}")]
    assert 2_800 < len(drawn) < 3_200
    pauses = [pause_s(move, one, 900.0) for one in drawn]
    assert all(0 <= pause < 40 for pause in pauses)
    assert abs(sum(pause < 10 for pause in pauses) / len(pauses) - 0.25) < 0.03
    assert max(pause_s(move, one, 990.0) for one in drawn) < 10, "none is redirected after the end"
    assert (valid_s(move, 990.0), valid_s(move, 1001.0)) == (10.0, 0.0)
