"""Creation, change, renewal and deletion of rendezvous points."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from eventing.access.rules.policy import OPEN_TO_DOMAIN, compile_policy
from eventing.access.services.policy_issuers import policy_issuers_keep
from eventing.audit.services import digest
from eventing.conf import config
from eventing.core import names
from eventing.core.errors import Conflict, InvalidRequest, PreconditionFailed
from eventing.core.events import history as history_bounds
from eventing.core.events.ack_level import Ack
from eventing.core.events.history import HistoryBounds
from eventing.core.ids import DOMAIN_ADMIN, admin_id, members_changed, rp_id
from eventing.core.principals import Principal
from eventing.core.timestamps import timestamp
from eventing.log import control
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.rest.idempotency_records import IdempotencyClaim, claim_fulfil
from eventing.rest.shapes import LeaseAnswer
from eventing.rps.models import REASON_CHARS_MAX, TITLE_CHARS_MAX, RendezvousPoint
from eventing.rps.ports import domain_fingerprint, policy_changed, rp_ending, subscriptions_ending_with
from eventing.rps.rules.entity_tags import tag_matches
from eventing.rps.rules.reliability import reliability_checked
from eventing.rps.selectors.event_data import rp_data
from eventing.rps.services.descriptors import descriptor_sign, properties_sign
from eventing.rps.services.permission import require_creation, require_home, rp_administered
from eventing.rps.services.quotas import require_domain_quota, require_rp_quota
from eventing.rps.services.watches import LOCAL, watches_announce, watches_change, watches_end, watches_set
from eventing.sql.leases import LEASE_COLUMNS, lease_grant, lease_renew
from eventing.sql.locking import lock_domain
from eventing.sql.random_ids import random_id

HISTORY_MEMBERS = ("max_events", "max_bytes", "max_age_s")
CHANGEABLE = ("name", "title", "history", "policy", "ack", "renew_on_use", "reliability")


def rendezvous_point_create(
    *,
    principal: Principal,
    name: str | None = None,
    title: str = "",
    lease_s: int | None = None,
    history: Mapping[str, int | None] | None = None,
    policy: Any = None,
    ack: str | None = None,
    renew_on_use: bool = True,
    reliability: float | None = None,
    audience: Any = None,
    watch: Any = None,
    claim: IdempotencyClaim | None = None,
    now: datetime | None = None,
) -> RendezvousPoint:
    """Create an RP whose creator is `principal`, or refuse the whole request.

    Args:
        name: hierarchical name under this domain; None for none.
        lease_s: requested lease in seconds; None for the domain's default. Longer than the domain's longest is
            shortened.
        history: requested bounds (`max_events`, `max_bytes`, `max_age_s`); absent or None ones take defaults.
        policy: policy document; None opens it to all of the domain.
        ack: acknowledgement level; None for the domain's default.
        renew_on_use: whether publishing and reading renew the lease (subscriptions/services/lease_use.py).
        reliability: target share of events that arrive at every participant in time, 0 to 1; None for no target.
        audience, watch: required readers, and watch rules (rps/rules/audience.py, rps/rules/watches.py); None for none.
        claim: idempotency claim that this creation fulfils.

    Raises InvalidRequest, Forbidden, Conflict (the name is taken), QuotaExceeded, and redis.RedisError before anything
    is made when the data plane cannot be reached.
    """
    now = now or timezone.now()
    require_creation(principal)
    row = RendezvousPoint(
        name=None if name is None else _own_name(name, config().domain),
        title=_title(title),
        creator=principal.identity,
        policy=OPEN_TO_DOMAIN if policy is None else policy,
        ack=_ack(config().ack_default if ack is None else ack),
        renew_on_use=renew_on_use,
        reliability=reliability_checked(reliability),
        created_at=now,
        changed_at=now,
        trimmed_at=now,
    )
    compile_policy(row.policy)
    row.bounds_set(_admitted(history or {}))
    lease_grant(row, lease_s, now)
    row.genesis = _genesis(row, now)
    row.id = rp_id(row.genesis)
    row.descriptor = descriptor_sign(row, now)
    row.property_statement = None if row.reliability is None else properties_sign(row, now)
    control.log_state(DOMAIN_ADMIN)  # check that the data plane answers
    with change(now) as outbox:
        lock_domain()
        _require_name_free(row, outbox)
        watches_set(row, {"audience": audience, "watch": watch}, now)
        require_domain_quota(row.max_bytes, rps=1)
        require_rp_quota(principal, row.creator, row.max_bytes, rps=1)
        row.save(force_insert=True)
        if policy_issuers_keep(row.id, row.policy):
            outbox.announce(row.id)
        if claim is not None:
            claim_fulfil(claim, row.id)
        outbox.ensure(row.id)
        outbox.event(events.RP_CREATED, row.id, {"rp": rp_data(row)}, domain_too=True, counted=True)
        outbox.lease_event(events.LEASE_GRANTED, row)
        watches_announce(row, outbox, by=principal.identity)
        outbox.act("rp.create", principal, "rp", row.id, name=row.name, granted_s=row.granted_s)
    return row


def rendezvous_point_update(
    *,
    reference: str,
    principal: Principal,
    changes: Mapping[str, Any],
    tags: frozenset[str] | None = None,
    now: datetime | None = None,
) -> RendezvousPoint:
    """Change the members in `changes` (of CHANGEABLE); `history` members not named stay, None ones take their defaults.

    At a replica only local members (LOCAL) can be changed; that makes no new version, but a new entity tag. `tags` are
    those that may be changed (If-Match, rps/rules/entity_tags.py); None for any. A request without effect keeps the
    version. Raises NotFound, Gone, Forbidden,
    PreconditionFailed, InvalidRequest, Conflict, QuotaExceeded.
    """
    now = now or timezone.now()
    unknown = sorted(set(changes) - set(CHANGEABLE) - set(LOCAL))
    if unknown:
        raise InvalidRequest(f"{', '.join(unknown)} cannot be changed.")
    with change(now) as outbox:
        lock_domain()
        row = rp_administered(reference, principal, now)
        if set(changes) - set(LOCAL):
            require_home(row)
        _require_tag(row, tags)
        watches_change(row, changes, principal, outbox)
        before = digest(row.policy)
        held_bytes = row.max_bytes
        changed = _apply(row, changes, outbox)
        if row.max_bytes > held_bytes:
            require_rp_quota(principal, row.creator, row.max_bytes - held_bytes)
        if changed:
            policy: dict[str, Any] = {"policy": [before, digest(row.policy)]} if "policy" in changed else {}
            outbox.act(
                "rp.update", principal, "rp", row.id, changed=changed, version=[row.version, row.version + 1], **policy
            )
            row.version += 1
            row.changed_at = now
            row.descriptor = descriptor_sign(row, now)
            if "reliability" in changed:
                row.property_statement = properties_sign(row, now)
            row.statements += 1
            row.save()
            if "policy" in changed:
                policy_issuers_keep(row.id, row.policy)
                policy_changed(row, outbox)
            if "history" in changed:
                outbox.ensure(row.id)
            outbox.announce(row.id, to_peers=True)
            outbox.event(events.RP_CHANGED, row.id, {"rp": rp_data(row), "changed": changed}, domain_too=True)
    return row


def rendezvous_point_renew(
    *, reference: str, principal: Principal, lease_s: int | None = None, now: datetime | None = None
) -> LeaseAnswer:
    """Renew the lease from now; `lease_s` as for a creation. Raises NotFound, Gone (it has already ended), Forbidden,
    InvalidRequest."""
    now = now or timezone.now()
    with change(now) as outbox:
        row = _administered(reference, principal, now)
        lease_renew(row, lease_s, now)
        row.save(update_fields=LEASE_COLUMNS)
        outbox.announce(row.id)
        outbox.lease_event(events.LEASE_RENEWED, row)
        outbox.act("rp.renew", principal, "rp", row.id, granted_s=row.granted_s)
    return LeaseAnswer.of(row)


def rendezvous_point_delete(
    *,
    reference: str,
    principal: Principal,
    tags: frozenset[str] | None = None,
    reason: str = "",
    now: datetime | None = None,
) -> None:
    """Delete the RP with its history and subscriptions; `tags` as for an update, `reason` for the audit. Raises NotFound,
    Gone, Forbidden, InvalidRequest, PreconditionFailed."""
    now = now or timezone.now()
    if len(reason) > REASON_CHARS_MAX or "\0" in reason:
        raise InvalidRequest(f"A reason is a text of at most {REASON_CHARS_MAX} characters.")
    stated = {"reason": reason} if reason else {}
    with change(now) as outbox:
        row = _administered(reference, principal, now)
        _require_tag(row, tags)
        outbox.act("rp.delete", principal, "rp", row.id, name=row.name, version=row.version, **stated)
        remove(row, outbox, "deleted")


def remove(row: RendezvousPoint, outbox: Outbox, reason: str) -> None:
    """Remove the RP, within the caller's transaction. Its administrative log is left to the sweep and readable until then."""
    data = {"rp": rp_data(row), "reason": reason, "subscriptions": subscriptions_ending_with(row.id)}
    rp = row.id
    rp_ending(row, outbox, reason)
    watches_end(row, outbox)
    row.delete()
    outbox.event(events.RP_DELETED, rp, data, domain_too=True, counted=True)
    outbox.announce(rp)
    outbox.announce(admin_id(rp))
    outbox.delete(rp)


