"""Events of gossip, suspicion and scores as they are reported."""

from __future__ import annotations

from typing import Any

from eventing.membership.services.happenings import (
    AccusationsPaused,
    AccusationsResumed,
    DomainSuspected,
    DomainSuspicionEnded,
    Happening,
    OwnSuspicionRebutted,
    QueuesAreFull,
    RowsContradict,
    ScoreEffect,
    ScorePardoned,
)
from eventing.overlay.gossip import RowsConflict
from eventing.overlay.scores import Condemned, Demoted, NotChosen, OwnQueuesFull, Pardoned
from eventing.overlay.suspicion import AccusesAgain, AccusesNobody, Rebutted, Suspected, SuspicionEnded

EFFECT_NAMES = {"Demoted": "demoted", "NotChosen": "not-chosen", "Condemned": "condemned"}
"""Names of effects in answers and events, by their classes' names."""


def happening_of(event: Any) -> Happening | None:
    """Return what is reported of a machine's event; None for events that are not."""
    match event:
        case Suspected():
            return DomainSuspected(event.domain, event.accusers)
        case SuspicionEnded():
            return DomainSuspicionEnded(event.domain, event.why)
        case Rebutted():
            return OwnSuspicionRebutted(event.accusers)
        case AccusesNobody():
            return AccusationsPaused(event.silent, event.targets)
        case AccusesAgain():
            return AccusationsResumed()
        case RowsConflict():
            return RowsContradict(event.owner, event.object, event.rows[0].version)
        case Demoted() | NotChosen():
            return ScoreEffect(event.peer, event.region, _name(event), round(event.score, 2), event.reason)
        case Condemned():
            return ScoreEffect(
                event.peer, event.region, _name(event), round(event.score, 2), event.reason, round(event.back_off_s, 1)
            )
        case Pardoned():
            return ScorePardoned(event.peer, event.region, EFFECT_NAMES[event.of], round(event.score, 2))
        case OwnQueuesFull():
            return QueuesAreFull(event.full, event.links)
        case _:
            return None


def _name(effect: Any) -> str:
    return EFFECT_NAMES[type(effect).__name__]
