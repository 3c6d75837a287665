"""Ability of a holder to deliver a shared subscription to an endpoint, and the consequences for its turn. Pure.

The machine of takeover (overlay/takeover.py) presumes that each holder can deliver. For events that are pulled each can.
An endpoint is stated by its owner at each holder, must consent there, and may be out of reach of one holder only: a holder
that cannot deliver does not renew its lease and does not take over, so that the next one does.

| the endpoint here | while this holder delivers | while no holder does |
|---|---|---|
| is called without a wait | renews | takes over in its turn |
| failed, and is called again within a lease | renews | takes over in its turn, once the attempt is due |
| failed, and is called again later | lets its lease expire | the same |
| none, without consent, paused, gone | lets its lease expire | does not take over |

So where the endpoint fails at every holder, each makes the attempts of its own retry schedule.
"""

from __future__ import annotations

from typing import NamedTuple

from eventing.overlay.takeover import HolderStanding, TakeoverRules, delivers


class EndpointAbility(NamedTuple):
    """An endpoint that has consented here; `next_ms` is the next attempt after a failure, Unix milliseconds; 0: no wait."""

    next_ms: int = 0


def is_held_back(
    rules: TakeoverRules, me: str, standing: HolderStanding, endpoint: EndpointAbility | None, now_ms: int
) -> bool:
    """Return True if this holder takes its next step, a beat or a takeover, not now.

    Args:
        endpoint: None for one that events cannot be sent to.
    """
    if endpoint is None:
        return True
    wait_ms = endpoint.next_ms - now_ms
    return wait_ms > rules.lease_ms if delivers(standing, me, now_ms) else wait_ms > 0
