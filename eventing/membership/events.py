"""Administrative events of the overlay. No state holds what they report: /api/v1/overlay shows it."""

from __future__ import annotations

from eventing.membership.services.happenings import ACCUSERS_MAX, EFFECTS, NAMED_MAX
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_DOMAIN, EventKind, count, items, number, or_null, text, truth

_NAMES = text("a domain's name")
_SCORE = {"type": "number", "minimum": -10, "maximum": 1, "description": "the score: from -10 to 1"}
_REGION = text("id of the rendezvous points that the same domains share; empty: of the link itself")

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
            "rtt_ms": or_null(number("round-trip time of the request for it; null: the other domain asked")),
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
    events.OVERLAY_SUSPECTED: EventKind(
        "A domain does not answer its monitors, and has not rebutted that: it is not chosen for replicas and eager links.",
        ON_DOMAIN,
        {
            "domain": text("the domain"),
            "accusers": items(_NAMES, "monitors that accuse it", most=ACCUSERS_MAX),
        },
    ),
    events.OVERLAY_SUSPICION_ENDED: EventKind(
        "A domain is suspected no longer.",
        ON_DOMAIN,
        {
            "domain": text("the domain"),
            "reason": text("rebutted: it has answered; withdrawn: too few accuse it", of=("rebutted", "withdrawn")),
        },
    ),
    events.OVERLAY_SUSPICION_REBUTTED: EventKind(
        "Monitors accused this domain of being silent, and it has rebutted that.",
        ON_DOMAIN,
        {"accusers": items(_NAMES, "monitors that accused it", most=ACCUSERS_MAX)},
    ),
    events.OVERLAY_ACCUSATIONS_PAUSED: EventKind(
        "So many of the domains that this one observes are silent that it suspects itself, and accuses nobody.",
        ON_DOMAIN,
        {"silent": count("domains that do not answer"), "observed": count("domains that it observes")},
    ),
    events.OVERLAY_ACCUSATIONS_RESUMED: EventKind(
        "This domain suspects itself no longer, and accuses silent domains again.", ON_DOMAIN, {}
    ),
    events.OVERLAY_ROWS_CONTRADICT: EventKind(
        "A domain signed two contradictory rows of one version for a gossip object; neither counts.",
        ON_DOMAIN,
        {
            "domain": text("the domain"),
            "object": text("the gossip object"),
            "version": count("version of both rows: seconds since 1970"),
        },
    ),
    events.OVERLAY_SCORE_EFFECT: EventKind(
        "A domain serves so badly that this follows: demoted: its eager links become lazy; not-chosen: it gets no further "
        "links and replicas; condemned: its overlay link is dropped.",
        ON_DOMAIN,
        {
            "peer": text("the domain"),
            "region": _REGION,
            "effect": text("what follows", of=EFFECTS),
            "score": _SCORE,
            "reason": text("the fault that weighs most, one sentence"),
            "back_off_s": or_null(number("seconds for which it gets no link; null: for other effects")),
        },
    ),
    events.OVERLAY_SCORE_PARDONED: EventKind(
        "An effect of a domain's score has ended, as it has recovered.",
        ON_DOMAIN,
        {
            "peer": text("the domain"),
            "region": _REGION,
            "effect": text("what has ended", of=EFFECTS),
            "score": _SCORE,
        },
    ),
    events.OVERLAY_QUEUES_FULL: EventKind(
        "So many domains do not take what waits for them that this domain sends more than it can; nobody is scored for it.",
        ON_DOMAIN,
        {"full": count("domains that do not take what waits"), "links": count("domains that are forwarded to")},
    ),
}
