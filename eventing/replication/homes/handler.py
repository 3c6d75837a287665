"""Handler of requests about the home of an RP at /federation/v1/home (peering/wire/endpoints.py).

A request to become the home is granted to the present home alone, if an administrator here trusts it with `host` and the
replica here holds all that the home held when it asked. The consent is stored before it is sent. It makes nobody a home: the
hand-over is valid once the present home has signed it too.
"""

from __future__ import annotations

import time

from django.utils import timezone

from eventing.conf import config
from eventing.core import strict_json
from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unavailable
from eventing.core.events import vectors
from eventing.peering.selectors.domain_documents import own_fingerprint
from eventing.peering.wire.endpoints import Sender
from eventing.peering.wire.messages import VERSION
from eventing.replication.homes.messages import MoveAnswer, MoveRequest
from eventing.replication.joining.messages import decoded, encode
from eventing.replication.joining.presenters import own_vector
from eventing.replication.ports import draining
from eventing.replication.services.home_moves import consent_sign
from eventing.replication.services.homes import consent_statements
from eventing.replication.services.replica_statements import statements_accept
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import (
    HAND_OVERS_MAX,
    MOVE,
    HandOver,
    HomeTerm,
    digest,
    hand_over_read,
)
from eventing.rps.rules.statements import BadStatement
from eventing.rps.selectors.rendezvous_points import rp_live

CATCH_UP_S = 6.0  # bound: seconds that a request waits until the replica here has caught up; the request is refused
CATCH_UP_STEP_S = 0.05
CONSENT_S = (
    120  # seconds that the replica here may not be left after a consent; a home completes a move within a tenth of it
)


def home(sender: Sender, body: bytes) -> bytes:
    """Handle a request to become the home of an RP. Raises HeraldError."""
    request = decoded(body, MoveRequest)
    peer = sender.peer
    own = config().domain
    if peer is None or not peer.host:
        raise Forbidden(
            f"{own} takes over no rendezvous points from {sender.domain}. Its administrator can allow it: herald peer "
            f"trust {sender.domain} --host"
        )
    if draining():
        raise Conflict(f"{own} hands over its own rendezvous points at the moment. Choose another domain.")
    row = _replica(request.rp, sender.domain)
    refused = statements_accept(request.rp, request.admissions, carrier=sender.domain)
    if refused:
        raise InvalidRequest(refused[0])
    _caught_up(request)
    row = _replica(request.rp, sender.domain)
    wanted = _checked(row, request.payload)
    now = timezone.now()
    signature = consent_sign(row, request.payload, _local(request.local), now)
    following = HomeTerm(wanted.term, wanted.domain, wanted.fingerprint)
    return encode(MoveAnswer(VERSION, signature.kid, signature.signature, consent_statements(row, following, now)))


def _replica(rp: str, home_: str) -> RendezvousPoint:
    row = rp_live(rp)
    if row is None:
        raise NotFound(f"{config().domain} holds no replica of {rp}. Invite it first.")
    if row.home != home_:
        raise Conflict(f"{home_} is not the home of {rp}, as {config().domain} knows it.")
    return row


def _caught_up(request: MoveRequest) -> None:
    """Wait until the replica here holds what the home held. Raises Unavailable."""
    until = time.monotonic() + CATCH_UP_S
    while not vectors.covers(own_vector(request.rp), request.have):
        if time.monotonic() > until:
            raise Unavailable(
                f"The replica at {config().domain} has not caught up with its home. Try again later.", retry_after_s=10
            )
        time.sleep(CATCH_UP_STEP_S)


def _checked(row: RendezvousPoint, payload: bytes) -> HandOver:
    """Check that a hand-over to this domain continues the record that is held here. Raises InvalidRequest, Conflict."""
    try:
        wanted = hand_over_read(payload)
    except BadStatement as error:
        raise InvalidRequest(str(error)) from None
    record = row.home_record
    present = row.home_term
    follows = digest(record.hand_overs[-1].payload) if record.hand_overs else ""
    if wanted.rp != row.id or wanted.kind != MOVE or wanted.former != present.domain:
        raise InvalidRequest("The hand-over is not one of this rendezvous point by its home.")
    if (wanted.domain, wanted.fingerprint) != (config().domain, own_fingerprint()):
        raise InvalidRequest("The hand-over names another domain, or another first key of this one.")
    if wanted.previous != follows or wanted.term <= present.term:
        raise Conflict("The hand-over does not continue the one that is known here. Try again.")
    if len(record.hand_overs) >= HAND_OVERS_MAX:
        raise Conflict(f"The home has moved {HAND_OVERS_MAX} times, which is the most. Create a new rendezvous point.")
    return wanted


def _local(data: bytes) -> dict[str, object]:
    try:
        value = strict_json.parse(data)
    except strict_json.NotStrictJson:
        value = None
    if not isinstance(value, dict):
        raise InvalidRequest("local of a move is a JSON object.")
    members = {"audience": list, "watch": list, "renew_on_use": bool, "asked_s": int | None}
    return {name: value[name] for name, kind in members.items() if name in value and isinstance(value[name], kind)}
