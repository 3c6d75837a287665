"""Proofs of one event: what a reader needs to verify who published it, and where in the feed.

A proof is the event's exact bytes, the seal that covers it, the Merkle path from one to the other, and the document of
the domain that signed. The serving domain need not be trusted: client/herald/proofs.py verifies the proof with nothing
else.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from eventing.conf import config
from eventing.core.decoding import msgpack_reader
from eventing.core.errors import InvalidCursor, NotFound, Unavailable
from eventing.core.events.cursors import Cursor
from eventing.core.ids import is_admin
from eventing.core.seals import seals
from eventing.core.seals.seals import Seal
from eventing.core.signing import Signed
from eventing.log import control, federated
from eventing.log.scripts import OWN
from eventing.peering.selectors.domain_documents import domain_statement
from eventing.peering.services.domain_documents import own_document
from eventing.replication.services.sealing import own_feed, seal_own
from eventing.store.sealing_holds import held_since

_signed = msgpack_reader(Signed)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CheckedProof:
    """A proof that has been verified here.

    Attributes:
        event: the exact bytes.
        statement, seal: the seal as signed, and its content.
        sequence: the event's, in the feed that the seal names.
        path: hashes from the event's leaf to below the root.
        document: of the seal's origin.
        carriers: the domains that carried the event, the origin first, as they stated; empty for an own event.
    """

    event: bytes
    statement: Signed
    seal: Seal
    sequence: int
    path: list[bytes]
    document: Signed
    carriers: tuple[str, ...]


def event_proof(*, rp: str, place: Cursor | int) -> CheckedProof:
    """Return the proof of the event at a place of this domain's log of an RP; an own event without a seal is sealed
    now.

    Args:
        place: the event's cursor, or its offset in the present epoch.

    Raises InvalidCursor for a cursor of another epoch, NotFound for an event that is not held, and redis.RedisError.
    """
    if is_admin(rp):
        raise NotFound("Events of administrative rendezvous points are not sealed; the audit has a chain of its own.")
    state = federated.heads([rp])[0]
    if state is None:
        raise NotFound("There is no event at this place.")
    if isinstance(place, Cursor):
        place = control.continued(rp, place, now := state.present)
        if place.epoch != now:
            raise InvalidCursor(f"The log's epoch is {now} now; use a cursor of an event in it.", epoch=now)
    offset = place.offset if isinstance(place, Cursor) else place
    found = federated.feed_event_at(rp, offset)
    if found is None:
        raise NotFound(f"The event at offset {offset} is not in the history: {state.first} to {state.next - 1} are.")
    own = found.feed_key == OWN
    key = own_feed(state.epoch).key if own else found.feed_key
    stored = federated.seal_of(rp, key, found.sequence)
    if stored is None and own:
        seal_own(rp)
        stored = federated.seal_of(rp, key, found.sequence)
        if stored is None and held_since([rp]):
            raise Unavailable("This domain has just started and asks its peers before it seals.", retry_after_s=5)
    if stored is None:
        raise NotFound("The seal of this event is no longer stored here.")
    statement = _signed(stored.seal)
    seal = seals.seal_read(statement)
    path = seals.proof_make(stored.leaves, seal, found.sequence)
    if not seals.proof_verified(seal, found.sequence, found.body, path):
        log.error("The event %d of %s is not the one that was sealed; run manage.py verify_chain.", offset, rp)
        raise Unavailable("The history does not agree with its seal. Inform the operators of this domain.")
    document = own_document() if seal.origin == config().domain else domain_statement(seal.origin)
    if document is None:
        raise NotFound(f"The document of {seal.origin} is no longer known here.")
    return CheckedProof(found.body, statement, seal, found.sequence, path, document, stored.path)
