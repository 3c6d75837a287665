"""All kinds of measurements and roles: each of these modules adds its own to the registries when it is imported."""

from __future__ import annotations

from importlib import import_module

MODULES = (
    "eventing.sim.measurements.topology",
    "eventing.sim.measurements.failures",
    "eventing.sim.measurements.directories",
    "eventing.sim.measurements.suspicions",
    "eventing.sim.measurements.traffic",
    "eventing.sim.measurements.speed",
    "eventing.sim.measurements.broadcasts",
    "eventing.sim.measurements.checks",
    "eventing.sim.measurements.liars",
    "eventing.sim.liars.askers",
    "eventing.sim.liars.babblers",
    "eventing.sim.liars.colluders",
    "eventing.sim.liars.equivocators",
    "eventing.sim.liars.flappers",
    "eventing.sim.liars.flooders",
    "eventing.sim.liars.mutes",
    "eventing.sim.liars.poisoners",
    "eventing.sim.liars.replayers",
    "eventing.sim.liars.sybils",
)


def load() -> None:
    """Import all modules."""
    for module in MODULES:
        import_module(module)
