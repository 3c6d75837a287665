"""Plots of runs: each measurement that names values to `plot` becomes a picture of these over time, one line for each seed.

Matplotlib is needed for this alone (requirements/plots.txt), and is imported when a plot is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eventing.sim.errors import ScenarioError
from eventing.sim.results import RunResult
from eventing.sim.scenario import Scenario

WIDTH_IN, HEIGHT_IN = 7.0, 2.2
"""Size of one plot, in inches."""


def plots_write(scenario: Scenario, results: Sequence[RunResult], into: Path, file_format: str = "svg") -> list[Path]:
    """Draw all plots of a scenario; the files that were written. Raises ScenarioError without Matplotlib."""
    wanted = [
        (str(item.get("name") or item["kind"]), list(item["plot"]))
        for item in scenario.measurements
        if item.get("plot")
    ]
    pyplot = _pyplot()
    into.mkdir(parents=True, exist_ok=True)
    written = []
    for measurement, values in wanted:
        path = into / f"{scenario.name}-{measurement}.{file_format}"
        _draw(pyplot, results, measurement, values, path, _moments(scenario))
        written.append(path)
    return written


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise ScenarioError(
            "Plots need Matplotlib, which is not installed: pip install -r requirements/plots.txt, or leave out --plot."
        ) from None
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "herald"  # the same file for the same values
    from matplotlib import pyplot

    return pyplot


def _moments(scenario: Scenario) -> list[tuple[float, str]]:
    return [(float(item.get("at_s", 0.0)), str(item["kind"])) for item in scenario.faults]


def _draw(
    pyplot: Any,
    results: Sequence[RunResult],
    measurement: str,
    values: list[str],
    path: Path,
    moments: list[tuple[float, str]],
) -> None:
    figure, axes = pyplot.subplots(
        len(values), 1, sharex=True, squeeze=False, figsize=(WIDTH_IN, HEIGHT_IN * len(values)), layout="constrained"
    )
    for axis, value in zip(axes[:, 0], values, strict=True):
        for result in results:
            series = result.series.get(measurement)
            numbers = series.values.get(value, []) if series is not None else []
            if series is not None and numbers:
                axis.plot(series.at_s, numbers, linewidth=1.2, label=f"seed {result.seed}")
        for at_s, _ in moments:
            axis.axvline(at_s, color="0.6", linewidth=0.8, linestyle="--")
        axis.set_ylabel(value.replace("_", " "))
        axis.grid(alpha=0.3)
        axis.margins(x=0.01)
    for at_s, kind in moments:
        axes[0, 0].annotate(kind, (at_s, 1.0), xycoords=("data", "axes fraction"), fontsize=7, color="0.4", va="bottom")
    axes[-1, 0].set_xlabel("seconds")
    if len(results) > 1:
        axes[0, 0].legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
