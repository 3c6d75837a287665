"""Changes of a succession plan: proposed and put in force by the home, endorsed and, without the home, completed by its electors.

The life of a version: the home signs and stores it (`plan_propose`) -> asks the electors of the version in force -> each stores it with the
home's signature, after which it votes by no older one, and signs (`plan_endorse`) -> with the majority the version is in force
(`plan_keep`). Where the home is silent before that, an elector that endorsed it asks the others in the home's place (`plans_to_finish`,
`plan_finish`): the home's signature is the proof that it was the home's will.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from django.db import transaction
from django.utils import timezone

from eventing.access.selectors.keys import signing_key
from eventing.conf import config
from eventing.core import signing
from eventing.core.decoding import msgpack_reader
from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound
from eventing.core.principals import Principal
from eventing.outbox.services import change
from eventing.overlay import succession
from eventing.replication.models import ElectorState
from eventing.replication.services.elections import CastVote
from eventing.replication.services.elector_states import (
    ElectedRp,
    remembers,
    require_remembered,
    standing_of,
    standing_store,
    state_locked,
    states_of,
)
from eventing.replication.services.replica_statements import keys_by, statements_accept
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import (
    Cosigned,
    DomainSignature,
    HomeRecord,
    SuccessionPlan,
    digest,
    plan_in_force,
    plan_payload,
    plan_read,
    plan_signed_by_home,
    record_packed,
    record_verify,
    signature_make,
)
from eventing.rps.rules.statements import BadStatement

_signature = msgpack_reader(DomainSignature)


class UnfinishedPlan(NamedTuple):
    """A version of the plan that this domain endorsed and that is not in force here.

    Attributes:
        before: the plan in force, whose electors complete it.
        signatures: the home's, and this domain's.
    """

    rp: str
    payload: bytes
    before: SuccessionPlan
    signatures: list[DomainSignature]


def plan_endorse(*, rp: str, payload: bytes, by_home: DomainSignature, sender: str) -> CastVote:
    """Endorse a version of the succession plan that the home has signed: this domain votes by no older one from then on.

    Args:
        sender: the home; or, in its place, an elector of the plan in force.

    Raises NotFound, Forbidden, Conflict, BadStatement.
    """
    wanted, now = plan_read(payload), timezone.now()
    own, key = config().domain, signing_key(now)
    with transaction.atomic():
        row = RendezvousPoint.objects.filter(id=rp).first()
        if row is None or wanted.rp != rp:
            raise NotFound(f"{own} does not participate in the rendezvous point {rp}.")
        record, present = row.home_record, row.home_term
        held = plan_in_force(record)
        if held is None or not held.elects(own) or key is None or present.domain == own:
            raise Forbidden(f"{own} is no elector of the rendezvous point {rp}.")
        if sender != present.domain and not held.elects(sender):
            raise Forbidden(f"Only the home of {rp}, or an elector in its place, asks for the endorsement of a plan.")
        if (wanted.version, wanted.previous, wanted.term) != (
            len(record.plans) + 1,
            digest(record.plans[-1].payload),
            present.term,
        ):
            raise Conflict("The plan does not continue the one that is known here. Try again.")
        plan_signed_by_home(Cosigned(payload, [by_home]), present, keys_by({}, now))
        state = state_locked(row)
        require_remembered(state, held)
        standing = standing_of(state)
        outcome = succession.endorse(
            standing, version=wanted.version, term=wanted.term, payload=payload, present=present.term
        )
        if outcome.votes:
            state.plan_signature = msgspec.msgpack.encode(by_home)
            standing_store(state, outcome.standing)
        elif standing.lent <= wanted.term:
            raise Conflict("Another plan of this version is endorsed already. Try again.")
    given = signature_make(signing.SUCCESSION_PLAN, payload, own, key) if outcome.votes else None
    return CastVote(given, state.term)


def plan_propose(row: RendezvousPoint, plan: SuccessionPlan) -> tuple[bytes, DomainSignature] | None:
    """Sign and store, at the home, a version of the succession plan that the electors are asked to endorse. Returns payload and signature;
    None where this domain, an elector itself, lent its vote in a later term.

    A version that was asked for before is asked for again, with the same bytes: electors endorse one. Raises Conflict where that was
    another plan.
    """
    own, key = config().domain, signing_key(timezone.now())
    if key is None:
        raise Conflict(f"{own} has no signing key. Try again.")
    with transaction.atomic():
        state = state_locked(row)
        payload = plan_payload(plan)
        if state.plan_version == plan.version and bytes(state.plan_payload):
            before = plan_read(bytes(state.plan_payload))
            if before.term == plan.term:
                if (before.electors, before.silence_s) != (plan.electors, plan.silence_s):
                    raise Conflict("Another change of the plan waits for the electors: repeat that one first.")
                payload = bytes(state.plan_payload)
        outcome = succession.endorse(
            standing_of(state), version=plan.version, term=plan.term, payload=payload, present=row.term
        )
        if not outcome.votes:
            return None
        signature = signature_make(signing.SUCCESSION_PLAN, payload, own, key)
        state.plan_signature = msgspec.msgpack.encode(signature)
        standing_store(state, outcome.standing)
        return payload, signature


def plan_unfinished(row: RendezvousPoint, plan: SuccessionPlan) -> bool:
    """Return whether a later version than this one waits for its completion, at the home."""
    state = ElectorState.objects.filter(rp=row.id).first()
    return state is not None and succession.bound(standing_of(state), plan.version, row.term)


def plans_to_finish(pairs: list[ElectedRp]) -> list[UnfinishedPlan]:
    """Return the versions that this domain endorsed, of RPs whose home is silent, and that are not in force yet."""
    states, key, own = states_of(pairs), signing_key(timezone.now()), config().domain
    found: list[UnfinishedPlan] = []
    for row, plan in pairs:
        state = states.get(row.id)
        if state is None or key is None or not state.plan_signature or not remembers(state, plan):
            continue
        payload = bytes(state.plan_payload)
        if succession.bound(standing_of(state), plan.version, row.term):
            ours = signature_make(signing.SUCCESSION_PLAN, payload, own, key)
            found.append(UnfinishedPlan(row.id, payload, plan, [_signature(bytes(state.plan_signature)), ours]))
    return found


def plan_finish(unfinished: UnfinishedPlan, endorsed: list[DomainSignature]) -> bool:
    """Put a version in force in the place of a silent home, with the endorsements of others. Returns whether it is."""
    row = RendezvousPoint.objects.filter(id=unfinished.rp).first()
    if row is None or plan_in_force(row.home_record) != unfinished.before:
        return False
    record = row.home_record
    signed = Cosigned(unfinished.payload, [*unfinished.signatures, *endorsed])
    following = record_packed(HomeRecord(record.hand_overs, [*record.plans, signed]))
    refused = statements_accept(row.id, [], carrier=config().domain, homes=following)
    return not refused and len(RendezvousPoint.objects.get(id=row.id).home_record.plans) > len(record.plans)


def plan_keep(before: RendezvousPoint, one: Cosigned, *, principal: Principal) -> None:
    """Put a complete version of the succession plan in force, at the home. Raises Conflict, InvalidRequest."""
    with change(timezone.now()) as outbox:
        row = RendezvousPoint.objects.select_for_update().filter(id=before.id).first()
        if row is None or row.home or row.homes != before.homes:
            raise Conflict("The rendezvous point was changed meanwhile. Try again.")
        record = row.home_record
        following = HomeRecord(record.hand_overs, [*record.plans, one])
        try:
            record_verify(row.id, row.genesis, following, keys_by({}, outbox.now), held=record)
        except BadStatement as error:
            raise InvalidRequest(f"The plan is not valid: {error}") from None
        plan = plan_read(one.payload)
        row.homes = record_packed(following)
        row.statements += 1
        row.save(update_fields=["homes", "statements"])
        outbox.act(
            "rp.succession",
            principal,
            "rp",
            row.id,
            version=plan.version,
            electors=[it.domain for it in plan.electors],
            silence_s=plan.silence_s,
        )
        outbox.announce(row.id, to_peers=True)
