"""Administrative events of the overlay. No state holds what they report: /api/v1/overlay shows it."""

from __future__ import annotations

from eventing.membership.services.happenings import NAMED_MAX
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_DOMAIN, EventKind, count, items, or_null, text, truth

_NAMES = text("a domain's name")

KINDS: dict[str, EventKind] = {
    events.OVERLAY_JOINED: EventKind(
        "This domain takes part in an overlay.",
        ON_DOMAIN,
        {
            "sponsor": or_null(text("the peer that sponsored this domain; null: it founded the overlay")),
            "founder": text("the founder at which the chain of sponsors ends"),
        },
    ),
    events.OVERLAY_LEFT: EventKind("This domain takes part in the overlay no more.", ON_DOMAIN, {}),
    events.OVERLAY_LINK_MADE: EventKind(
        "An overlay link with a domain stands.",
        ON_DOMAIN,
        {
            "peer": text("the other domain"),
            "chosen": truth("this domain chose the link; else the other one did"),
            "anchor": truth("the other domain is an approved peer"),
            "reason": text("why it was made", of=("anchor", "chosen", "accepted", "rotated")),
            "replaces": or_null(text("the domain whose link it replaces")),
        },
    ),
    events.OVERLAY_LINK_DROPPED: EventKind(
        "An overlay link with a domain ended.",
        ON_DOMAIN,
        {
            "peer": text("the other domain"),
            "reason": text(
                "why it ended", of=("transport", "silent", "evicted", "leaving", "quarantine", "rotated", "stopped")
            ),
            "replaced_by": or_null(text("the domain whose link replaces it")),
        },
    ),
    events.OVERLAY_DIRECTORY_CHANGED: EventKind(
        "Domains were admitted to the directory of the overlay, or their records expired.",
        ON_DOMAIN,
        {
            "admitted": items(_NAMES, "the first of them", most=NAMED_MAX),
            "expired": items(_NAMES, "the first of them", most=NAMED_MAX),
            "admitted_count": count("domains admitted"),
            "expired_count": count("domains whose records expired"),
        },
    ),
    events.OVERLAY_SPONSORSHIP_GRANTED: EventKind(
        "This domain sponsored a peer, which may join the overlay with it.",
        ON_DOMAIN,
        {
            "domain": text("the peer"),
            "day": count("day since 1970 of the sponsorship"),
            "number": count("number of that day"),
        },
    ),
    events.OVERLAY_SPONSORSHIP_REFUSED: EventKind(
        "A peer asked for sponsorship and was refused.",
        ON_DOMAIN,
        {"domain": text("the peer"), "reason": text("one sentence")},
    ),
    events.OVERLAY_EQUIVOCATION: EventKind(
        "A domain of the directory signed contradictory statements; it gets no links here.",
        ON_DOMAIN,
        {"domain": text("the domain"), "detail": text("what it signed, one sentence")},
    ),
    events.OVERLAY_SELF_SUSPECTED: EventKind(
        "So many overlay links were silent at once that this domain suspects itself, and waits longer before it drops one.",
        ON_DOMAIN,
        {"silent": count("links that were silent"), "links": count("links that stand")},
    ),
}