def _administered(reference: str, principal: Principal, now: datetime) -> RendezvousPoint:
    """Return the RP, locked, if `principal` administers it and this domain is its home."""
    row = rp_administered(reference, principal, now)
    require_home(row)
    return row


def _apply(row: RendezvousPoint, changes: Mapping[str, Any], outbox: Outbox) -> list[str]:
    """Apply checked `changes` to `row`; return the names of the members that differ now."""
    before = _stated(row)
    if "name" in changes:
        row.name = None if changes["name"] is None else _own_name(changes["name"], row.authority)
        _require_name_free(row, outbox)
    if "title" in changes:
        row.title = _title(changes["title"])
    if "ack" in changes:
        row.ack = _ack(changes["ack"])
    if "policy" in changes:
        row.policy = OPEN_TO_DOMAIN if changes["policy"] is None else changes["policy"]
        compile_policy(row.policy)
    if "history" in changes:
        held = row.max_bytes
        row.bounds_set(_admitted({**_asked_of(row.bounds), **(changes["history"] or {})}))
        require_domain_quota(row.max_bytes - held)
    if "renew_on_use" in changes:
        row.renew_on_use = changes["renew_on_use"]
    if "reliability" in changes:
        row.reliability = reliability_checked(changes["reliability"])
    return members_changed(before, _stated(row))


