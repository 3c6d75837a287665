"""Turns of holders that cannot deliver to an endpoint."""

from __future__ import annotations

from collections.abc import Mapping

from eventing.overlay import takeover
from eventing.overlay.takeover import HolderStanding, TakeoverRules
from eventing.subscriptions.rules.delivery_ability import EndpointAbility, is_held_back

RULES = TakeoverRules(("a", "b", "c"), 10_000)
WELL = EndpointAbility()


def turns(
    holders: Mapping[str, EndpointAbility | None], standings: dict[str, HolderStanding], now_ms: int, for_s: int
) -> list[str]:
    """Let time pass by seconds, every line reaching every holder; return who delivered, without repetition."""
    found: list[str] = []
    for at_ms in range(now_ms, now_ms + for_s * 1000, 1000):
        for me, endpoint in holders.items():
            before = standings[me]
            if is_held_back(RULES, me, before, endpoint, at_ms):
                continue
            after = takeover.tick(RULES, me, before, at_ms)
            if after == before:
                continue
            standings[me] = after
            line = takeover.DeliveryLine(after.term, me, after.beat, after.until_ms - at_ms)
            for other in standings:
                if other != me:
                    standings[other] = takeover.on_line(RULES, other, standings[other], line, at_ms)
        now = [me for me in holders if takeover.delivers(standings[me], me, at_ms)]
        assert len(now) <= 1
        if now and now[0] not in found[-1:]:
            found.append(now[0])
    return found


def begun(now_ms: int) -> dict[str, HolderStanding]:
    """Return the standings of a subscription that a begins to deliver."""
    first = takeover.first(RULES, "a", now_ms)
    return {
        "a": first,
        "b": HolderStanding(1, "a", 1, now_ms + 10_000),
        "c": HolderStanding(1, "a", 1, now_ms + 10_000),
    }


def test_a_holder_without_an_endpoint_is_passed_over() -> None:
    assert turns({"a": None, "b": None, "c": WELL}, begun(0), 0, 60) == ["a", "c"]


def test_with_no_endpoint_anywhere_nobody_delivers() -> None:
    standings = begun(0)
    turns({"a": None, "b": None, "c": None}, standings, 0, 120)
    assert not any(takeover.delivers(standing, me, 120_000) for me, standing in standings.items())


def test_one_whose_endpoint_is_called_again_much_later_hands_over_to_one_whose_is_not_failing() -> None:
    standings = begun(0)
    assert turns({"a": WELL, "b": None, "c": WELL}, standings, 0, 60) == ["a"]
    soon, late = EndpointAbility(70_000), EndpointAbility(360_000)
    assert turns({"a": soon, "b": None, "c": WELL}, dict(standings), 60_000, 30) == ["a"]
    assert turns({"a": late, "b": None, "c": WELL}, standings, 60_000, 60) == ["a", "c"]


def test_where_the_endpoint_fails_everywhere_each_holder_makes_the_attempts_of_its_schedule() -> None:
    standings = begun(0)
    turns({"a": None, "b": None, "c": None}, standings, 0, 30)
    failing = {"a": EndpointAbility(300_000), "b": EndpointAbility(100_000), "c": EndpointAbility(200_000)}
    assert turns(failing, dict(standings), 30_000, 60) == [], "none is due"
    assert turns(failing, standings, 30_000, 100) == ["b"]
    failing["b"] = EndpointAbility(10_000_000)
    assert turns(failing, standings, 130_000, 120) == ["b", "c"]
    failing["c"] = EndpointAbility(10_000_000)
    assert turns(failing, standings, 250_000, 120) == ["c", "a"]
