"""Administrative events of decisions about routes: changed links, and targets that are missed or met again."""

from __future__ import annotations

from typing import Any

from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox
from eventing.replication.rules.route_decisions import ROUTES_SHOWN_MAX, RouteDecision


def decision_report(rp: str, before: RouteDecision | None, decision: RouteDecision, mode: str, outbox: Outbox) -> None:
    """Report what a decision changes; nothing where links and state are as before.

    Args:
        mode: in force at the RP: without effect in mode advise.
    """
    if before is None or before.chosen != decision.chosen or before.target != decision.target:
        outbox.event(events.ROUTES_PLANNED, rp, _planned(rp, decision, mode), domain_too=True)
    was = None if before is None else before.state
    if decision.state == "missed" and (was != "missed" or (before is not None and before.missed != decision.missed)):
        data = {"rp": rp, "target": decision.target, "missed": decision.missed}
        outbox.event(events.RELIABILITY_MISSED, rp, data, domain_too=True)
    elif was == "missed" and decision.state != "missed":
        data = {"rp": rp, "target": decision.target, "state": decision.state}
        outbox.event(events.RELIABILITY_RECOVERED, rp, data, domain_too=True)


def _planned(rp: str, decision: RouteDecision, mode: str) -> dict[str, Any]:
    chosen = [
        {"origin": origin, "ends": list(ends)} for origin, links in sorted(decision.chosen.items()) for ends in links
    ]
    return {
        "rp": rp,
        "target": decision.target,
        "mode": mode,
        "state": decision.state,
        "reason": decision.reason,
        "routes": chosen[:ROUTES_SHOWN_MAX],
        "known": [{"ends": [a, b], "delivery": round(probability, 6)} for a, b, probability in decision.probabilities][
            :ROUTES_SHOWN_MAX
        ],
    }
