"""Changes of an RP's home, as this domain carries them out: it takes over, stands down, or follows.

The life of a change: a verified record of hand-overs prevails over the held one (`record_accept`), by any carrier ->
where it names this domain, this domain signs descriptor and admissions of the new term (`_take_over`) -> where this domain
was the home, it is a replica from then on (`_stand_down`) -> others follow by the new home's statements
(replica_statements.py). All of it is in one transaction, so a process that is killed has done all or nothing; a home that was
restored from a backup meets the record again at its next exchange.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from eventing.access.selectors.keys import signing_key
from eventing.conf import config
from eventing.core import leases
from eventing.core.errors import ApplicationError, Conflict
from eventing.core.principals import identity_seen_from
from eventing.core.signing import Signed
from eventing.core.timestamps import timestamp
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox
from eventing.peering.selectors.domain_documents import domain_document, own_serial
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.replication.models import HomeConsent, ReplicaAdmission, ReplicaLink
from eventing.replication.services.home_proofs import proof_keep
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import (
    HomeRecord,
    HomeTerm,
    KeysOf,
    UnknownSigner,
    equivocations,
    hand_over_read,
    last_term,
    prevails,
    record_packed,
    record_verify,
)
from eventing.rps.rules.statements import (
    Admission,
    admission_make,
    admission_read,
    descriptor_make,
    descriptor_read,
    packed,
    unpacked,
)
from eventing.rps.selectors.event_data import rp_data
from eventing.rps.services.descriptors import descriptor_sign, properties_sign
from eventing.rps.services.watches import watches_announce, watches_end, watches_set
from eventing.sql.leases import lease_grant

VERSIONS_SKIPPED = (
    2  # a next home signs its first descriptor in advance (homes/handler.py), and another when it takes over
)
logger = logging.getLogger(__name__)


def record_accept(row: RendezvousPoint, record: HomeRecord, keys_of: KeysOf, outbox: Outbox, *, carrier: str) -> bool:
    """Accept a record of hand-overs if it prevails over the held one; return whether it did. The caller saves the row.

    Raises BadStatement for one that is forged.
    """
    held = row.home_record
    if record == held:
        return False
    try:
        present = record_verify(row.id, row.genesis, record, keys_of, held=held)
    except UnknownSigner as error:
        logger.info("The home of %s that %s states is not verified yet: %s", row.id, carrier, error)
        return False
    _contradicted(row, record, held, outbox, carrier)
    if not prevails(record, held):
        ReplicaLink.objects.filter(rp=row, peer=carrier).update(told=-1)  # it is to be sent the held one
        return False
    former = last_term(row.genesis, held)
    row.homes = record_packed(record)
    if present != former:
        _changed(row, former, present, outbox, carrier)
    return True


def admissions_next(row: RendezvousPoint, former: HomeTerm, following: HomeTerm, now: datetime) -> list[Signed]:
    """Sign, as the home of the following term, the admissions of all present participants and of the former home.

    The participants' end when they did; the former home's is that of a new replica.
    """
    found: list[Admission] = []
    for held in ReplicaAdmission.objects.filter(rp=row, revoked=False, expires_at__gt=now).order_by("domain"):
        if held.domain != following.domain:
            said = admission_read(unpacked(held.statement))
            found.append(_admission(row, following, said.domain, said.url, said.fingerprint, held.expires_at, now))
    if former.domain not in {one.domain for one in found} | {following.domain}:
        document = domain_document(former.domain)
        url = document.url if document is not None else ""
        lease = leases.grant(None, now, default_s=config().lease_s_default, longest_s=config().lease_s_max)
        found.append(_admission(row, following, former.domain, url, former.fingerprint, lease.expires_at, now))
    key = _key(now)
    return [admission_make(one, key) for one in found]


def consent_statements(row: RendezvousPoint, following: HomeTerm, now: datetime) -> list[Signed]:
    """Sign descriptor and admissions of a term that begins with the consent's hand-over, for the time until this domain
    learns that it is complete."""
    key = _key(now)
    held = descriptor_read(unpacked(row.descriptor or b""))
    ahead = replace(
        held,
        version=row.version + 1,
        home=following.domain,
        serial=own_serial(),
        issued_at_ms=int(now.timestamp() * 1000),
        term=following.term,
    )
    return [descriptor_make(ahead, key), *admissions_next(row, row.home_term, following, now)]


def _admission(
    row: RendezvousPoint, home: HomeTerm, domain: str, url: str, fingerprint: str, until: datetime, now: datetime
) -> Admission:
    return Admission(
        row.id,
        home.domain,
        domain,
        url,
        fingerprint,
        int(now.timestamp() * 1000),
        int(until.timestamp() * 1000),
        publishes=True,
        term=home.term,
    )


def _key(now: datetime) -> dict[str, Any]:
    key = signing_key(now)
    if key is None:
        raise Conflict(f"{config().domain} has no signing key yet. Try again.")
    return key


def _changed(row: RendezvousPoint, former: HomeTerm, present: HomeTerm, outbox: Outbox, carrier: str) -> None:
    own = config().domain
    kind = hand_over_read(row.home_record.hand_overs[-1].payload).kind
    row.term = present.term
    if present.domain == own:
        _take_over(row, former, present, outbox)
    elif not row.home:
        _stand_down(row, present, outbox)
    else:
        row.home, row.renew_at = present.domain, outbox.now  # the next renewal is at the new home
    ReplicaAdmission.objects.filter(rp=row, domain=present.domain).delete()
    admitted = ReplicaAdmission.objects.filter(rp=row, revoked=False, expires_at__gt=outbox.now).order_by("domain")
    data = {
        "rp": row.id,
        "term": present.term,
        "home": present.domain,
        "former": former.domain,
        "reason": kind,
        "carrier": carrier,
        "replicas": [{"domain": one.domain, "expires_at": timestamp(one.expires_at)} for one in admitted],
    }
    outbox.event(events.RP_MOVED, row.id, data, domain_too=True)
    row.changed_at = outbox.now
    logger.warning(
        "The home of %s is %s from term %d on (%s); %s was it before.",
        row.id,
        present.domain,
        present.term,
        kind,
        former.domain,
    )


def _take_over(row: RendezvousPoint, former: HomeTerm, present: HomeTerm, outbox: Outbox) -> None:
    """Become the home: sign the descriptor and the admissions, grant the lease, adopt what only a home keeps."""
    now = outbox.now
    for statement in admissions_next(row, former, present, now):
        said = admission_read(statement)
        ReplicaAdmission.objects.update_or_create(
            rp=row,
            domain=said.domain,
            defaults={
                "url": said.url,
                "statement": packed(statement),
                "issued_at_ms": said.issued_at_ms,
                "asked_at_ms": said.issued_at_ms,  # a join of before, to the former home, is not answered again here
                "expires_at": datetime.fromtimestamp(said.expires_at_ms / 1000, UTC),
                "revoked": False,
                "tell_at": None,
                "tell_until": None,
            },
        )
    row.home, row.via, row.renew_at = "", "", None
    row.creator = identity_seen_from(config().domain, row.authority, str(row.genesis["creator"]))
    consent = HomeConsent.objects.filter(rp=row.id).first()
    local = consent.local if consent is not None else {}
    HomeConsent.objects.filter(rp=row.id).delete()
    lease_grant(row, local.get("asked_s", row.asked_s), now)
    if "renew_on_use" in local:
        row.renew_on_use = bool(local["renew_on_use"])
        _adopt_watches(row, local, outbox)
    row.version += VERSIONS_SKIPPED
    row.descriptor = descriptor_sign(row, now)
    row.property_statement = None if row.reliability is None else properties_sign(row, now)
    outbox.lease_event(events.LEASE_GRANTED, row)
    outbox.event(events.RP_CHANGED, row.id, {"rp": rp_data(row), "changed": ["home"]}, domain_too=True)


def _adopt_watches(row: RendezvousPoint, local: dict[str, Any], outbox: Outbox) -> None:
    """Take over the former home's watch rules and audience, if none were set here."""
    if row.watch or row.audience:
        return
    try:
        watches_set(row, {"audience": local.get("audience"), "watch": local.get("watch")}, outbox.now)
    except ApplicationError as error:
        logger.warning("The watch rules of %s are not taken over from its former home: %s", row.id, error.detail)
        return
    watches_announce(row, outbox, by="")


def _stand_down(row: RendezvousPoint, present: HomeTerm, outbox: Outbox) -> None:
    """Become a replica of the new home, which has the watch rules from now on. The lease is renewed at once, there."""
    row.home, row.via, row.renew_at = present.domain, present.domain, outbox.now
    row.history_asked = {}
    watches_end(row, outbox)
    row.watch, row.audience, row.watched_at = [], [], None


def _contradicted(row: RendezvousPoint, record: HomeRecord, held: HomeRecord, outbox: Outbox, carrier: str) -> None:
    """Report the domains that two valid records of hand-overs prove to equivocate."""
    found = equivocations(record, held)
    for domain, detail in found.items():
        misbehaviour_note("equivocation", carrier=carrier, origin=domain, rp=row.id, detail=detail)
    if found:
        proof_keep(row, record, held, found, outbox, carrier)
