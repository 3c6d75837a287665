"""Measurements: observers of a run that give numbers over time and at the end.

To add one: a struct with its parameters as fields, with its `kind`, listed in catalogue.py.
Its `begin` is called before any domain is made, so it can subscribe to events (`run.on`), to messages (`run.on_message`), wrap domains
(`run.wrap`) and schedule actions (`run.at`). What it gathers is kept in a probe, which `begin` returns.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Protocol

import msgspec

from eventing.sim.context import SimulationContext

Values = dict[str, float]


class MeasurementProbe(Protocol):
    """The state of one measurement in one run."""

    def sample(self) -> Values:
        """Values now; called every `every_s` of simulated time and at the moments of expectations."""

    def summary(self) -> Values:
        """Values over the whole run, called once at the end."""


class Measurement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table `[[measurements]]` of a scenario file.

    Attributes:
        name: of its values in expectations, tables and plots; the kind if absent.
        every_s: simulated seconds between two samples.
        plot: values to draw over time; none: no plot.
    """

    kind: ClassVar[str]
    name: str = ""
    every_s: Annotated[float, msgspec.Meta(gt=0.0)] = 10.0
    plot: tuple[str, ...] = ()

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run before its domains are made."""
        raise NotImplementedError


def percentile(ordered: list[float], share: float) -> float:
    """The value below which a share of sorted values is (nearest rank); NaN of none."""
    if not ordered:
        return float("nan")
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
