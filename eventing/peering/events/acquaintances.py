"""Administrative events of acquaintances (peering/rules/acquaintances.py)."""

from __future__ import annotations

from eventing.outbox import administrative_events as events
from eventing.outbox.kind import DOMAIN, ON_DOMAIN, EventKind, text
from eventing.peering.rules.acquaintances import AcquaintanceEnd

_NAME = text("the domain's name")

KINDS: dict[str, EventKind] = {
    events.ACQUAINTANCE_BEGUN: EventKind(
        "Events are exchanged with a domain that is no peer, of rendezvous points to which both are admitted.",
        ON_DOMAIN,
        {
            "acquaintance": _NAME,
            "url": text("address of its gateways"),
            "fingerprint": text("kid of its first key, as the directory names it"),
            "reason": text("why, one sentence"),
        },
        effects=(
            {
                "in": DOMAIN,
                "op": "put",
                "at": ["acquaintances", "$acquaintance"],
                "value": {
                    "acquaintance": "$acquaintance",
                    "url": "$url",
                    "fingerprint": "$fingerprint",
                    "since": "@time",
                },
            },
        ),
    ),
    events.ACQUAINTANCE_ENDED: EventKind(
        "Events are no longer exchanged with an acquaintance.",
        ON_DOMAIN,
        {"acquaintance": _NAME, "reason": text("why", of=tuple(AcquaintanceEnd))},
        effects=({"in": DOMAIN, "op": "remove", "at": ["acquaintances", "$acquaintance"]},),
    ),
}
