"""Statements about an RP between its participants: its descriptor, the admissions, and domain documents.

The home signs, everybody passes on: a statement is accepted from any carrier if it is valid and newer than the held
one. Each RP counts the changes of its statements; a link records the count that its peer has acknowledged, so that
nothing is sent twice and one query finds what to send for all RPs of a peer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from eventing.access.services.policy_issuers import policy_issuers_keep
from eventing.access.services.revocations import announce
from eventing.conf import config
from eventing.core.errors import QuotaExceeded
from eventing.core.signing import Signed
from eventing.core.timestamps import timestamp
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.peering.rules.domain_documents import BadDocument
from eventing.peering.rules.domain_documents import claimed as document_claimed
from eventing.peering.selectors.domain_documents import domain_document, domain_keys, domain_statements
from eventing.peering.services.domain_documents import document_accept
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.replication.models import ReplicaAdmission, ReplicaLink
from eventing.replication.selectors.home_records import domains_of_records
from eventing.replication.selectors.replicas import admissions_of, links_if_few
from eventing.replication.services.homes import record_accept
from eventing.replication.services.replica_descriptors import descriptor_apply, lease_apply
from eventing.replication.services.withdrawals import withdrawal
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import KeysOf, record_read
from eventing.rps.rules.statements import (
    ADMISSIONS_MAX,
    Admission,
    BadStatement,
    DescriptorStatement,
    Keys,
    StatementOrder,
    admission_read,
    admission_verified,
    descriptor_order,
    descriptor_read,
    descriptor_verified,
    is_descriptor,
    packed,
    preferred,
    unpacked,
)
from eventing.rps.selectors.event_data import rp_data
from eventing.rps.services.descriptors import descriptor_sign
from eventing.rps.services.rendezvous_points import remove
from eventing.sql.remembered import remembered

logger = logging.getLogger(__name__)

DOCUMENTS_MAX = 64  # in one message (wire.STATEMENTS_MAX)


class PendingStatements(NamedTuple):
    """Statements that a peer has not acknowledged, and the count to record when it has.

    Attributes:
        homes: the record of hand-overs and succession plans, as stored; empty for none.
        awaits_term: whether the statements are sent once the peer has stated that it knows of terms: older software
            would take the statements of a later term for forged ones.
    """

    version: int
    statements: list[Signed]
    properties: list[Signed] = []
    homes: bytes = b""
    awaits_term: bool = False


def statements_of(rp: str) -> list[Signed]:
    """Return the descriptor and the admissions of an RP, the last to expire first; at most ADMISSIONS_MAX + 1."""
    row = RendezvousPoint.objects.filter(id=rp).only("descriptor").first()
    if row is None or row.descriptor is None:
        return []
    admissions = admissions_of(rp)[:ADMISSIONS_MAX]
    return [unpacked(row.descriptor), *(unpacked(one.statement) for one in admissions)]


def statements_pending(peer: str, rps: Iterable[str]) -> dict[str, PendingStatements]:
    """Return those RPs, with statements, whose statements the peer has not acknowledged. If there are none, no query where answers are
    remembered, else one.
    """
    untold = None if links_if_few() is None else _untold()
    wanted = [rp for rp in rps if untold is None or (peer, rp) in untold]
    if not wanted:
        return {}
    links = ReplicaLink.objects.filter(peer=peer, rp__among=wanted).exclude(told=F("rp__statements"))
    return {link.rp_id: _pending(link) for link in links.select_related("rp")}


@remembered
def _untold() -> frozenset[tuple[str, str]]:
    """Return (peer, RP) of all links whose peer has not acknowledged the RP's statements: all links are looked at, which are few."""
    return frozenset(ReplicaLink.objects.exclude(told=F("rp__statements")).values_list("peer", "rp_id"))


def _pending(link: ReplicaLink) -> PendingStatements:
    row = link.rp
    homes = bytes(row.homes or b"")
    if row.term and link.term < 0:
        return PendingStatements(row.statements, [], [], homes, awaits_term=True)
    stated = row.property_statement
    properties = [] if stated is None else [unpacked(stated)]
    return PendingStatements(row.statements, statements_of(row.id), properties, homes)


def statements_acknowledged(peer: str, told: Mapping[str, int]) -> None:
    """Record that the peer has acknowledged the statements of these RPs, by the counts of `PendingStatements`."""
    for rp, version in told.items():
        ReplicaLink.objects.filter(peer=peer, rp=rp).update(told=version)


