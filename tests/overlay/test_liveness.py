"""Liveness of links: what fails is found in time, and a pause, lost messages or a cut of one's own is not taken for a failure."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from eventing.overlay.links import Disconnect, Reason
from eventing.overlay.liveness import (
    BEAT,
    BEAT_DUE,
    BEAT_S,
    FAILED_S,
    Alive,
    Failed,
    Liveness,
    Probe,
    ProbeFor,
    SignDue,
    SuspectsItself,
)
from eventing.overlay.machine import SendMessage, SetTimer
from eventing.sim.run import SimulationRun
from eventing.sim.scenario import scenario_parse

HEAD = """
title = "t"
domains = 60
renew_records = false
[[measurements]]
kind = "failures"
[[measurements]]
kind = "components"
"""


def failures(text: str, seed: int = 1) -> dict[str, float]:
    scenario = scenario_parse(text.partition("[[")[0] + HEAD + text[len(text.partition("[[")[0]) :], "s", "s")
    return SimulationRun(scenario, seed, Random).go().summaries["failures"]


def linked(*peers: str, now: float = 0.0) -> tuple[Liveness, dict[Any, Any]]:
    made = Liveness()
    for peer in peers:
        made.up(peer, now)
    return made, {peer: f"group of {peer}" for peer in peers}


def due(made: Liveness, timer: Any, now: float, groups: dict[Any, Any]) -> list[Any]:
    out: list[Any] = []
    made.due(timer, now, groups, Random(1), out)
    return out


def judged(made: Liveness, peer: str, at: float, groups: dict[Any, Any], looked_at: float) -> list[Any]:
    """What comes of the deadline of a peer, with looks in between as its timer has them."""
    while looked_at + BEAT_S < at:
        looked_at += BEAT_S
        due(made, BEAT_DUE, looked_at, groups)
    return due(made, SignDue(peer), at, groups)


def test_a_beat_goes_to_peers_that_were_not_heard_lately_and_is_answered() -> None:
    made, groups = linked("a", "b")
    made.heard("a", 2.5)
    out = due(made, BEAT_DUE, 3.6, groups)
    assert [one for one in out if isinstance(one, SendMessage)] == [SendMessage("b", BEAT)]
    answered: list[Any] = []
    made.received("b", BEAT, 4.0, answered)
    made.received("stranger", BEAT, 4.0, answered)
    assert answered == [SendMessage("b", Alive()), SendMessage("stranger", Disconnect(Reason.EVICTED))]


def test_a_silent_peer_is_probed_on_several_ways_and_fails_at_its_time() -> None:
    made, groups = linked("a", "b", "c", "d", "e")
    for peer in "bcde":
        made.heard(peer, 6.0)
    out = due(made, BEAT_DUE, 6.0, groups)
    for peer in "bcde":
        made.heard(peer, 14.0)
    assert SendMessage("a", Probe()) in out
    assert sum(1 for one in out if isinstance(one, SendMessage) and one.message == ProbeFor("a")) == 3
    (timer,) = [one for one in out if isinstance(one, SetTimer) and one.timer == SignDue("a")]
    assert timer.after_s == pytest.approx(FAILED_S - 6.0)
    assert judged(made, "a", FAILED_S, groups, 6.0)[-1] == Failed("a", FAILED_S)
    assert due(made, SignDue("a"), FAILED_S, groups) == []


def test_any_answer_on_any_way_saves_a_silent_peer() -> None:
    for peer, message in (("a", Alive()), ("b", Alive("a"))):
        made, groups = linked("a", "b", "c", "d")
        for other in "bcd":
            made.heard(other, 6.0)
        due(made, BEAT_DUE, 6.0, groups)
        made.heard(peer, 7.0)
        made.received(peer, message, 7.0, [])
        assert due(made, SignDue("a"), FAILED_S, groups) == []


def test_a_domain_that_hears_of_nobody_suspects_itself_and_waits_longer() -> None:
    made, groups = linked("a", "b", "c", "d")
    out = due(made, BEAT_DUE, 7.0, groups)
    assert SuspectsItself(4, 4) in out
    assert not [one for one in judged(made, "a", FAILED_S, groups, 7.0) if isinstance(one, Failed)]
    assert judged(made, "a", 2 * FAILED_S, groups, 14.2) == [Failed("a", 2 * FAILED_S)]


def test_two_groups_that_are_heard_are_witnesses_that_the_others_failed() -> None:
    made, groups = linked(*"abcdefgh")
    made.heard("a", 6.0)
    made.heard("b", 6.0)
    assert not [one for one in due(made, BEAT_DUE, 7.0, groups) if isinstance(one, SuspectsItself)]
    made, groups = linked(*"abcdefgh")
    groups["b"] = groups["a"]
    made.heard("a", 6.0)
    made.heard("b", 6.0)
    assert [one for one in due(made, BEAT_DUE, 7.0, groups) if isinstance(one, SuspectsItself)]


def test_a_domain_that_was_halted_itself_does_not_count_that_time_as_silence() -> None:
    for first in (BEAT_DUE, SignDue("a")):
        made, groups = linked("a", "b", "c", now=100.0)
        due(made, BEAT_DUE, 99.0, groups)
        due(made, BEAT_DUE, 102.5, groups)
        made.heard("b", 106.0)
        made.heard("c", 106.0)
        due(made, BEAT_DUE, 106.0, groups)
        out = due(made, first, 3706.0, groups) + due(made, BEAT_DUE, 3706.0, groups)
        assert not [one for one in out if isinstance(one, (Failed, SuspectsItself))]
        made.heard("b", 3711.0)
        made.heard("c", 3711.0)
        (failed,) = judged(made, "a", 3713.0, groups, 3706.0)
        assert 14.0 <= failed.silent_s <= 17.0


def test_vanished_domains_are_found_within_15_s_by_all_their_links() -> None:
    found = failures('duration_s = 60\n[[faults]]\nkind = "crash"\nat_s = 10\ncount = 6\nsilently = true\n')
    assert found["found"] >= 50
    assert found["not_found"] == 0
    assert found["found_max_s"] <= 15.0
    assert found["false"] == 0


def test_pauses_of_10_s_and_loss_of_5_percent_end_almost_no_link() -> None:
    pauses = 'kind = "pause"\nat_s = 5\ncount = 6\nfor_s = 10\nevery_s = 25\nwithin_s = 10\n'
    assert failures(f"duration_s = 300\n[[faults]]\n{pauses}")["false"] <= 2  # of 860 links of domains that paused
    assert failures('duration_s = 300\n[[faults]]\nkind = "loss"\nshare = 0.05\n')["false"] == 0


def test_a_domain_whose_messages_are_lost_loses_its_links_and_ends_none_of_others() -> None:
    out = failures('duration_s = 60\n[[faults]]\nkind = "one-way"\nat_s = 5\ncount = 1\n')
    assert 6 <= out["false"] <= 40


def test_messages_are_about_one_exchange_for_each_link_and_beat() -> None:
    text = 'title = "t"\ndomains = 60\nrenew_records = false\nduration_s = 100\n[[measurements]]\nkind = "traffic"\n'
    run = SimulationRun(scenario_parse(text, "s", "s"), 1, Random)
    traffic = run.go().summaries["traffic"]
    links = sum(len(run.population.links(domain)) for domain in range(60)) / 60
    assert traffic["Beat_bytes_s"] + traffic["Alive_bytes_s"] < 1.2 * links / BEAT_S * 70