def _stated(row: RendezvousPoint) -> dict[str, Any]:
    """Return the members in CHANGEABLE, as JSON."""
    return {
        "name": row.name,
        "title": row.title,
        "history": _asked_of(row.bounds),
        "policy": row.policy,
        "ack": row.ack,
        "renew_on_use": row.renew_on_use,
        "reliability": row.reliability,
    }


def _asked_of(bounds: HistoryBounds) -> dict[str, int | None]:
    return {"max_events": bounds.max_events, "max_bytes": bounds.max_bytes, "max_age_s": bounds.max_age_s}


def _admitted(asked: Mapping[str, int | None]) -> HistoryBounds:
    unknown = sorted(set(asked) - set(HISTORY_MEMBERS))
    if unknown:
        raise InvalidRequest(f"history has no member {', '.join(unknown)}.")
    return history_bounds.admit(
        asked.get("max_events"),
        asked.get("max_bytes"),
        asked.get("max_age_s"),
        events_max=config().history_events_max,
        bytes_max=config().history_bytes_max,
    )


def _ack(text: str) -> str:
    """Parse the acknowledgement level and check the number of Redis replicas. Raises InvalidRequest, Conflict."""
    ack = Ack.parse(text)
    needed = max(1, config().redis_replicas) if ack.all else ack.replicas
    if needed and (connected := control.replicas_connected()) < needed:
        raise Conflict(f"ack {ack} needs {needed} Redis replicas, and this domain's Redis has {connected}.")
    return str(ack)


def _own_name(name: str, authority: str) -> str:
    """Make the full name, which must be under the authority of the domain that created the RP."""
    path = names.normalise(name, authority)
    if not path.startswith(f"/{authority}/"):
        raise InvalidRequest(f"A name here begins with /{authority}/, or has no leading slash.")
    return path


def _title(title: str) -> str:
    if len(title) > TITLE_CHARS_MAX:
        raise InvalidRequest(f"A title has at most {TITLE_CHARS_MAX} characters.")
    return title


def _genesis(row: RendezvousPoint, now: datetime) -> dict[str, Any]:
    """Make the genesis that the id certifies: creator, domain and time of the definition, and its initial content."""
    key = domain_fingerprint()
    return {
        "domain": config().domain,
        **({"key": key} if key else {}),
        "creator": row.creator,
        "created_at": timestamp(now),
        "nonce": random_id(),
        "statement": {
            "name": row.name,
            "title": row.title,
            "history": _asked_of(row.bounds),
            "policy": row.policy,
            "ack": row.ack,
        },
    }


def _require_name_free(row: RendezvousPoint, outbox: Outbox) -> None:
    """Raise Conflict if another RP holds the name; an RP whose lease has ended is removed instead."""
    if row.name is None:
        return
    holder = RendezvousPoint.objects.select_for_update().filter(name=row.name).exclude(id=row.id).first()
    if holder is None:
        return
    if holder.expires_at > outbox.now:
        raise Conflict(f"The name {row.name} is taken.", name=row.name)
    outbox.lease_event(events.LEASE_EXPIRED, holder)
    remove(holder, outbox, "lease-expired")


def _require_tag(row: RendezvousPoint, tags: frozenset[str] | None) -> None:
    if tags is not None and not tag_matches(tags, row.entity_tag):
        raise PreconditionFailed(f'The present ETag is "{row.entity_tag}"; read it and repeat your change.')
