"""The two signatures of a planned move: the next home's consent, stored before it is sent, and the present home's, with which
it stands down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from eventing.access.selectors.keys import signing_key
from eventing.conf import config
from eventing.core import signing
from eventing.core.errors import Conflict, InvalidRequest, Unavailable
from eventing.core.principals import Principal
from eventing.core.signing import Signed
from eventing.outbox.services import change
from eventing.replication.models import HomeConsent
from eventing.replication.services.elections import vote_cast
from eventing.replication.services.replica_statements import statements_accept
from eventing.replication.services.succession_plans import plan_unfinished
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import (
    Cosigned,
    DomainSignature,
    HomeRecord,
    plan_in_force,
    record_packed,
    signature_make,
)

CONSENT_S = 120  # seconds that a replica may not be left after a consent; a home completes a move within a tenth of it


def consent_sign(row: RendezvousPoint, payload: bytes, local: Mapping[str, object], now: datetime) -> DomainSignature:
    """Store the consent to a hand-over to this domain, and sign it. Raises Conflict, Unavailable."""
    key = signing_key(now)
    if key is None:
        raise Unavailable(f"{config().domain} has no signing key yet. Try again.", retry_after_s=5)
    plan = plan_in_force(row.home_record)
    if plan is not None and plan.elects(config().domain):  # its consent counts as its vote
        cast = vote_cast(rp=row.id, payload=payload, sender=row.home)
        if cast.vote is None:
            raise Conflict(f"{config().domain} has voted for another home in this term. Try again.")
    until = now + timedelta(seconds=CONSENT_S)
    HomeConsent.objects.update_or_create(rp=row.id, defaults={"payload": payload, "local": dict(local), "until": until})
    return signature_make(signing.HAND_OVER, payload, config().domain, key)


def hand_over_sign(
    before: RendezvousPoint,
    payload: bytes,
    consent: DomainSignature,
    statements: Sequence[Signed],
    *,
    principal: Principal | None,
    also: Sequence[DomainSignature] = (),
) -> None:
    """Sign a hand-over as the present home, which is a replica from then on; all of it, or nothing.

    Args:
        before: the RP as the next home consented to take it over.
        consent: the next home's signature.
        statements: its first descriptor and admissions.
        also: the signatures of electors.

    Raises Conflict where the RP changed meanwhile, InvalidRequest for an invalid consent, Unavailable.
    """
    own, now = config().domain, timezone.now()
    key = signing_key(now)
    if key is None:
        raise Conflict(f"{own} has no signing key. Try again.")
    with transaction.atomic():
        row = _unchanged(before)
        ours = signature_make(signing.HAND_OVER, payload, own, key)
        record = row.home_record
        moved = HomeRecord([*record.hand_overs, Cosigned(payload, [ours, consent, *also])], record.plans)
        with change(now) as outbox:
            outbox.act("rp.move", principal, "rp", row.id, who="" if principal else "domain", home=consent.domain)
        refused = statements_accept(row.id, statements, carrier=consent.domain, homes=record_packed(moved), now=now)
        if refused:
            raise InvalidRequest(f"The answer of {consent.domain} is invalid: {refused[0]}")
        if not RendezvousPoint.objects.filter(id=row.id, home=consent.domain).exists():
            raise Unavailable(
                f"The hand-over to {consent.domain} could not be verified here. Try again.", retry_after_s=10
            )


def renewal_sign(
    before: RendezvousPoint, payload: bytes, also: Sequence[DomainSignature], *, principal: Principal | None
) -> None:
    """Sign a hand-over of this domain to itself, with the signatures of electors. Raises Conflict."""
    own, now = config().domain, timezone.now()
    key = signing_key(now)
    if key is None:
        raise Conflict(f"{own} has no signing key. Try again.")
    with transaction.atomic():
        row = _unchanged(before, renewed=True)
        record = row.home_record
        signed = Cosigned(payload, [signature_make(signing.HAND_OVER, payload, own, key), *also])
        with change(now) as outbox:
            outbox.act("rp.move", principal, "rp", row.id, who="" if principal else "domain", home=own)
        moved = record_packed(HomeRecord([*record.hand_overs, signed], record.plans))
        refused = statements_accept(row.id, [], carrier=own, homes=moved, now=now)
        if refused:
            raise Conflict(f"The votes of the electors are invalid: {refused[0]}")


def _unchanged(before: RendezvousPoint, *, renewed: bool = False) -> RendezvousPoint:
    """Return the RP, locked, if it is as it was when others agreed to a hand-over; with a change of its plan under way, it is handed over to
    this domain only (`renewed`). Raises Conflict."""
    row = RendezvousPoint.objects.select_for_update().filter(id=before.id).first()
    if row is None or row.home or (row.version, row.homes) != (before.version, before.homes):
        raise Conflict("The rendezvous point was changed during the move. Try again.")
    plan = plan_in_force(row.home_record)
    if not renewed and plan is not None and plan_unfinished(row, plan):
        raise Conflict("A change of the succession plan waits for its electors. Repeat it before a move.")
    return row
