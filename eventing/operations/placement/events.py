"""Administrative events of placement: decisions and what has become of them, bounds, policy, invitations."""

from __future__ import annotations

from eventing.core.modes import MODES
from eventing.operations.placement.rules.decisions import STATES
from eventing.operations.placement.rules.steps import REASONS
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_BOTH, ON_DOMAIN, EventKind, count, items, moment, obj, or_null, table, text

DOMAINS_MAX = 64
"""Domains of one step, or of a list of bounds."""

_DECISION = obj(
    {
        "id": text("id of the decision"),
        "rp": text("id of the RP"),
        "state": text("what has become of it", of=STATES),
        "reason": text("what it was decided for", of=REASONS),
        "why": text("one sentence"),
        "inputs": table({"type": ["number", "string"]}, "the measurements and estimates that it rests on, by name"),
        "adds": items(text("a domain"), "domains that get a replica", most=DOMAINS_MAX),
        "retires": items(text("a domain"), "domains whose replicas end", most=DOMAINS_MAX),
        "progress": table(
            obj({"state": text("done or failed", of=("done", "failed")), "detail": text("one sentence; may be empty")}),
            "by domain, what was done there",
        ),
        "decided_by": text("identity of the person who decided; empty: the planner by itself, or nobody yet"),
        "detail": text("why it ended so; may be empty"),
        "created_at": moment("when it was proposed"),
        "changed_at": moment("when it last changed"),
    },
    "the decision",
)

_BOUNDS = {
    "mode": text("empty: as the domain, or its setting", of=("", *MODES)),
    "replicas_max": or_null(count("most replicas at other domains; null: the domain's")),
    "histories": or_null(count("histories that share no risk; null: the domain's")),
    "pinned": items(text("a domain"), "domains whose replicas are never retired", most=DOMAINS_MAX),
    "excluded": items(text("a domain"), "domains that are never invited", most=DOMAINS_MAX),
}

KINDS: dict[str, EventKind] = {
    events.PLACEMENT_DECIDED: EventKind(
        "The planner, or a person, proposed a change of the placement of an RP.", ON_BOTH, {"decision": _DECISION}
    ),
    events.PLACEMENT_CHANGED: EventKind(
        "A decision about placement was approved, rejected, begun or carried out, or has expired.",
        ON_BOTH,
        {"decision": _DECISION},
    ),
    events.PLACEMENT_BOUNDED: EventKind(
        "The switch and the bounds of the planner were changed, for an RP or for the domain.",
        ON_BOTH,
        {
            "rp": or_null(text("id of the RP; null for the domain")),
            **_BOUNDS,
            "before": obj(_BOUNDS, "the same members before"),
            "by": text("identity of the person"),
        },
    ),
    events.INVITATIONS_BOUNDED: EventKind(
        "The standing policy for invitations was replaced.",
        ON_DOMAIN,
        {
            "policy": {"type": "object", "description": "the policy, as of GET /api/v1/plan/invitations"},
            "before": {"type": "object", "description": "the policy before"},
            "by": text("identity of the person"),
        },
    ),
    events.INVITATION_ANSWERED: EventKind(
        "Another domain invited this one to hold a replica; the standing policy decided.",
        ON_DOMAIN,
        {
            "home": text("the inviting domain"),
            "rp": text("id of the RP"),
            "reason": text("why it was refused, as a code; empty: it was accepted"),
            "detail": text("why it was refused, one sentence; may be empty"),
        },
    ),
}
