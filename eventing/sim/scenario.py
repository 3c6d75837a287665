"""Scenario files: TOML that describes a world, its faults, what is measured and what must hold.

docs/simulation/README.md explains every field. Unknown fields, values out of range and names without meaning are refused with their
place. Times are in seconds from the end of settling.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from eventing.core.decoding import Undecodable, converted
from eventing.sim.errors import ScenarioError

BUNDLED = Path(__file__).parent / "scenarios"
DOMAINS_MAX = 100_000  # bound: domains of one world; more are refused
DURATION_S_MAX = 7 * 86_400.0  # bound: simulated seconds of one run; more are refused

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, msgspec.Meta(gt=0.0)]
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=DURATION_S_MAX)]
Count = Annotated[int, msgspec.Meta(ge=1, le=DOMAINS_MAX)]


class ScenarioPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a scenario file."""


class NetworkPlan(ScenarioPart, frozen=True, kw_only=True):
    """The network at the beginning.

    Attributes:
        latency_scale: factor on all times; 1 is the median of 135 ms between PlanetLab hosts, 0 none at all.
        loss: share of messages that are lost without a sign.
        only_outbound: share of domains behind NAT, which call out and cannot be called.
    """

    latency_scale: Annotated[float, msgspec.Meta(ge=0.0, le=100.0)] = 1.0
    loss: Share = 0.0
    only_outbound: Share = 0.0


class Expectation(ScenarioPart, frozen=True, kw_only=True):
    """A condition of a measured value.

    Attributes:
        value: name of a measurement and of one of its values, with a dot between: "components.largest".
        at_least, at_most: bounds of the value, both included.
        at_s: the moment at which it must hold.
        by_s: the latest moment at which it must hold for the first time; the search begins at `from_s`.
        always: it must hold at every sample from `from_s` to `until_s`.
        from_s, until_s: limits of `by_s` and `always`; to the end if absent.
    """

    value: str
    at_least: float | None = None
    at_most: float | None = None
    at_s: Seconds | None = None
    by_s: Seconds | None = None
    always: bool = False
    from_s: Seconds = 0.0
    until_s: Seconds | None = None

    def __post_init__(self) -> None:
        if self.value.count(".") != 1:
            raise ValueError(f"value {self.value!r} is not MEASUREMENT.VALUE")
        if self.at_least is None and self.at_most is None:
            raise ValueError("'at_least' or 'at_most' is missing")
        if (self.at_s is not None) + (self.by_s is not None) + self.always > 1:
            raise ValueError("'at_s', 'by_s' and 'always' exclude each other")

    @property
    def latest_s(self) -> float:
        """The latest moment that the expectation names."""
        return max(self.at_s or 0.0, self.by_s or 0.0, self.until_s or 0.0, self.from_s)

    def holds(self, value: float) -> bool:
        """Return whether a value is within the bounds. NaN is not."""
        above = self.at_least is None or value >= self.at_least
        return above and (self.at_most is None or value <= self.at_most)

    def margin(self, value: float) -> float:
        """Return how far a value is from the nearer bound; below 0 beyond it."""
        above = value - self.at_least if self.at_least is not None else float("inf")
        below = self.at_most - value if self.at_most is not None else float("inf")
        return min(above, below)

    def text(self) -> str:
        """The expectation in words."""
        bounds = [f"≥ {self.at_least:g}"] if self.at_least is not None else []
        bounds += [f"≤ {self.at_most:g}"] if self.at_most is not None else []
        when = ""
        if self.at_s is not None:
            when = f" at {self.at_s:g} s"
        elif self.by_s is not None:
            when = f" by {self.by_s:g} s"
        elif self.always:
            when = " always" + (f" from {self.from_s:g} s" if self.from_s else "")
            when += f" to {self.until_s:g} s" if self.until_s is not None else ""
        return f"{self.value} {' and '.join(bounds)}{when}"


