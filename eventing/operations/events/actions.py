"""What operators do by hand, and is not told by another kind: pauses, disconnections, retries, keys, revocations."""

from __future__ import annotations

from eventing.access.rules.revocations import KINDS as REVOCATION_KINDS
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_BOTH, ON_DOMAIN, Kind, count, moment, obj, or_null, text, truth
from eventing.peering.events.peers import peer
from eventing.rps.events import RECENT_CHANGED, ROW, RP_PUT

_BY = text("identity of who did it")
_REASON = text("why, for people; may be empty")
_KEY = obj(
    {
        "kid": text("RFC 7638 thumbprint"),
        "not_before": moment("when it begins to sign"),
        "not_after": or_null(moment("when what it signed is no longer good; null while nobody has set an end")),
        "created_at": moment("when it was made"),
    },
    "the signing key after the change; nothing of it is secret",
)
_REVOCATION = obj(
    {
        "id": text("of the revocation"),
        "kind": text("what is revoked", of=tuple(REVOCATION_KINDS)),
        "issuer": text("who issued it"),
        "value": text("the token's jti, the subject, or the key's kid"),
        "reason": _REASON,
        "by": _BY,
        "before": or_null(moment("of a subject: tokens issued before are revoked; null for a token or a key")),
        "created_at": moment("when it was made"),
        "until": moment("when nothing that it covers can be valid any more"),
    },
    "the revocation",
)

KINDS: dict[str, Kind] = {
    events.RP_PAUSED: Kind(
        "Events are refused at the RP until somebody resumes it.",
        ON_BOTH,
        {"rp": ROW, "by": _BY},
        effects=(*RP_PUT, RECENT_CHANGED),
    ),
    events.RP_RESUMED: Kind(
        "Events are taken at the RP again.", ON_BOTH, {"rp": ROW, "by": _BY}, effects=(*RP_PUT, RECENT_CHANGED)
    ),
    events.SESSIONS_DISCONNECTED: Kind(
        "Sessions were closed by hand.",
        ON_DOMAIN,
        {
            "count": count("sessions closed"),
            "retry": truth("whether their clients were told to connect again"),
            "by": _BY,
            "reason": _REASON,
            "principal": text("whose sessions they were, if those of a principal were meant"),
            "rp": text("id of the RP, if its readers were meant"),
            "session": text("id of the session, if one was meant"),
        },
        optional=frozenset({"principal", "rp", "session"}),
    ),
    events.PEER_RETRIED: peer("Delivery to a peer is tried again at once.", by=_BY),
    events.PEER_REPLAYED: Kind(
        "A peer is sent again what it may have lost.",
        ON_DOMAIN,
        {
            "peer": text("the peer's name"),
            "rp": text("id of the RP"),
            "after": text("the cursor after which everything is offered again; earliest: all that is held"),
            "by": _BY,
        },
    ),
    events.KEY_ROTATED: Kind("A key that signs next was made and published.", ON_DOMAIN, {"key": _KEY, "by": _BY}),
    events.KEY_RETIRED: Kind(
        "A key was ended at once, and every token that it signed.",
        ON_DOMAIN,
        {"key": _KEY, "by": _BY, "reason": _REASON},
    ),
    events.REVOCATION_MADE: Kind("A credential was revoked.", ON_DOMAIN, {"revocation": _REVOCATION}),
    events.REVOCATION_LIFTED: Kind(
        "The revocation of a subject was taken back.",
        ON_DOMAIN,
        {"revocation": _REVOCATION, "by": text("identity of who took it back")},
    ),
}
