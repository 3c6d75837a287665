"""Administrative events of intakes: created, changed, deleted. They are part of no state."""

from __future__ import annotations

from eventing.core.shapes import closed_schema
from eventing.intakes.shapes import IntakeData
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_BOTH, EventKind, text

_DATA = {"intake": closed_schema(IntakeData, "the intake after the change")}

KINDS: dict[str, EventKind] = {
    events.INTAKE_CREATED: EventKind("An intake of webhooks was created.", ON_BOTH, _DATA),
    events.INTAKE_CHANGED: EventKind("An intake was changed; a change of its secret does not show it.", ON_BOTH, _DATA),
    events.INTAKE_DELETED: EventKind(
        "An intake was deleted, has expired, or has ended with its rendezvous point.",
        ON_BOTH,
        {**_DATA, "reason": text("why", of=("deleted", "lease-expired", "rp-ended"))},
    ),
}
