"""Page of measurements of routes in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from eventing.sim.routes.local_decisions import MISSING, OLD, ROUNDS, LocalResult
from eventing.sim.routes.tables import (
    DELIVERY_TARGET,
    LOCAL_TARGET,
    OPERATOR_SURVIVAL,
    OPERATORS,
    STRICT_TARGET,
    CountedResult,
    DeliveryResult,
    FewestResult,
    StrictResult,
)

HEAD = """# Measurements of routes

Written by `manage.py route_tables {options}`, from seeds: the same command writes the same
page. [reliability.md](reliability.md) explains the terms and the mathematics."""


def page(
    *,
    options: str,
    forms: Sequence[tuple[str, float, float]],
    counted: CountedResult,
    fewest: Sequence[FewestResult],
    local: Sequence[LocalResult],
    search_rounds: int,
    strict: Sequence[StrictResult],
    deliveries: Sequence[DeliveryResult],
    trials: int,
) -> str:
    """Return the page.

    Args:
        options: of the command that measured.
    """
    lines = [
        HEAD.format(options=options),
        "",
        *_evaluator(forms, counted),
        "",
        *_malachi(fewest),
        "",
        *_local(local, search_rounds),
        "",
        *strict_section(strict),
    ]
    return "\n".join([*lines, "", *_deliveries(deliveries, trials)]) + "\n"


def _evaluator(forms: Sequence[tuple[str, float, float]], counted: CountedResult) -> list[str]:
    rows = [f"| {name} | {value:.12f} | {known:.12g} | {abs(value - known):.0e} |" for name, value, known in forms]
    return [
        "## Evaluator",
        "",
        f"{counted.graphs:,} drawn graphs of up to 12 links with shared risks, {counted.receivers:,} receivers: the largest difference from",
        f"counting every combination of failures is {counted.largest:.0e} (wanted: at most 1e-9).",
        "",
        "| graph | computed | published | difference |",
        "|---|--:|--:|--:|",
        *rows,
    ]


def _malachi(fewest: Sequence[FewestResult]) -> list[str]:
    return [
        "## Malachi's two destinations",
        "",
        "Nine links, 512 choices ([reliability.md](reliability.md#worked-example)). All choices with fewer links than the plan were tried: none",
        "meets the target.",
        "",
        "| target | links of the plan | fewest of all choices | reliability of the destination that is reached least |",
        "|--:|--:|--:|--:|",
        *[f"| {one.target:g} | {one.planned} | {one.fewest} | {one.reliability:.6f} |" for one in fewest],
    ]


def _local(local: Sequence[LocalResult], search_rounds: int) -> list[str]:
    best = [min(one.best, one.planned) for one in local]
    rows = [
        f"| {seed} | {least:g} | {one.planned / least:.3f} | {one.first / least:.3f} | {one.first_met:.3f} "
        f"| {one.corrected / least:.3f} | {one.corrected_met:.3f} |"
        for seed, (one, least) in enumerate(zip(local, best, strict=True))
    ]

    def middle(values: list[float]) -> str:
        return f"{median(values):.3f}"

    middles = [
        middle([one.planned / least for one, least in zip(local, best, strict=True)]),
        middle([one.first / least for one, least in zip(local, best, strict=True)]),
        middle([one.first_met for one in local]),
        middle([one.corrected / least for one, least in zip(local, best, strict=True)]),
        middle([one.corrected_met for one in local]),
    ]
    met = sum(one.corrected_met for one in local) / len(local)
    return [
        "## Local decisions",
        "",
        f"Graphs of 30 domains and about 90 links, target {LOCAL_TARGET:g}. Each domain decides from its own map: {MISSING:.0%} of the rows are missing,",
        f"{OLD:.0%} are old; then each corrects {ROUNDS} times. *Cost* is that of all links chosen by either end, divided by the cost of the best choice that",
        f"{search_rounds} rounds of a search with the whole map found (trying all choices of 90 links is impossible). *Met* is the share of receivers whose true",
        f"reliability is at the target. Wanted: a median cost of at most 1.15, and 99 % met; over all graphs {met:.1%} are met.",
        "",
        "| graph | cost of the best choice | cost of the plan with the whole map | cost, first choices | met | cost, corrected | met |",
        "|--:|--:|--:|--:|--:|--:|--:|",
        *rows,
        f"| median | | {' | '.join(middles)} |",
    ]


def strict_section(strict: Sequence[StrictResult]) -> list[str]:
    """Return the section about plans for STRICT_TARGET."""
    met, receivers = sum(one.met for one in strict), sum(one.receivers for one in strict)
    rows = [
        f"| {seed} | {one.links} | {one.planned} | {one.cost:.3f} | {one.met} of {one.receivers} | {one.least:.6f} |"
        for seed, one in enumerate(strict)
    ]
    return [
        f"## Target {STRICT_TARGET:g}",
        "",
        f"Plans for 30 domains with the whole map, target {STRICT_TARGET:g}: {met} of {receivers} receivers meet it ({met / receivers:.1%}; wanted: 99 %).",
        "*Cost* is that of the chosen links as a share of all.",
        "",
        "| graph | links | chosen | cost | receivers that meet the target | reliability of the one that is reached least |",
        "|--:|--:|--:|--:|--:|--:|",
        *rows,
    ]


def _deliveries(deliveries: Sequence[DeliveryResult], trials: int) -> list[str]:
    rows = [
        f"| {one.seed} | {'yes' if one.aware else 'no'} | {one.links} | {one.planned:.5f} | {one.measured:.5f} | {one.sigmas:.1f} | {one.missed} |"
        for one in deliveries
    ]
    return [
        "## Simulated delivery",
        "",
        f"{trials:,} runs over each plan for 30 domains, with independent failures of links and {OPERATORS} operators of several domains, each up",
        f"with {OPERATOR_SURVIVAL:g}; target {DELIVERY_TARGET:g}. Reliabilities are of the receiver that is reached least. *Sigmas* is the largest difference of any of the",
        "29 receivers from its computed reliability, in standard deviations (of 29 receivers one in thirteen plans has one above 3). *Missed* are receivers",
        "below the target by more than three standard deviations.",
        "",
        "| graph | plan knows the operators | links | planned | simulated | sigmas | missed |",
        "|--:|---|--:|--:|--:|--:|--:|",
        *rows,
    ]