def term_stated(peer: str, rp: str, term: int) -> None:
    """Record the term of the RP's home that the peer states, -1 for none."""
    ReplicaLink.objects.filter(peer=peer, rp=rp).exclude(term=term).update(term=term)


@remembered
def links_pending(limit: int = 1000) -> Sequence[tuple[str, str]]:
    """Return (peer, RP) of live links whose peer has not acknowledged the RP's statements."""
    links = ReplicaLink.objects.filter(state=ReplicaLink.State.LIVE).exclude(told=F("rp__statements"))
    return list(links.order_by("peer", "rp").values_list("peer", "rp_id")[:limit])


def documents_for(rps: Iterable[str], peer: str = "") -> list[Signed]:
    """Return the domain documents that a peer may need to verify these RPs' statements and feeds: the homes', and those
    of present and former admitted domains. At most DOCUMENTS_MAX, without the peer's own.
    """
    wanted = list(rps)
    homes = RendezvousPoint.objects.filter(id__in=wanted).values_list("home", flat=True)
    admitted = ReplicaAdmission.objects.filter(rp__in=wanted, revoked=False).values_list("domain", flat=True)
    names = {home or config().domain for home in homes} | set(admitted)
    first = domains_of_records(wanted)  # without these the others are not verified
    return domain_statements([name for name in [*first, *sorted(names.difference(first))] if name != peer])[
        :DOCUMENTS_MAX
    ]


def statements_accept(
    rp: str,
    statements: Sequence[Signed],
    *,
    carrier: str,
    domains: Sequence[Signed] = (),
    homes: bytes = b"",
    now: datetime | None = None,
) -> list[str]:
    """Accept valid statements that are newer than the held ones. Invalid ones are refused and counted against the
    carrier, without effect.

    Args:
        rp: an RP that this domain participates in; for any other nothing is accepted.
        carrier: the peer that delivered them.
        domains: documents from the request: those of the home and of domains that it admits are trusted through it.
        homes: the record of hand-overs of the home (rps/rules/home_terms.py), which is judged first; empty for none.

    Returns one sentence for each refused statement.
    """
    now = now or timezone.now()
    refused: list[str] = []
    home = ""
    statements = _unknown(rp, statements)
    if not statements and (not homes or _record_held(rp, homes)):
        return refused
    contradicted = False
    with change(now) as outbox:
        row = RendezvousPoint.objects.select_for_update().filter(id=rp).first()
        if row is None or row.descriptor is None:
            return refused  # this domain does not participate
        documents = documents_by_domain(domains)
        changed = False
        if homes:
            try:
                changed = record_accept(row, record_read(homes), keys_by(documents, now), outbox, carrier=carrier)
            except BadStatement as error:
                refused.append(str(error))
        if not row.home:
            _own_seen(row, statements, outbox)
            if changed:
                row.statements += 1
                row.save()
                outbox.announce(rp, to_peers=True)
            statements = []
        home = row.home or config().domain
        document_take(documents, home, row.home_term.fingerprint, now)
        keys = domain_keys(home)
        for statement in statements:
            try:
                if is_descriptor(statement):
                    contradicted = contradicted or _contradicts(row, statement, keys)
                    changed = _descriptor(row, statement, keys, outbox, carrier) or changed
                else:
                    changed = _admission(row, statement, keys, documents, outbox) or changed
            except BadStatement as error:
                refused.append(str(error))
            if _is_gone(row):  # the accepted statement ended the RP
                changed = False
                break
        if changed and row.home:
            row.statements += 1
            row.save()
            outbox.announce(rp, to_peers=bool(homes))
    for sentence in refused:
        misbehaviour_note("forged", carrier=carrier, origin=home, rp=rp, detail=sentence)
    if contradicted:
        detail = "The home signed two different descriptors of one version."
        misbehaviour_note("equivocation", carrier=carrier, origin=home, rp=rp, detail=detail)
    return refused


def admission_store(
    row: RendezvousPoint, admission: Admission, statement: Signed, held: ReplicaAdmission | None, now: datetime
) -> None:
    """Keep a verified admission in place of `held`, that of the same domain."""
    _, created = ReplicaAdmission.objects.update_or_create(
        rp=row,
        domain=admission.domain,
        defaults={
            "url": admission.url,
            "statement": packed(statement),
            "issued_at_ms": admission.issued_at_ms,
            "expires_at": datetime.fromtimestamp(admission.expires_at_ms / 1000, UTC),
            "revoked": not admission.publishes,
            **withdrawal(held, admission, now),
        },
    )
    if created:
        transaction.on_commit(announce, robust=True)  # its principals' tokens are accepted here from now on


