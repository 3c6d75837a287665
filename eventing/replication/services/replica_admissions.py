"""The home's side of replicas: admission of domains to an RP of this domain, their leave, and withdrawal of admissions.

An admission is a signed statement with an expiry (rps/rules/statements.py). The policy decides about it, at every join
and renewal: `replicate` for the domain as a principal. A change of the policy withdraws admissions that it no longer
allows.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.utils import timezone

from eventing.access.rules.policy import compile_policy
from eventing.access.rules.policy_issuers import ANYONE
from eventing.access.selectors.keys import signing_key
from eventing.access.services.revocations import announce
from eventing.conf import config
from eventing.core import leases
from eventing.core.errors import Conflict, Forbidden, Gone, NotFound, QuotaExceeded
from eventing.core.principals import ANONYMOUS, Principal
from eventing.core.timestamps import timestamp
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.peering.models import DomainDocument as DocumentRow
from eventing.peering.models import Peer
from eventing.peering.rules.domain_documents import VerifiedDomainDocument
from eventing.peering.selectors.domain_documents import domain_document
from eventing.peering.selectors.identities import identity
from eventing.peering.selectors.peers import peer_get, peers_active
from eventing.replication.models import ReplicaAdmission, ReplicaLink
from eventing.replication.selectors.home_records import domains_of_records
from eventing.replication.services.withdrawals import withdrawal
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import HomeRecord, record_domains
from eventing.rps.rules.statements import (
    ADMISSIONS_MAX,
    Admission,
    Join,
    admission_make,
    admission_read,
    packed,
    unpacked,
)

# Half of ADMISSIONS_MAX, so that peers find room.
UNAPPROVED_MAX = 24  # bound: replicas of an RP at domains that are no peers of its home; the join is refused
LEASE_S_MIN = 5  # a shorter lease would be renewed continually
KEPT_S = (
    30 * 86_400
)  # an expired admission: what its domain sealed before is accepted for as long as most histories reach


def may_replicate(row: RendezvousPoint, domain: str, *, named: bool = False) -> bool:
    """Return whether the policy of an RP of this domain lets the domain hold a replica. One that is neither an active
    peer nor identified by the directory counts as anyone.

    Args:
        named: whether the policy must name the domain: a rule for anyone is not enough.
    """
    peer = peer_get(domain)
    if peer is not None and peer.suspended:
        return False
    if row.term and domain in record_domains(row.genesis, HomeRecord(row.home_record.hand_overs)):
        return True  # a former home holds a replica
    identified = config().overlay != "peers" and identity(domain).verified
    if identified or (peer is not None and peer.active):
        who = Principal(domain, domain, False, float("inf"), {"iss": domain, "sub": domain}, local=False)
    elif peer is None:
        who = ANONYMOUS
    else:
        return False  # not yet approved: an administrator here has not decided for it
    rule = compile_policy(row.policy).seen_from(config().domain, row.authority).decide(who)
    return rule is not None and "replicate" in rule.allow and not (named and rule.issuer == ANYONE)


def unapproved_require(row: RendezvousPoint, domain: str, *, now: datetime | None = None) -> None:
    """Check a join that a domain sends this home itself without being a peer. Raises Forbidden, QuotaExceeded.

    With HERALD_OVERLAY=admitted its policy must name the domain; with open a rule for anyone is enough. One that is
    admitted already is not checked: it renews, or leaves.
    """
    now = now or timezone.now()
    admitted = ReplicaAdmission.objects.filter(rp=row, revoked=False, expires_at__gt=now)
    if admitted.filter(domain=domain).exists():
        return
    if config().overlay == "peers" or not may_replicate(row, domain, named=config().overlay != "open"):
        raise Forbidden(
            f"{domain} is no peer of {config().domain}, and the policy of {row.name or row.id} does not name it. Peer "
            f'with it, or ask for a rule like {{"issuer": "peer:{domain}", "allow": ["replicate"]}}.'
        )
    if admitted.exclude(domain__in=[peer.name for peer in peers_active()]).count() >= UNAPPROVED_MAX:
        raise QuotaExceeded(
            f"The rendezvous point {row.id} has {UNAPPROVED_MAX} replicas at domains that are no peers of its home, which "
            "is the most.",
            limit=UNAPPROVED_MAX,
        )


def replica_admit(
    *, join: Join, document: VerifiedDomainDocument | None = None, now: datetime | None = None
) -> RendezvousPoint:
    """Admit the domain that signed `join` (verified by the caller), renew its admission, or with 0 seconds end it.

    Args:
        document: the domain's document, if it is not known here and the policy admits anyone.

    Returns the RP with its new statements. Raises NotFound (no RP of this domain), Gone, Conflict (it cannot have
    replicas, or an older join), Forbidden (the policy), QuotaExceeded (too many replicas), InvalidRequest (no lease).
    """
    now = now or timezone.now()
    with change(now) as outbox:
        row = _own(join.rp, now)
        held = ReplicaAdmission.objects.filter(rp=row, domain=join.domain).first()
        if held is not None and join.at_ms <= held.asked_at_ms:
            raise Conflict("The domain has joined or left since this join was signed. Sign a new join.")
        if join.lease_s == 0:
            if held is not None and held.expires_at > now:
                _let_go(row, held, join, outbox)
            return row
        if not may_replicate(row, join.domain):
            raise Forbidden(
                f"The policy of {row.name or row.id} does not let {join.domain} hold a replica. Ask whoever "
                "administers it"
                f' at {config().domain} for a rule like {{"issuer": "peer:{join.domain}", "allow": ["replicate"]}}.'
            )
        known = domain_document(join.domain) or document
        if known is None:
            raise Forbidden(f"The domain {join.domain} is not known to {config().domain}. Peer with it first.")
        _require_place(row, join.domain, now)
        expires_at = min(_until(join, now), row.expires_at)
        joins = held is None or held.revoked or held.expires_at <= now
        admission = Admission(
            row.id,
            config().domain,
            join.domain,
            join.url,
            known.fingerprint,
            _issued_at_ms(held, now),
            int(expires_at.timestamp() * 1000),
            publishes=True,
            term=row.term,
        )
        _keep(row, admission, held, asked_at_ms=join.at_ms, now=now)
        _touched(row, outbox)
        data = {
            "rp": row.id,
            "domain": join.domain,
            "home": config().domain,
            "expires_at": timestamp(datetime.fromtimestamp(admission.expires_at_ms / 1000, UTC)),
        }
        outbox.event(events.REPLICA_ADDED if joins else events.REPLICA_RENEWED, row.id, data)
        if joins:
            outbox.act("replica.admit", None, "rp", row.id, who=join.domain)
    return row


def replicas_reconsider(row: RendezvousPoint, outbox: Outbox) -> None:
    """Withdraw the admissions of domains that the policy of an RP of this domain no longer lets hold a replica."""
    for held in ReplicaAdmission.objects.filter(rp=row, revoked=False, expires_at__gt=outbox.now):
        if not may_replicate(row, held.domain):
            _end(row, held, outbox, "refused", publishes=False)


def admission_withdraw(*, rp: str, domain: str, now: datetime | None = None) -> bool:
    """Withdraw the admission of a domain that does not serve its replica; it is notified. Returns whether there was one.

    Raises NotFound, Gone, Conflict.
    """
    now = now or timezone.now()
    with change(now) as outbox:
        row = _own(rp, now)
        held = ReplicaAdmission.objects.filter(rp=row, domain=domain, revoked=False, expires_at__gt=now).first()
        if held is not None:
            _end(row, held, outbox, "refused", publishes=False)
            outbox.act("replica.withdraw", None, "rp", rp, who=domain)
    return held is not None


def admissions_purge(*, now: datetime | None = None) -> int:
    """Delete admissions that expired long ago. Returns how many."""
    now = now or timezone.now()
    return ReplicaAdmission.objects.filter(expires_at__lte=now - timedelta(seconds=KEPT_S)).delete()[0]


def documents_purge(*, now: datetime | None = None) -> int:
    """Delete documents of domains that are no peers and no longer participate in anything here. Returns how many."""
    now = now or timezone.now()
    rows = DocumentRow.objects.filter(received_at__lte=now - timedelta(days=1)).exclude(name=config().domain)
    rows = rows.exclude(name__in=Peer.objects.values("name"))
    rows = rows.exclude(name__in=ReplicaAdmission.objects.values("domain"))
    rows = rows.exclude(name__in=RendezvousPoint.objects.exclude(home="").values("home"))
    rows = rows.exclude(name__in=domains_of_records())
    return rows.delete()[0]


def _own(rp: str, now: datetime) -> RendezvousPoint:
    row = RendezvousPoint.objects.select_for_update().filter(id=rp, home="").first()
    if row is None:
        raise NotFound(f"There is no rendezvous point {rp} of {config().domain}.")
    if row.expires_at <= now:
        raise Gone(f"The rendezvous point {rp} has ended: its lease expired.")
    if row.descriptor is None:
        raise Conflict(
            f"The rendezvous point {rp} was created before replicas existed: its id does not contain its home's key."
            " Create a new one and move to it."
        )
    return row


def _require_place(row: RendezvousPoint, domain: str, now: datetime) -> None:
    others = ReplicaAdmission.objects.filter(rp=row).exclude(domain=domain)
    if others.filter(revoked=False, expires_at__gt=now).count() >= ADMISSIONS_MAX:
        raise QuotaExceeded(
            f"The rendezvous point {row.id} has {ADMISSIONS_MAX} replicas already, which is the most.",
            limit=ADMISSIONS_MAX,
        )
    # Ended admissions give their place to a new one, the first to end first.
    for old in others.order_by("-expires_at")[ADMISSIONS_MAX - 1 :]:
        old.delete()


def _until(join: Join, now: datetime) -> datetime:
    asked_s = max(join.lease_s, LEASE_S_MIN)
    return leases.grant(asked_s, now, default_s=config().lease_s_default, longest_s=config().lease_s_max).expires_at


def _issued_at_ms(held: ReplicaAdmission | None, now: datetime) -> int:
    """Return a time later than that of the previous statement, whatever the clock."""
    return max(int(now.timestamp() * 1000), held.issued_at_ms + 1 if held is not None else 0)


def _let_go(row: RendezvousPoint, held: ReplicaAdmission, join: Join, outbox: Outbox) -> None:
    held.asked_at_ms = join.at_ms
    _end(row, held, outbox, "left", publishes=True)
    outbox.act("replica.leave", None, "rp", row.id, who=held.domain)


def _end(row: RendezvousPoint, held: ReplicaAdmission, outbox: Outbox, reason: str, *, publishes: bool) -> None:
    """Replace an admission by one that ends now. `publishes`: what was sealed before now is still accepted; else the
    domain, which does not know of the end, is to be notified.
    """
    document = domain_document(held.domain)
    admission = Admission(
        row.id,
        config().domain,
        held.domain,
        held.url,
        document.fingerprint if document is not None else admission_read(unpacked(held.statement)).fingerprint,
        _issued_at_ms(held, outbox.now),
        int(outbox.now.timestamp() * 1000),
        publishes=publishes,
        term=row.term,
    )
    _keep(row, admission, held, asked_at_ms=held.asked_at_ms, now=outbox.now)
    ReplicaLink.objects.filter(rp=row, peer=held.domain).delete()
    _touched(row, outbox)
    _report(row.id, held.domain, reason, outbox)


def _keep(
    row: RendezvousPoint, admission: Admission, held: ReplicaAdmission | None, *, asked_at_ms: int, now: datetime
) -> None:
    key = signing_key(now)
    if key is None:
        raise Conflict(f"{config().domain} has no signing key yet. Try again.")
    _, created = ReplicaAdmission.objects.update_or_create(
        rp=row,
        domain=admission.domain,
        defaults={
            "url": admission.url,
            "statement": packed(admission_make(admission, key)),
            "issued_at_ms": admission.issued_at_ms,
            "asked_at_ms": asked_at_ms,
            "expires_at": datetime.fromtimestamp(admission.expires_at_ms / 1000, UTC),
            "revoked": not admission.publishes,
            **withdrawal(held, admission, now),
        },
    )
    if created or not admission.publishes:
        transaction.on_commit(announce, robust=True)  # whether its principals' tokens are accepted here has changed


def _touched(row: RendezvousPoint, outbox: Outbox) -> None:
    row.statements += 1
    row.save(update_fields=["statements"])
    outbox.announce(row.id)


def _report(rp: str, domain: str, reason: str, outbox: Outbox) -> None:
    outbox.event(events.REPLICA_REMOVED, rp, {"rp": rp, "domain": domain, "home": config().domain, "reason": reason})
