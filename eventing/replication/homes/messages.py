"""Messages of domains about the home of an RP, at /federation/v1/home: MessagePack, as peering/wire/messages.py."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from eventing.peering.wire.messages import Have, Homes, RpId, Sequence, Statements
from eventing.rps.rules.statements import STATEMENT_BYTES_MAX

LOCAL_BYTES_MAX = 64 * 1024  # bound: bytes of watch rules and audience of a moved RP; the request is refused
HAND_OVER, WOULD, PLAN = "hand-over", "would", "plan"
Payload = Annotated[bytes, Meta(max_length=STATEMENT_BYTES_MAX)]


class MoveRequest(msgspec.Struct, array_like=True):
    """The home's request that the receiver become the home.

    Attributes:
        payload: the hand-over that both are to sign (rps/rules/home_terms.py: HandOver).
        admissions: those in force, as the receiver is to sign them anew.
        have: the home's vector: the receiver answers once it holds as much.
        local: what only the home keeps, as JSON: `audience`, `watch`, `renew_on_use`, `asked_s`.
    """

    version: int
    rp: RpId
    payload: Payload
    admissions: Statements
    have: Have
    local: Annotated[bytes, Meta(max_length=LOCAL_BYTES_MAX)]


class MoveAnswer(msgspec.Struct, array_like=True):
    """The receiver's consent.

    Attributes:
        kid, signature: of its key over the hand-over.
        statements: its first descriptor and admissions of the new term, valid with the completed hand-over only.
    """

    version: int
    kid: Annotated[str, Meta(max_length=64)]
    signature: Annotated[bytes, Meta(max_length=256)]
    statements: Statements


class VoteRequest(msgspec.Struct, array_like=True):
    """A request for an elector's signature: over a hand-over (HAND_OVER), or a version of the succession plan (PLAN).

    Attributes:
        kind: also WOULD: whether it would sign a hand-over. Nothing is signed or stored then.
        homes: the record of hand-overs that the sender has, which the receiver may lack; empty for none.
        kid, signature: of the home over the version of the plan.
    """

    version: int
    rp: RpId
    kind: Annotated[str, Meta(max_length=16)]
    payload: Payload
    homes: Homes = b""
    kid: Annotated[str, Meta(max_length=64)] = ""
    signature: Annotated[bytes, Meta(max_length=256)] = b""


class VoteAnswer(msgspec.Struct, array_like=True):
    """The elector's signature, empty if it does not sign, the highest term that it has met, and whether it would sign (WOULD)."""

    version: int
    kid: Annotated[str, Meta(max_length=64)]
    signature: Annotated[bytes, Meta(max_length=256)]
    term: Sequence
    willing: bool = False
