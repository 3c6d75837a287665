"""Estimates of links: what is planned with is what the observations support, and no more."""

from __future__ import annotations

from math import comb

import pytest

from eventing.overlay.routing.incomplete_beta import beta_cdf, beta_quantile
from eventing.overlay.routing.link_estimates import (
    HALF_LIFE_S,
    LinkEstimate,
    contradicts_plan,
    decayed,
    observed,
    stepped,
)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 5), (10, 3), (40, 40), (1, 60), (200, 3)])
@pytest.mark.parametrize("x", [0.001, 0.05, 0.3, 0.5, 0.9, 0.999])
def test_the_distribution_of_whole_parameters_is_a_binomial_sum(a: int, b: int, x: float) -> None:
    n = a + b - 1
    expected = sum(comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))
    assert beta_cdf(a, b, x) == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize(
    ("a", "b", "probability", "published"),
    [
        # F(5 %; 2a, 2b degrees of freedom) tables, by x = a F / (b + a F): F(4, 10) = 3.478 and F(10, 10) = 2.978
        (2, 5, 0.95, 2 * 3.478 / (5 + 2 * 3.478)),
        (5, 5, 0.95, 5 * 2.978 / (5 + 5 * 2.978)),
    ],
)
def test_quantiles_agree_with_published_tables(a: int, b: int, probability: float, published: float) -> None:
    assert beta_quantile(a, b, probability) == pytest.approx(published, abs=1e-4)


@pytest.mark.parametrize("a", [1.0, 3.0, 59.0, 1e4, 1e7])
def test_quantiles_of_a_power_have_their_closed_form(a: float) -> None:
    assert beta_quantile(a, 1.0, 0.05) == pytest.approx(0.05 ** (1.0 / a), abs=1e-9)


def test_a_quantile_of_many_observations_is_found() -> None:
    estimate = observed(LinkEstimate(), 0.0, delivered=9.99e8, lost=1e6)
    assert 0.99899 < estimate.planned < estimate.mean < 0.9991


def test_little_knowledge_counts_as_a_poor_link() -> None:
    assert LinkEstimate().planned == pytest.approx(0.05)
    assert observed(LinkEstimate(), 0.0, delivered=58).planned == pytest.approx(0.05 ** (1 / 59))
    assert observed(LinkEstimate(), 0.0, delivered=2_995).planned > 0.999
    assert observed(LinkEstimate(), 0.0, delivered=990, lost=10).planned < 0.99


def test_half_of_an_observation_is_left_after_a_day() -> None:
    estimate = observed(LinkEstimate(), 1_000.0, delivered=80, lost=20)
    later = decayed(estimate, 1_000.0 + HALF_LIFE_S)
    assert (later.delivered, later.lost) == pytest.approx((40, 10))
    assert later.planned < estimate.planned
    assert decayed(later, 5.0) == later  # a clock that was set back


def test_a_link_that_turns_bad_is_found_out_within_a_day() -> None:
    estimate = observed(LinkEstimate(), 0.0, delivered=20_000)
    for hour in range(1, 25):
        estimate = observed(estimate, hour * 3_600.0, delivered=600, lost=200)
    assert estimate.planned < 0.9


def test_delay_and_jitter_follow_and_absurd_delays_do_not_count() -> None:
    estimate = observed(LinkEstimate(), 0.0, delivered=1, delay_s=0.1)
    assert (estimate.delay_s, estimate.jitter_s) == (0.1, 0.05)
    for absurd in (-1.0, 1e9, float("nan"), float("inf")):
        assert observed(estimate, 1.0, delay_s=absurd).delay_s == 0.1
    for at in range(100):
        estimate = observed(estimate, float(at), delivered=1, delay_s=0.2)
    assert estimate.delay_s == pytest.approx(0.2, abs=1e-4)
    assert estimate.jitter_s < 1e-3


def test_estimates_that_differ_little_are_stated_as_the_same_and_never_as_better() -> None:
    assert stepped(0.9951) == stepped(0.9957) <= 0.9951
    assert [stepped(of) for of in (0.0, 0.05, 0.9, 0.99)] == pytest.approx([0.0, 0.0, 0.9, 0.99], abs=1e-9)
    assert 0.999999998 < stepped(1.0) < 1.0


def test_absurd_counts_change_nothing_or_are_bounded() -> None:
    assert observed(LinkEstimate(), 0.0, delivered=float("nan"), lost=-5.0).planned == pytest.approx(0.05)
    assert 0.0 < observed(LinkEstimate(), 0.0, lost=float("inf")).mean < 1e-8


def test_a_link_that_drops_data_and_answers_probes_is_contradicted_by_what_arrives() -> None:
    assert contradicts_plan(0.999, 700, 1_000)
    assert not contradicts_plan(0.999, 998, 1_000)
    assert not contradicts_plan(0.999, 9, 10)  # one loss of ten may be chance
    assert contradicts_plan(0.999, 0, 10)
    assert not contradicts_plan(0.999, 0, 0)
