"""Administrative events of operators' actions without a kind of their own: pauses, disconnections, retries, keys,
revocations.
"""

from __future__ import annotations

from eventing.access.shapes import KeyData, RevocationAnswer
from eventing.core.shapes import closed_schema
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_BOTH, ON_DOMAIN, EventKind, count, text, truth
from eventing.peering.events.peers import peer
from eventing.rps.events import RECENT_CHANGED, ROW, RP_PUT

_BY = text("identity of the operator")
_REASON = text("reason, for people; may be empty")
_KEY = closed_schema(KeyData, "the signing key after the change, without its secret")
_REVOCATION = closed_schema(RevocationAnswer, "the revocation")

KINDS: dict[str, EventKind] = {
    events.RP_PAUSED: EventKind(
        "Events are refused at the RP until it is resumed.",
        ON_BOTH,
        {"rp": ROW, "by": _BY},
        effects=(*RP_PUT, RECENT_CHANGED),
    ),
    events.RP_RESUMED: EventKind(
        "Events are accepted at the RP again.", ON_BOTH, {"rp": ROW, "by": _BY}, effects=(*RP_PUT, RECENT_CHANGED)
    ),
    events.SESSIONS_DISCONNECTED: EventKind(
        "Sessions were disconnected by an operator.",
        ON_DOMAIN,
        {
            "count": count("sessions closed"),
            "retry": truth("whether their clients were asked to connect again"),
            "by": _BY,
            "reason": _REASON,
            "principal": text("identity of the principal, if a principal's sessions were closed"),
            "rp": text("id of the RP, if its readers' sessions were closed"),
            "session": text("id of the session, if only one was closed"),
        },
        optional=frozenset({"principal", "rp", "session"}),
    ),
    events.PEER_RETRIED: peer("Delivery to a peer is retried at once.", by=_BY),
    events.PEER_REPLAYED: EventKind(
        "Events that a peer may have lost are offered to it again.",
        ON_DOMAIN,
        {
            "peer": text("the peer's name"),
            "rp": text("id of the RP"),
            "after": text("the cursor after which all events are offered again; earliest: all held events"),
            "by": _BY,
        },
    ),
    events.KEY_ROTATED: EventKind("The next signing key was made and published.", ON_DOMAIN, {"key": _KEY, "by": _BY}),
    events.KEY_RETIRED: EventKind(
        "A key and all tokens that it signed were invalidated at once.",
        ON_DOMAIN,
        {"key": _KEY, "by": _BY, "reason": _REASON},
    ),
    events.REVOCATION_MADE: EventKind("A credential was revoked.", ON_DOMAIN, {"revocation": _REVOCATION}),
    events.REVOCATION_LIFTED: EventKind(
        "The revocation of a subject was lifted.",
        ON_DOMAIN,
        {"revocation": _REVOCATION, "by": text("identity of the operator who lifted it")},
    ),
}
