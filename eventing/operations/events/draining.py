"""Administrative events of draining."""

from __future__ import annotations

from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_DOMAIN, EventKind, count, moment, text

KINDS: dict[str, EventKind] = {
    events.DOMAIN_DRAINING: EventKind(
        "A drain of the domain began, everything was handed over, or it was ended.",
        ON_DOMAIN,
        {
            "state": text("what became of it", of=("draining", "done", "ended")),
            "until": moment("its end"),
            "by": text("identity of the administrator"),
            "handed_over": count("homes handed over so far"),
        },
    ),
}