class Scenario(ScenarioPart, frozen=True, kw_only=True):
    """A scenario file.

    Attributes:
        title: one line.
        description: what is tried and why.
        domains: number of domains; the command line may override it.
        duration_s: simulated seconds after settling.
        settle_s: simulated seconds before time 0: links are found, nothing else happens.
        parameters: `suspicious`: links drawn from the directory; `paper`: HyParView as published;
            `placement`: no overlay, but the home of a famous RP and volunteers around the planner's rules; `succession`: no overlay,
            but a home and its electors; `routes`: no overlay, but domains that measure their links and plan for a target reliability.
        start: `settled`: all domains know all records and find their links; `joining`: each knows its sponsor only;
            `apart`: as settled, after a partition into halves of `apart_s`.
        apart_s: duration of the partition before time 0, with `apart`.
        renew_records: whether domains renew their records while the world runs; without, large worlds are much faster.
        suspicion: whether domains monitor and accuse each other over gossip.
        network: the network at the beginning.
        faults, roles, measurements: tables with a `kind` each; fields depend on the kind.
        expectations: what must hold.
        shown: values of summaries that a report shows beside the expectations.
        sizes: further numbers of domains that a report runs, to show how values grow.
        quick_domains: the number of domains with which the scenario still shows its effect; for tests and first tries.
    """

    title: Annotated[str, msgspec.Meta(min_length=1, max_length=120)]
    description: str = ""
    domains: Count = 1000
    sizes: tuple[Count, ...] = ()
    quick_domains: Count = 100
    duration_s: Annotated[float, msgspec.Meta(gt=0.0, le=DURATION_S_MAX)]
    settle_s: Seconds = 60.0
    parameters: Literal["suspicious", "paper", "placement", "routes", "succession"] = "suspicious"
    start: Literal["settled", "joining", "apart"] = "settled"
    apart_s: Seconds = 3600.0
    renew_records: bool = True
    suspicion: bool = False
    network: NetworkPlan = NetworkPlan()
    faults: tuple[dict[str, Any], ...] = ()
    roles: tuple[dict[str, Any], ...] = ()
    measurements: tuple[dict[str, Any], ...] = ()
    expectations: tuple[Expectation, ...] = ()
    shown: tuple[Annotated[str, msgspec.Meta(pattern=r"^[^.]+\.[^.]+$")], ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        if self.parameters != "suspicious" and (self.start == "apart" or self.suspicion):
            raise ValueError("start 'apart' and 'suspicion' need directories: parameters 'suspicious'")


def scenario_path(given: str) -> Path:
    """The file of a scenario: a path, or the name of a bundled one. Raises ScenarioError if there is neither."""
    path = Path(given)
    if path.suffix == ".toml" and path.is_file():
        return path
    bundled = BUNDLED / f"{given}.toml"
    if bundled.is_file():
        return bundled
    names = ", ".join(bundled_names())
    raise ScenarioError(f"There is no scenario {given!r}. Give the path of a .toml file, or one of: {names}")


def bundled_names() -> list[str]:
    """Names of the bundled scenarios."""
    return sorted(path.stem for path in BUNDLED.glob("*.toml"))


def scenario_read(path: Path) -> Scenario:
    """Read a scenario file. Raises ScenarioError with the place and the reason."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: {error}") from None
    return scenario_parse(text, path.stem, str(path))


def scenario_parse(text: str, name: str, where: str) -> Scenario:
    """Parse the text of a scenario file."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{where}: not TOML: {error}") from None
    try:
        return converted(document | {"name": document.get("name", name)}, Scenario)
    except Undecodable as error:
        raise ScenarioError(f"{where}: {error}") from None


def moments(expectations: Sequence[Expectation], measurement: str) -> list[float]:
    """The moments at which a measurement is sampled for the sake of expectations."""
    at = {
        moment
        for one in expectations
        if one.value.split(".")[0] == measurement
        for moment in (one.at_s, one.by_s, one.until_s)
        if moment is not None
    }
    return sorted(at)