def documents_by_domain(statements: Iterable[Signed]) -> dict[str, Signed]:
    """Return domain documents from a request by the domain that each claims, of each domain the newest, without
    malformed ones.

    Signatures are not verified: the user of a document verifies it.
    """
    found: dict[str, tuple[int, Signed]] = {}
    for statement in list(statements)[:DOCUMENTS_MAX]:
        try:
            name, serial, _ = document_claimed(statement)
        except BadDocument as error:
            logger.info("A domain document in a request is not accepted: %s", error)
        else:
            if name not in found or found[name][0] < serial:
                found[name] = (serial, statement)
    return {name: statement for name, (_, statement) in found.items()}


def document_take(documents: Mapping[str, Signed], domain: str, fingerprint: str, now: datetime) -> None:
    """Accept the document of `domain` from a request, if newer than the held one, by the fingerprint that was vouched
    for.
    """
    statement = documents.get(domain)
    if statement is None or domain == config().domain:
        return
    held = domain_document(domain)
    if held is not None and held.serial >= document_claimed(statement).serial:
        return
    try:
        document_accept(statement, fingerprint=fingerprint if held is None else None, now=now)
    except BadDocument as error:
        logger.info("The domain document of %s is not accepted: %s", domain, error)


def keys_by(documents: Mapping[str, Signed], now: datetime) -> KeysOf:
    """Return the keys of the domains that a record names, with their documents from the request where newer."""

    def keys(domain: str, fingerprint: str) -> Keys:
        document_take(documents, domain, fingerprint, now)
        found = domain_keys(domain)
        return found if next(iter(found), "") == fingerprint else {}

    return keys


def _record_held(rp: str, homes: bytes) -> bool:
    held = RendezvousPoint.objects.filter(id=rp).values_list("homes", flat=True).first()
    return held is not None and bytes(held) == homes


def _unknown(rp: str, statements: Sequence[Signed]) -> list[Signed]:
    """Return the statements that are not held already; nearly always none, which costs two reads and no transaction."""
    held = {bytes(one) for one in ReplicaAdmission.objects.filter(rp=rp).values_list("statement", flat=True)}
    descriptor = RendezvousPoint.objects.filter(id=rp).values_list("descriptor", flat=True).first()
    kept = held | ({bytes(descriptor)} if descriptor is not None else set())
    return [statement for statement in statements if packed(statement) not in kept]


def _own_seen(row: RendezvousPoint, statements: Sequence[Signed], outbox: Outbox) -> None:
    """Process an own statement about an own RP. A later version than the held one, or a different one of the same,
    shows that the database was restored from a copy, and that other domains would refuse its statements from now on; so
    the versions continue after that one.
    """
    keys = domain_keys(config().domain)
    for statement in statements:
        if not is_descriptor(statement):
            continue
        try:
            said = _descriptor_verified(row, statement, keys)
        except BadStatement:
            continue
        differs = row.descriptor is not None and statement.payload != unpacked(row.descriptor).payload
        later = said.version > row.version or (said.version == row.version and differs)
        if said.rp == row.id and not said.ended and later:
            row.version = said.version + 1
            row.descriptor = descriptor_sign(row, outbox.now)
            row.statements += 1
            row.save()
            outbox.announce(row.id)
            logger.warning(
                "%s was restored to an older version than others hold; it continues as version %d", row.id, row.version
            )


def _other_term(row: RendezvousPoint, statement: Signed) -> bool:
    """Return whether a descriptor is of a former home, or of one whose hand-over is not known here yet."""
    return descriptor_read(statement).term != row.term


def _descriptor_verified(row: RendezvousPoint, statement: Signed, keys: Keys) -> DescriptorStatement:
    term = row.home_term
    return descriptor_verified(statement, keys, term=term.term, home=term.domain, fingerprint=term.fingerprint)


def _contradicts(row: RendezvousPoint, statement: Signed, keys: Keys) -> bool:
    """Return whether the home signed a different descriptor of the held version. Raises BadStatement."""
    held = unpacked(row.descriptor or b"")
    if statement.payload == held.payload or _other_term(row, statement):
        return False
    if _descriptor_verified(row, statement, keys).rp != row.id:
        return False
    return descriptor_order(statement, held) is StatementOrder.CONTRADICTS


