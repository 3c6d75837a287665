"""Progress of long runs, for people who wait: simulated time, speed, remaining time."""

from __future__ import annotations

from collections.abc import Callable

from eventing.sim.context import SimulationContext


class SimulationProgress:
    """Lines about a run.

    Args:
        clock: seconds of a steady clock.
        write: shows one line.
        every_s: seconds between two lines.
    """

    def __init__(self, clock: Callable[[], float], write: Callable[[str], None], every_s: float) -> None:
        self._clock = clock
        self._write = write
        self._every_s = every_s
        self._shown_at = self._began_at = clock()
        self._handled = 0

    def __call__(self, run: SimulationContext) -> None:
        """Show a line if one is due."""
        now = self._clock()
        if now - self._shown_at < self._every_s:
            return
        rate = (run.world.handled - self._handled) / (now - self._shown_at)
        self._shown_at, self._handled = now, run.world.handled
        whole_s = run.scenario.settle_s + run.scenario.duration_s
        done = run.world.now / whole_s
        left_s = (now - self._began_at) * (1.0 - done) / done if done else float("nan")
        self._write(
            f"{run.scenario.name}: {run.time:,.0f} of {run.scenario.duration_s:,.0f} s simulated, {rate:,.0f} events/s, "
            f"{len(run.running):,} of {run.scenario.domains:,} domains run, about {_span(left_s)} left"
        )


def _span(seconds: float) -> str:
    if seconds != seconds:
        return "?"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
