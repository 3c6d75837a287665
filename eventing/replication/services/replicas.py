"""Replicas of other domains' RPs: created as a whole or not at all, at a principal's request or the home's invitation,
and ended.

The life of a replica: a principal here requests it, or the home invites this domain -> the home admits this domain
(replication/joining/client.py) -> history is reserved from this domain's quota, and the replica exists, with a log of
its own -> links bring the events of the others -> its lease, which is the admission, is renewed while the home allows
-> left, refused, ended with the RP, or lapsed. replication/services/replica_statements.py applies the home's statements
meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from eventing.access.selectors.keys import signing_key
from eventing.conf import config
from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound
from eventing.core.principals import Principal
from eventing.core.signing import Signed
from eventing.core.timestamps import timestamp
from eventing.log import control
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.replication.models import HomeConsent
from eventing.replication.services.replica_descriptors import bounds_here, descriptor_apply, lease_apply, renewal_failed
from eventing.replication.services.replica_ends import end_forget
from eventing.replication.services.replica_statements import admission_store, issuers_keep, keys_by, replica_remove
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import NO_RECORD, HomeRecord, KeysOf, record_packed, record_verify
from eventing.rps.rules.statements import (
    Admission,
    BadStatement,
    DescriptorStatement,
    Join,
    admission_read,
    admission_verified,
    descriptor_read,
    descriptor_verified,
    join_make,
    packed,
)
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.event_data import rp_data
from eventing.rps.services.permission import require_creation
from eventing.rps.services.quotas import require_domain_quota, require_rp_quota
from eventing.sql.leases import is_due
from eventing.sql.locking import lock_domain
from eventing.sql.remembered import remembered

HISTORY_MEMBERS = ("max_events", "max_bytes", "max_age_s")
RENEW_BATCH = 100  # replicas in one sweep
logger = logging.getLogger(__name__)


def require_joiner(principal: Principal) -> None:
    """Raise Forbidden unless `principal` may make this domain hold a replica, which requires the right to create RPs here."""
    require_creation(principal)


def history_wish(history: Mapping[str, int | None] | None) -> dict[str, int | None]:
    """Return the requested history of a replica, validated; members that are not stated are the home's. Raises
    InvalidRequest.
    """
    wish = dict(history or {})
    unknown = sorted(set(wish) - set(HISTORY_MEMBERS))
    if unknown:
        raise InvalidRequest(f"history has no member {', '.join(unknown)}.")
    if any(value is not None and value < 1 for value in wish.values()):
        raise InvalidRequest("Each member of history must be at least 1.")
    return wish


def join_sign(*, rp: str, lease_s: int | None, now: datetime | None = None) -> Signed:
    """Sign a join of an RP for `lease_s` seconds (None: this domain's default; 0: a leave)."""
    now = now or timezone.now()
    key = signing_key(now)
    if key is None:
        raise Conflict("This domain has no signing key yet. Try again.")
    asked_s = min(config().lease_s_default if lease_s is None else lease_s, config().lease_s_max)
    return join_make(Join(rp, config().domain, config().base_url, asked_s, int(now.timestamp() * 1000)), key)


def replica_make(
    *,
    rp: str,
    principal: Principal,
    via: str,
    lease_s: int | None,
    history: Mapping[str, int | None],
    descriptor: Signed,
    admissions: Sequence[Signed],
    homes: HomeRecord = NO_RECORD,
    domains: Mapping[str, Signed] = MappingProxyType({}),
    now: datetime | None = None,
) -> RendezvousPoint:
    """Create the replica from the home's statements, or refuse as a whole.

    Args:
        principal: the principal that requests it, whose quota it counts against.
        via: the peer that was used to join.
        lease_s: the lease requested from the home.
        history: most history to keep, checked by `history_wish`.
        descriptor, admissions: the home's statements, this domain's among the admissions; the home's document is known.
        homes, domains: the record of hand-overs, and the documents from the answer that may verify it.

    Raises Conflict (it exists already, or the RP has ended), InvalidRequest (invalid statements), QuotaExceeded, and
    redis.RedisError before anything is created when the data plane cannot be reached.
    """
    now = now or timezone.now()
    said, admitted = _read(rp, descriptor, admissions, homes, keys_by(domains, now))
    own = next((one for one, _ in admitted if one.domain == config().domain), None)
    if own is None or not own.publishes or _moment(own.expires_at_ms) <= now:
        raise InvalidRequest(
            f"{said.home} did not admit this domain: there is no valid admission of {config().domain}."
        )
    row = RendezvousPoint(
        id=rp,
        home=said.home,
        via=via,
        creator=principal.identity,
        history_asked=dict(history),
        asked_s=lease_s,
        created_at=now,
        changed_at=now,
        trimmed_at=now,
        statements=1,
        term=said.term,
        homes=None if homes == NO_RECORD else record_packed(homes),
    )
    row.bounds_set(bounds_here(said.history, history))
    control.log_states([rp])  # the data plane answers
    with change(now) as outbox:
        lock_domain()
        there = RendezvousPoint.objects.filter(id=rp).first()
        if there is not None:
            raise Conflict(f"The rendezvous point {rp} exists here already.")
        descriptor_apply(row, said)
        row.descriptor = packed(descriptor)
        lease_apply(row, _moment(own.expires_at_ms), now)
        require_domain_quota(row.max_bytes, rps=1)
        require_rp_quota(principal, row.creator, row.max_bytes, rps=1)
        row.save(force_insert=True)
        outbox.event(events.RP_CREATED, rp, {"rp": rp_data(row)}, domain_too=True, counted=True)
        for one, statement in admitted:
            admission_store(row, one, statement, None, now)
            if one is not own and one.publishes and _moment(one.expires_at_ms) > now:
                expires_at = timestamp(_moment(one.expires_at_ms))
                data = {"rp": rp, "domain": one.domain, "home": row.home, "expires_at": expires_at}
                outbox.event(events.REPLICA_ADDED, rp, data)
        issuers_keep(row)
        end_forget(rp)
        outbox.ensure(rp)
        outbox.announce(rp)
        data = {"rp": rp, "domain": config().domain, "home": row.home, "expires_at": timestamp(row.expires_at)}
        outbox.event(events.REPLICA_ADDED, rp, data, domain_too=True)
        outbox.lease_event(events.LEASE_GRANTED, row)
        outbox.act("replica.join", principal, "rp", rp, home=row.home, via=via, granted_s=row.granted_s)
    return row


def replica_leave(*, rp: str, principal: Principal, now: datetime | None = None) -> RendezvousPoint:
    """Delete the replica with its history and the durable subscriptions here. Returns the former row.

    For the principal that requested it, and administrators. Raises NotFound (no replica here), Forbidden.
    """
    now = now or timezone.now()
    with change(now) as outbox:
        row = RendezvousPoint.objects.select_for_update().filter(id=rp).exclude(home="").first()
        if row is None:
            raise NotFound(f"There is no replica of {rp} here. `herald replica list` shows all replicas.")
        asked_for = principal.identity == row.creator and principal.permits("administer", rp, row.name or "")
        if not asked_for and not descriptor_of(row).allows(principal, "administer"):
            raise Forbidden("Ending a replica is for the principal that requested it and for administrators.")
        if HomeConsent.objects.filter(rp=rp, until__gt=now).exists():
            raise Conflict(f"This domain has just agreed to become the home of {rp}. Try again in a minute.")
        outbox.act("replica.leave", principal, "rp", rp, home=row.home)
        replica_remove(row, outbox, "left")
        row.id = rp
    return row


def replicas_to_renew(*, now: datetime | None = None) -> list[RendezvousPoint]:
    """Return replicas whose lease is to be renewed; at most RENEW_BATCH, of the homes in turn, the soonest to expire
    first.

    Homes grant the leases: by expiry alone, one home with many short leases would leave no room for others.
    """
    now = now or timezone.now()
    if not is_due(_first_renewal(), now):
        return []
    rows = RendezvousPoint.objects.filter(renew_at__lte=now, expires_at__gt=now).exclude(home="")
    turn = Window(RowNumber(), partition_by=F("home"), order_by=F("expires_at").asc())
    return list(rows.annotate(turn=turn).order_by("turn", "expires_at")[:RENEW_BATCH])


@remembered
def _first_renewal() -> datetime | None:
    rows = RendezvousPoint.objects.exclude(renew_at=None).exclude(home="").order_by("renew_at")
    return rows.values_list("renew_at", flat=True).first()


def renewal_note_failed(*, rp: str, now: datetime | None = None) -> bool:
    """Record a failed renewal: it is retried later, until the lease expires. Returns whether the replica still exists."""
    now = now or timezone.now()
    row = RendezvousPoint.objects.filter(id=rp).exclude(home="").first()
    if row is None:
        return False
    renewal_failed(row, now)
    return bool(RendezvousPoint.objects.filter(id=rp).update(renew_at=row.renew_at))


def _read(
    rp: str, descriptor: Signed, admissions: Sequence[Signed], homes: HomeRecord, keys_of: KeysOf
) -> tuple[DescriptorStatement, list[tuple[Admission, Signed]]]:
    """Return the home's statements, verified. Raises InvalidRequest, Conflict for an RP that has ended."""
    try:
        claimed = descriptor_read(descriptor)
        if claimed.rp != rp:
            raise BadStatement("The answer is about another rendezvous point.")
        present = record_verify(rp, claimed.genesis, homes, keys_of)
        home = present.domain
        keys = keys_of(home, present.fingerprint) or domain_keys(home)
        if not keys:
            raise InvalidRequest(f"The domain {home} is not known here. Peer with it, or add its domain document.")
        said = descriptor_verified(descriptor, keys, term=present.term, home=home, fingerprint=present.fingerprint)
        some = [one for one in admissions if admission_read(one).term == present.term]
        admitted = [(admission_verified(one, keys, rp=rp, home=home, term=present.term), one) for one in some]
    except BadStatement as error:
        raise InvalidRequest(f"The answer is invalid: {error}") from None
    if said.ended:
        raise Conflict(f"The rendezvous point {rp} has ended at its home {said.home}.")
    return said, admitted


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