def _descriptor(row: RendezvousPoint, statement: Signed, keys: Keys, outbox: Outbox, carrier: str) -> bool:
    """Accept a descriptor if it is newer; return whether it was. A home that sends an older one is sent the held one."""
    assert row.descriptor is not None  # noqa: S101 - the caller looked
    held = unpacked(row.descriptor)
    if statement.payload == held.payload or _other_term(row, statement):
        return False
    descriptor = _descriptor_verified(row, statement, keys)
    if descriptor.rp != row.id:
        raise BadStatement("The descriptor is of another rendezvous point.")
    if not preferred(statement, held):
        if (
            carrier == row.home
        ):  # it may have been restored from a copy: with its earlier statement it continues after that
            ReplicaLink.objects.filter(rp=row, peer=carrier).update(told=-1)
        return False
    row.descriptor = packed(statement)
    if descriptor.ended:
        replica_remove(row, outbox, "ended")
        return True
    changed = descriptor_apply(row, descriptor)
    row.changed_at = outbox.now
    row.save()
    issuers_keep(row)
    if "history" in changed:
        outbox.ensure(row.id)
    outbox.event(events.RP_CHANGED, row.id, {"rp": rp_data(row), "changed": changed}, domain_too=True)
    return True


def _admission(
    row: RendezvousPoint, statement: Signed, keys: Keys, documents: Mapping[str, Signed], outbox: Outbox
) -> bool:
    """Accept an admission if it is newer; return whether it was."""
    claimed = admission_read(statement)
    if claimed.term != row.term:
        return False
    held = ReplicaAdmission.objects.filter(rp=row, domain=claimed.domain).first()
    if held is not None and (_term_of(held), held.issued_at_ms) >= (claimed.term, claimed.issued_at_ms):
        return False
    admission = admission_verified(statement, keys, rp=row.id, home=row.home, term=row.term)
    if held is None and ReplicaAdmission.objects.filter(rp=row).count() >= ADMISSIONS_MAX:
        _make_place(row)
    admission_store(row, admission, statement, held, outbox.now)
    document_take(documents, admission.domain, admission.fingerprint, outbox.now)
    if admission.domain == config().domain:
        if not admission.publishes:
            replica_remove(row, outbox, "refused")
            return True
        lease_apply(row, datetime.fromtimestamp(admission.expires_at_ms / 1000, UTC), outbox.now)
        outbox.lease_event(events.LEASE_RENEWED, row)
    _admission_tell(row, admission, held, outbox)
    return True


def _term_of(held: ReplicaAdmission) -> int:
    return admission_read(unpacked(held.statement)).term


def _admission_tell(row: RendezvousPoint, admission: Admission, held: ReplicaAdmission | None, outbox: Outbox) -> None:
    """Report what the home's statement about a participant means, compared with the previous one."""
    expires_at = datetime.fromtimestamp(admission.expires_at_ms / 1000, UTC)
    was = held is not None and not held.revoked and held.expires_at > outbox.now
    data = {"rp": row.id, "domain": admission.domain, "home": row.home}
    if admission.publishes and expires_at > outbox.now:
        kind = events.REPLICA_RENEWED if was else events.REPLICA_ADDED
        outbox.event(kind, row.id, {**data, "expires_at": timestamp(expires_at)})
    elif was:
        reason = "left" if admission.publishes else "refused"
        outbox.event(events.REPLICA_REMOVED, row.id, {**data, "reason": reason})


def _is_gone(row: RendezvousPoint) -> bool:
    """Return whether the row was deleted: Django then removes the object's key, which the types do not show."""
    return getattr(row, "pk", None) is None


def _make_place(row: RendezvousPoint) -> None:
    """Delete the first admission to have ended, for another one."""
    oldest = ReplicaAdmission.objects.filter(rp=row).exclude(domain=config().domain).order_by("expires_at").first()
    if oldest is not None:
        oldest.delete()


def replica_remove(row: RendezvousPoint, outbox: Outbox, reason: str) -> None:
    """End this domain's replica, within the caller's transaction; `reason` as in the `removed` event."""
    data = {"rp": row.id, "domain": config().domain, "home": row.home, "reason": reason}
    outbox.event(events.REPLICA_REMOVED, row.id, data, domain_too=True)
    remove(row, outbox, reason)
    transaction.on_commit(announce, robust=True)  # tokens of former participants may no longer be accepted


def issuers_keep(row: RendezvousPoint) -> None:
    """Store the issuers in the home's policy, whose keys this domain then fetches; beyond the bound their tokens are
    refused here.
    """
    try:
        with transaction.atomic():
            policy_issuers_keep(row.id, row.policy)
    except QuotaExceeded as error:
        logger.warning("Issuers that the policy of %s names are not admitted here: %s", row.id, error)
