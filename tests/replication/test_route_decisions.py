"""Decisions about routes: what is believed of links, and when a plan is kept, grown and shrunk."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eventing.overlay.link_rows import PROBABILITY_MAX, MeasuredLink
from eventing.overlay.routing.link_estimates import HALF_LIFE_S
from eventing.replication.rules.known_routes import (
    LINKS_PLANNED_MAX,
    KnownRoutes,
    LinkTrials,
    address_prefix,
    known_routes,
    measured_link,
    traits_of,
)
from eventing.replication.rules.route_decisions import KEPT_S, RouteDecision, routes_decide
from eventing.store import link_tallies

NOW = 1_000_000.0
ALL = ("a", "b", "c", "d")
SURE, POOR = 0.99, 0.7


def known(of: dict[str, float], trials: int = 1024) -> KnownRoutes:
    """A graph of links, by their ends; both ends state each."""
    rows: dict[str, list[MeasuredLink]] = {domain: [] for domain in ALL}
    for ends, probability in of.items():
        for one, other in ((ends[0], ends[1]), (ends[1], ends[0])):
            rows[one].append(MeasuredLink(other, round(probability * PROBABILITY_MAX), 0, 0, trials))
    return known_routes(ALL, rows, {})


def decide(routes: KnownRoutes, target: float, before: RouteDecision | None = None, now: float = NOW) -> RouteDecision:
    return routes_decide(routes, participants=ALL, origins=["a"], target=target, before=before, now=now)


RING = {"ab": SURE, "bc": SURE, "cd": SURE, "ad": SURE}


def test_a_link_that_answers_every_probe_and_drops_events_is_believed_by_its_events() -> None:
    honest = measured_link("b", LinkTrials(100, 0, 10_000, 0), 3.0, 1.0)
    dropping = measured_link("b", LinkTrials(70, 30, 10_000, 0), 3.0, 1.0)
    assert honest.probability > 0.999
    assert 0.5 < dropping.probability < 0.7, "the lower bound of 70 of 100"
    assert not LinkTrials(100, 1, 10_000, 100).probes_doubted
    assert not LinkTrials(4, 3, 10_000, 0).probes_doubted, "too few events to say"


def test_a_link_without_trials_counts_for_nothing() -> None:
    assert measured_link("b", LinkTrials(0, 0, 0, 0), 0.0, 0.0).probability < 0.06


@given(st.integers(0, 10**6), st.integers(0, 10**4), st.floats(-10.0, 10**9), st.floats(-10.0, 10**9))
def test_what_is_stated_of_a_link_never_exceeds_its_bounds(good: int, bad: int, delay: float, jitter: float) -> None:
    link = measured_link("b", LinkTrials(good, bad, good, bad), delay, jitter)
    assert 0 <= link.lower < PROBABILITY_MAX
    assert link.delay_ms >= 0 <= link.jitter_ms
    assert link.trials <= 2 * (good + bad)


def test_neither_end_can_raise_a_link_alone() -> None:
    rows = {"a": [MeasuredLink("b", 999_000, 0, 0, 100)], "b": [MeasuredLink("a", 500_000, 0, 0, 100)]}
    assert known_routes(["a", "b"], rows, {}).probabilities == {("a", "b"): 0.5}


def test_links_to_domains_that_do_not_take_part_are_no_routes() -> None:
    rows = {"a": [MeasuredLink("x", 999_000), MeasuredLink("b", 999_000)]}
    assert list(known_routes(["a", "b"], rows, {}).probabilities) == [("a", "b")]


def test_domains_of_one_network_zone_or_operator_share_a_risk() -> None:
    assert address_prefix("https://192.0.2.77:8000/x") == "192.0.2.0/24"
    assert address_prefix("https://[2001:db8:1:2::3]") == "2001:db8:1::/48"
    assert address_prefix("https://a.example") == address_prefix("http://127.0.0.1:8000") == address_prefix("") == ""
    near = traits_of("https://192.0.2.1", "eu", "", "")
    far = traits_of("https://198.51.100.1", "us", "", "")
    graph = known_routes(["a", "b", "c"], {}, {"a": near, "b": near, "c": far}).graph
    assert sorted(graph.risks) == ["prefix:192.0.2.0/24", "zone:eu"]
    assert "c" not in graph.members


def test_more_than_a_tree_is_chosen_where_a_tree_misses_the_target_and_less_where_it_does_not() -> None:
    tree, ring = decide(known(RING), 0.9), decide(known(RING), 0.999)
    assert len(tree.chosen["a"]) == 3
    assert len(ring.chosen["a"]) == 4
    assert (tree.state, ring.state) == ("met", "met")
    assert min(ring.origins["a"].lower.values()) >= 0.999


def test_a_plan_that_still_meets_its_target_is_kept_though_a_cheaper_one_appeared_and_replaced_later() -> None:
    ring = decide(known(RING), 0.999)
    better = known(dict.fromkeys(RING, 0.9999))
    kept = decide(better, 0.999, ring, NOW + 1)
    assert kept.chosen == ring.chosen
    assert (kept.at, kept.reason) == (ring.at, ring.reason)
    later = decide(better, 0.999, kept, NOW + KEPT_S)
    assert len(later.chosen["a"]) == 3
    assert later.reason == "Fewer links meet the target."


def test_a_plan_that_no_longer_meets_its_target_is_replaced_at_once_and_says_which_link_fell() -> None:
    square = {**RING, "ac": SURE, "bd": SURE}
    before = decide(known(square), 0.999)
    worse = known({**square, "ab": POOR})
    after = decide(worse, 0.999, before, NOW + 1)
    assert ("a", "b") in before.chosen["a"]
    assert after.chosen != before.chosen
    assert after.state == "met"
    assert after.reason == "The link of a and b delivers 0.7, 0.99 before."


def test_nothing_is_decided_anew_while_nothing_changes() -> None:
    ring = decide(known(RING), 0.999)
    assert decide(known(RING), 0.999, ring, NOW + KEPT_S / 2) is ring


def test_what_cannot_be_reached_is_said_with_the_best_and_not_before_the_links_are_measured() -> None:
    settled = decide(known(RING), 0.99999)
    assert settled.state == "missed"
    assert settled.missed["c"].startswith("unreachable: best 0.999")
    early = decide(known(RING, trials=8), 0.99999)
    assert early.state == "unknown"
    silent = known_routes(ALL, {"a": [MeasuredLink("b", 990_000, 0, 0, 1024)]}, {})
    assert decide(silent, 0.9).state == "unknown"
    assert decide(known(RING), 0.99999, early, NOW + 1).state == "missed"


def test_tallies_decay_as_estimates_do() -> None:
    assert link_tallies.HALF_LIFE_S == HALF_LIFE_S


def test_of_many_links_the_best_of_each_domain_are_planned_with() -> None:
    names = [f"d{number:02}" for number in range(60)]
    rows = {
        one: [
            MeasuredLink(other, 900_000 + 1000 * abs(at - to), 0, 0, 1024) for to, other in enumerate(names) if to != at
        ]
        for at, one in enumerate(names)
    }
    found = known_routes(names, {one: [*links[:12], *links[-12:]] for one, links in rows.items()}, {})
    assert len(found.graph.links) <= LINKS_PLANNED_MAX
    assert {end for ends in found.probabilities for end in ends} == set(names)
    assert ("d00", "d59") in found.probabilities
