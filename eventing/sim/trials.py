"""Trials: worlds that a seed draws entirely, with faults, liars of one kind, and all checkers on.

A trial has a time of trouble, in which domains crash, pause, restart, are cut off or throttled, messages are lost and liars lie. Then the
faults stop and the liars are honest again; before the time for repairs is over, liveness must hold, twice in a row. Safety must hold all the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eventing.core.decoding import converted
from eventing.overlay.machine import Chance
from eventing.sim.checkers.liveness import SPREAD_S
from eventing.sim.context import MakeChance
from eventing.sim.run import SimulationRun
from eventing.sim.scenario import Scenario

DOMAINS = 200
SETTLE_S = 30
TROUBLE_S = 60
"""Duration of the time of trouble."""
REPAIR_S = 150
"""After the last fault; comparisons of directories are 60 s apart, and several may be needed."""
CHECK_S = 15
"""Between two checks of liveness, from when the last record of the time of trouble must be everywhere. A world ends with the second in a row
that finds nothing wrong."""
FAULTS_MAX = 3

LIARS: tuple[dict[str, Any], ...] = (
    {"kind": "asker", "share": 0.02},
    {"kind": "babbler", "share": 0.02},
    {"kind": "colluder", "share": 0.3},
    {"kind": "colluder", "share": 0.2, "grab": 30.0},
    {"kind": "colluder", "share": 0.2, "refuse": True},
    {"kind": "equivocator", "share": 0.02},
    {"kind": "flapper", "share": 0.1},
    {"kind": "flooder", "share": 0.1, "at_s": 20.0, "victims": 3},
    {"kind": "future-versions", "share": 0.1},
    {"kind": "mute", "share": 0.2},
    {"kind": "replayer", "share": 0.1},
    {"kind": "shuffle-poisoner", "share": 0.2},
    {"kind": "slow-reader", "share": 0.2},
    {"kind": "sybil-sponsor", "share": 0.005, "ids": 100, "within_s": 60.0, "way": "numbers"},
    {"kind": "sybil-sponsor", "share": 0.005, "ids": 100, "within_s": 60.0, "way": "repeated"},
    {"kind": "sybil-sponsor", "share": 0.005, "ids": 100, "within_s": 60.0, "way": "chain"},
)
Drawn = Callable[[Chance], list[dict[str, Any]]]


def trial(seed: int, make_chance: MakeChance, domains: int = DOMAINS) -> Scenario:
    """Draw the scenario of a seed."""
    chance = make_chance(f"{seed} trial")
    faults = [fault for draw in chance.sample(FAULTS, chance.randrange(FAULTS_MAX + 1)) for fault in draw(chance)]
    after = [{"kind": "heal", "at_s": TROUBLE_S}, {"kind": "restart", "share": 1.0, "within_s": 5.0, "at_s": TROUBLE_S}]
    roles = [{**chance.choice(LIARS), "until_s": TROUBLE_S}] if chance.random() < 0.8 else []
    return converted(
        {
            "title": f"Trial {seed}",
            "domains": domains,
            "settle_s": SETTLE_S,
            "duration_s": TROUBLE_S + REPAIR_S,
            "network": {"loss": round(chance.choice((0.0, 0.0, 0.01, 0.05)), 3)},
            "faults": [*faults, *after],
            "roles": roles,
            "measurements": [
                {"kind": "safety", "every_s": 20.0, "domains": 40},
                {
                    "kind": "liveness",
                    "every_s": CHECK_S,
                    "due_s": TROUBLE_S + REPAIR_S,
                    "ends_from_s": TROUBLE_S + SPREAD_S,
                },
            ],
            "name": "trial",
        },
        Scenario,
    )


def trial_run(seed: int, make_chance: MakeChance, domains: int = DOMAINS) -> SimulationRun:
    """Run a trial. Raises CheckFailed."""
    run = SimulationRun(trial(seed, make_chance, domains), seed, make_chance)
    run.go()
    return run


def replay_command(seed: int, domains: int = DOMAINS) -> str:
    """The command that runs a trial again."""
    return f"python manage.py simulate --trial --seed {seed} --domains {domains}"


def _at(chance: Chance) -> float:
    return round(chance.random() * TROUBLE_S * 0.6, 1)


def _share(chance: Chance, most: float) -> float:
    return round(0.01 + chance.random() * (most - 0.01), 3)


def _crash(chance: Chance) -> list[dict[str, Any]]:
    silently = chance.random() < 0.5
    return [{"kind": "crash", "at_s": _at(chance), "share": _share(chance, 0.6), "silently": silently}]


def _restart(chance: Chance) -> list[dict[str, Any]]:
    return [{"kind": "restart", "at_s": _at(chance), "share": _share(chance, 1.0), "of": "all", "within_s": 15.0}]


def _pause(chance: Chance) -> list[dict[str, Any]]:
    return [{"kind": "pause", "at_s": _at(chance), "share": _share(chance, 0.3), "for_s": 20.0}]


def _partition(chance: Chance) -> list[dict[str, Any]]:
    return [{"kind": "partition", "at_s": _at(chance), "shares": [_share(chance, 0.5)]}]


def _one_way(chance: Chance) -> list[dict[str, Any]]:
    return [{"kind": "one-way", "at_s": _at(chance), "share": _share(chance, 0.1)}]


def _throttle(chance: Chance) -> list[dict[str, Any]]:
    return [{"kind": "throttle", "at_s": _at(chance), "share": _share(chance, 0.3), "factor": 20.0}]


def _loss(chance: Chance) -> list[dict[str, Any]]:
    return [{"kind": "loss", "at_s": _at(chance), "share": _share(chance, 0.2)}]


FAULTS: tuple[Drawn, ...] = (_crash, _restart, _pause, _partition, _one_way, _throttle, _loss)
