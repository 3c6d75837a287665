"""Results of runs: as data, as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from eventing.core.decoding import converted, json_reader

FORMAT = 1
"""Of the JSON document; raised when a field changes its meaning."""


NOT_MEASURED = float("nan")
"""In JSON null."""


class Series(msgspec.Struct):
    """Samples of one measurement: the times, and for each value as many numbers."""

    at_s: list[float] = msgspec.field(default_factory=list)
    values: dict[str, list[float]] = msgspec.field(default_factory=dict)

    def add(self, at_s: float, values: Mapping[str, float]) -> None:
        """Add one sample; a value that is absent now or was absent before is not a number."""
        for name, value in values.items():
            self.values.setdefault(name, [NOT_MEASURED] * len(self.at_s)).append(value)
        self.at_s.append(round(at_s, 3))
        for of in self.values.values():
            of.extend([NOT_MEASURED] * (len(self.at_s) - len(of)))


class ExpectationOutcome(msgspec.Struct, frozen=True):
    """The outcome of one expectation.

    Attributes:
        expectation: as text.
        holds: whether it was fulfilled.
        value: the value that decided; None if nothing was measured.
        at_s: when it was measured; None: at the end.
    """

    expectation: str
    holds: bool
    value: float | None
    at_s: float | None


class RunResult(msgspec.Struct, kw_only=True):
    """One run.

    Attributes:
        events, messages: inputs that domains handled, messages that they sent.
        summaries: by measurement, values over the whole run.
        series: by measurement, values over time.
        wall_s, cpu_s, events_per_s, memory_bytes: cost of the run, added by callers that have a clock; 0: not measured.
        digest: hash over all messages and events; empty: not made.
        scenario_digest: of the scenario's text, added by reports.
    """

    scenario: str
    title: str
    seed: int
    domains: int
    duration_s: float
    events: int
    messages: int
    summaries: dict[str, dict[str, float]]
    series: dict[str, Series]
    outcomes: list[ExpectationOutcome]
    format: int = FORMAT
    wall_s: float = 0.0
    cpu_s: float = 0.0
    events_per_s: float = 0.0
    memory_bytes: int = 0
    digest: str = ""
    scenario_digest: str = ""

    @property
    def holds(self) -> bool:
        """True if all expectations were fulfilled."""
        return all(outcome.holds for outcome in self.outcomes)


def as_json(results: Sequence[RunResult]) -> bytes:
    """The results as a JSON document."""
    return msgspec.json.encode(list(results)) + b"\n"


_read = json_reader(list[dict[str, Any]])


def from_json(document: bytes) -> list[RunResult]:
    """Read the document that `as_json` makes. Raises Undecodable for any other."""
    raw = _read(document)
    for result in raw:
        for values in result.get("summaries", {}).values():
            values.update({name: NOT_MEASURED for name, value in values.items() if value is None})
        for series in result.get("series", {}).values():
            series["values"] = {
                name: [NOT_MEASURED if one is None else one for one in of] for name, of in series["values"].items()
            }
    return converted(raw, list[RunResult])


def as_text(result: RunResult) -> str:
    """One run as a table."""
    lines = [
        f"{result.scenario}: {result.title}",
        f"{result.domains:,} domains, seed {result.seed}, {result.duration_s:g} s",
    ]
    if result.wall_s:
        lines.append(
            f"{result.events:,} events in {result.wall_s:.1f} s ({result.events_per_s:,.0f} per CPU second), "
            f"{result.memory_bytes / 1e9:.2f} GB"
        )
    lines.append("")
    rows = [
        (f"{measurement}.{name}", number(value))
        for measurement, values in result.summaries.items()
        for name, value in values.items()
    ]
    width = max((len(name) for name, _ in rows), default=0)
    lines += [f"  {name:<{width}}  {value:>12}" for name, value in rows]
    if result.outcomes:
        lines.append("")
    for outcome in result.outcomes:
        at = "" if outcome.at_s is None else f" at {outcome.at_s:g} s"
        value = "nothing was measured" if outcome.value is None else f"{number(outcome.value)}{at}"
        lines.append(f"  {'ok  ' if outcome.holds else 'FAIL'} {outcome.expectation}: {value}")
    return "\n".join(lines)


def number(value: float) -> str:
    """A number for people: whole ones with separators, others with four significant digits."""
    if value != value:
        return "-"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"
