"""Peers: administrators' decisions about other domains, and changes by other domains' hellos.

The transitions are data (peering/rules/peers.py). Every change of state is an act in the audit and an event on
`domain.admin`. Messages are sent by peering/wire/hello.py; nothing here waits for another domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db import transaction
from django.utils import timezone

from eventing.access.rules.policy_issuers import ANYONE, DOMAIN, is_address
from eventing.access.services.revocations import announce
from eventing.conf import config
from eventing.core import leases
from eventing.core.decoding import msgpack_reader
from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, QuotaExceeded
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.core.roles import oversees
from eventing.core.signing import Signed
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.peering.models import Peer
from eventing.peering.rules import domain_documents, peers
from eventing.peering.rules.acquaintances import AcquaintanceEnd
from eventing.peering.rules.domain_documents import BadDocument, VerifiedDomainDocument, fingerprint_read
from eventing.peering.rules.peers import PeeringAction, PeeringState, Stance
from eventing.peering.selectors.domain_documents import domain_document
from eventing.peering.selectors.event_data import peer_data
from eventing.peering.selectors.peers import peer_row, peers_forget
from eventing.peering.selectors.token_issuers import takes_part
from eventing.peering.services.acquaintances import acquaintance_ends
from eventing.peering.services.deliveries import delivery_resumed
from eventing.peering.services.domain_documents import document_accept, document_forget, document_pin
from eventing.peering.services.evidence import evidence_forget
from eventing.sql.leases import expires_first, is_due
from eventing.sql.locking import lock_domain, locked_batch

TRUST = ("push", "host", "gossip")
RATES = ("events_per_s", "bytes_per_s", "requests_per_s")
RESERVED = (DOMAIN, ANYONE, "look")  # words of policies and of paths that a domain's name must not be taken for
CONTACT_S = 300  # least time between two renewals of a lease by contact: a write in five minutes, not one a request
REAP_BATCH = 200
_packed = msgspec.msgpack.Encoder().encode
_unpacked = msgpack_reader(Signed)
ENTERED: Mapping[PeeringState, str] = {
    PeeringState.PROPOSED: events.PEER_PROPOSED,
    PeeringState.ASKED: events.PEER_ASKED,
    PeeringState.ACTIVE: events.PEER_ACTIVE,
    PeeringState.SUSPENDED: events.PEER_SUSPENDED,
}
"""The administrative event that reports the entry of a peer into a state."""
DECLINED = "The domain declined, or has removed this one. To ask it again: herald peer add"


def peer_add(
    *,
    principal: Principal,
    statement: Signed,
    fingerprint: str,
    url: str = "",
    note: str = "",
    now: datetime | None = None,
    **stated: Any,
) -> Peer:
    """Add a domain whose fingerprint an administrator compared; one that asks already becomes active.

    Args:
        principal: an administrator whose token is not narrowed.
        statement: the other domain's document.
        fingerprint: as the administrator compared it; must be the document's.
        url: address of the domain; empty for the address in its document.
        stated: of TRUST (bool) and RATES (int); the others keep their value or default.

    Returns the peer. Repeating the call changes nothing but what is stated. Raises Forbidden, InvalidRequest, Conflict
    (another fingerprint, suspended), QuotaExceeded.
    """
    now = now or timezone.now()
    require_administrator(principal)
    document = document_read(statement)
    name = document.domain
    _require_fingerprint(name, document.fingerprint, fingerprint)
    with change(now) as outbox:
        lock_domain()
        row = Peer.objects.select_for_update().filter(name=name).first()
        if row is None:
            _require_room(PeeringState.PROPOSED, peers.PEERS_MAX)
            row = Peer(name=name, created_at=now, fingerprint=document.fingerprint)
        elif row.fingerprint != document.fingerprint and row.state != PeeringState.ASKED:
            raise Conflict(f"{name} is a peer with another fingerprint. Remove it first, if it was installed anew.")
        state = peers.on_action(_state(row), PeeringAction.ADD, _theirs(row), name)
        if row.theirs == Stance.LEAVES:  # its answer to an earlier proposal
            row.theirs = ""
        _apply(row, stated)
        row.url, row.fingerprint, row.note = _checked_url(url or document.url), document.fingerprint, note or row.note
        _pin(statement, document.fingerprint, now)
        _enter(row, state, now, outbox, principal=principal, action="peer.add")
    return row


def peer_approve(
    *,
    principal: Principal,
    name: str,
    fingerprint: str,
    url: str = "",
    now: datetime | None = None,
    **stated: Any,
) -> Peer:
    """Approve a domain that asks, whose fingerprint an administrator compared; the peer becomes active.

    Its document is the one in its hello. Arguments as of `peer_add`. Raises Forbidden, NotFound, InvalidRequest,
    Conflict, QuotaExceeded.
    """
    now = now or timezone.now()
    require_administrator(principal)
    with change(now) as outbox:
        lock_domain()
        row = _locked(name)
        state = peers.on_action(_state(row), PeeringAction.APPROVE, _theirs(row), name)
        _require_fingerprint(name, row.fingerprint, fingerprint)
        if row.state == PeeringState.ASKED:
            _require_room(PeeringState.PROPOSED, peers.PEERS_MAX)
            _pin(asked_statement(row), row.fingerprint, now)
        _apply(row, stated)
        row.url = _checked_url(url) if url else row.url
        _enter(row, state, now, outbox, principal=principal, action="peer.approve")
    return row


def peer_suspend(*, principal: Principal, name: str, note: str | None = None, now: datetime | None = None) -> Peer:
    """Suspend a peer until it is resumed: nothing is exchanged, its tokens are refused, and it is notified.

    Raises Forbidden, NotFound, Conflict.
    """
    return _act(principal, name, PeeringAction.SUSPEND, "peer.suspend", note, now)


def peer_resume(*, principal: Principal, name: str, note: str | None = None, now: datetime | None = None) -> Peer:
    """Resume a suspended peer. Raises Forbidden, NotFound, Conflict."""
    return _act(principal, name, PeeringAction.RESUME, "peer.resume", note, now)


def peer_change(
    *,
    principal: Principal,
    name: str,
    url: str | None = None,
    note: str | None = None,
    now: datetime | None = None,
    **stated: Any,
) -> Peer:
    """Change what a peer may do (TRUST), how much it may send (RATES), its address or the note on it.

    Raises Forbidden, NotFound, InvalidRequest.
    """
    now = now or timezone.now()
    require_administrator(principal)
    with change(now) as outbox:
        row = _locked(name)
        before = {member: getattr(row, member) for member in (*TRUST, *RATES, "url", "note")}
        _apply(row, stated)
        row.url = row.url if url is None else _checked_url(url)
        row.note = row.note if note is None else note
        changed = sorted(member for member, value in before.items() if value != getattr(row, member))
        if changed:
            row.changed_at = now
            row.hello_failures = 0 if "url" in changed else row.hello_failures
            row.save()
            delivery_resumed(peer=name, now=now)
            outbox.event(events.PEER_CHANGED, DOMAIN_ADMIN, {"peer": peer_data(row), "changed": changed})
            details: dict[str, Any] = {member: [before[member], getattr(row, member)] for member in changed}
            outbox.act("peer.change", principal, "peer", name, **details)
            transaction.on_commit(_changed, robust=True)
    return row


def peer_remove(*, principal: Principal, name: str, now: datetime | None = None) -> Peer:
    """Remove a peer, or decline one that asks. Its keys are deleted unless a replica here needs them; its events are
    kept.

    Returns the former row: its address is where the notice is sent (peering/wire/hello.py: farewell).
    Raises Forbidden, NotFound.
    """
    now = now or timezone.now()
    require_administrator(principal)
    with change(now) as outbox:
        lock_domain()
        row = _locked(name)
        state = peers.on_action(_state(row), PeeringAction.REMOVE, _theirs(row), name)
        _enter(row, state, now, outbox, principal=principal, action="peer.remove", reason="removed")
        evidence_forget(name)
    return row


def hello_received(*, statement: Signed, stance: Stance, at_ms: int, now: datetime | None = None) -> Peer | None:
    """Apply another domain's hello, or its answer to a hello. The sender was verified before.

    Args:
        statement: the sender's document; stored for a domain that only asks, else only its name is used here.
        stance: the sender's stance towards this domain.
        at_ms: start of that stance, by the sender's clock. A stance older than the known one is of a late hello and
            changes nothing.

    Returns the peer afterwards, None for none. Raises Conflict (the same name with another key asks), QuotaExceeded.
    """
    now = now or timezone.now()
    document = document_read(statement)
    name = document.domain
    with change(now) as outbox:
        lock_domain()
        row = Peer.objects.select_for_update().filter(name=name).first()
        before = _state(row)
        if row is not None and row.fingerprint != document.fingerprint:
            raise Conflict(f"{name} is known here with another first key.", state=before)
        if row is not None:
            _contacted(row, now)
        if row is not None and at_ms < row.theirs_at_ms:
            row.save()
            return row
        after = peers.on_hello(before, stance)
        if row is None:
            if after is None:
                return None
            _require_room(PeeringState.ASKED, peers.ASKED_MAX)
            row = Peer(name=name, created_at=now, fingerprint=document.fingerprint, url=_checked_url(document.url))
        if stance is Stance.APPROVES and row.theirs != stance:  # it accepts what is sent (again)
            delivery_resumed(peer=name, now=now)
        moved = row.theirs != stance
        declined = stance is Stance.LEAVES and moved
        row.theirs, row.theirs_at_ms = stance, at_ms
        if after is PeeringState.ASKED:
            row.asked_document = _packed(statement)
        if after is not before:
            _enter(row, after, now, outbox, who=name, action="peer.hello", reason="left" if after is None else "")
        else:
            row.hello_at = (row.hello_at or now) if peers.greets(PeeringState(row.state), stance) else None
            row.save()
        if declined and after is PeeringState.PROPOSED:
            data = {"peer": peer_data(row), "reason": DECLINED}
            outbox.event(events.PEER_DECLINED, DOMAIN_ADMIN, data)
        elif moved and after is before:
            outbox.event(events.PEER_CHANGED, DOMAIN_ADMIN, {"peer": peer_data(row), "changed": ["theirs"]})
    return None if after is None else row


def peer_document_followed(statement: Signed, *, name: str, now: datetime | None = None) -> VerifiedDomainDocument:
    """Accept the newer document of a known domain: its keys, and its address if that is the one in use.

    Returns the document that is trusted afterwards, which may be the one held before. Raises BadDocument when the
    document is another domain's, or newer and not signed by a trusted key.
    """
    now = now or timezone.now()
    if domain_documents.claimed(statement).domain != name:
        raise BadDocument(f"The domain document is not of {name}.")
    with change(now) as outbox:
        lock_domain()
        before = domain_document(name)
        held = document_accept(statement, now=now)
        if before is None or held.serial == before.serial:
            return held
        row = Peer.objects.select_for_update().filter(name=name).first()
        if row is None:
            return held
        if row.url == before.url:  # not if an administrator here stated another address
            row.url = held.url
        row.save(update_fields=["url"])
        delivery_resumed(peer=name, now=now)
        data = {"peer": peer_data(row), "serial": held.serial}
        outbox.event(events.PEER_REKEYED, DOMAIN_ADMIN, data)
        details: dict[str, Any] = {
            "serial": [before.serial, held.serial],
            "keys": sorted(set(held.jwks) - set(before.jwks)),
        }
        outbox.act("peer.rekey", None, "peer", name, who=name, **details)
        transaction.on_commit(_changed, robust=True)
    return held


def peer_contacted(name: str, *, now: datetime | None = None) -> None:
    """Renew the peer's lease after authenticated contact. Writes at most once in CONTACT_S."""
    now = now or timezone.now()
    due = now - timedelta(seconds=CONTACT_S)
    row = Peer.objects.filter(name=name).only("state", "heard_at").first()
    if row is None or (row.heard_at is not None and row.heard_at > due):
        return
    granted = _lease(row.state, now)
    Peer.objects.filter(name=name, state=row.state).update(
        heard_at=now,
        granted_s=granted.granted_s,
        warn_at=granted.warn_at,
        warned_at=None,
        expires_at=granted.expires_at,
    )


def peers_expire(*, now: datetime | None = None) -> int:
    """Remove one batch of peers whose leases have expired without contact. Returns how many."""
    now = now or timezone.now()
    ended = Peer.objects.filter(expires_at__lte=now).order_by("expires_at")
    if not is_due(expires_first(Peer), now):
        return 0
    with change(now) as outbox:
        rows = locked_batch(ended, REAP_BATCH)
        for row in rows:
            _enter(row, None, now, outbox, who=DOMAIN, action="peer.expire", reason="lease-expired")
    return len(rows)


def require_administrator(principal: Principal) -> None:
    """Raise Forbidden unless the principal is an administrator whose token is not narrowed."""
    if not principal.admin or principal.narrowed:
        raise Forbidden("Decisions about peers require an administrator's token that is not narrowed.")


def require_overseer(principal: Principal) -> None:
    """Raise Forbidden unless the principal oversees the domain: administrator, operator or viewer."""
    if not oversees(principal):
        raise Forbidden("Reading the domain's peers requires the role administrator, operator or viewer.")


def document_read(statement: Signed) -> VerifiedDomainDocument:
    """Return the document of another domain. Raises InvalidRequest: it contradicts itself, or has a reserved name."""
    try:
        document = domain_documents.read(statement)
    except BadDocument as error:
        raise InvalidRequest(str(error)) from None
    if document.domain == config().domain:
        raise InvalidRequest(
            f"The other domain is called {document.domain}, as this one is: each needs a name of its own "
            "(HERALD_DOMAIN)."
        )
    if document.domain in RESERVED:
        raise InvalidRequest(f"A peer cannot be called {document.domain}: the word is reserved.")
    return document


def asked_statement(row: Peer) -> Signed:
    """Return the document in a domain's hello. Raises NotFound if the domain does not ask."""
    if row.asked_document is None:
        raise NotFound(f"{row.name} does not ask to be a peer.")
    return _unpacked(bytes(row.asked_document))


# Changes of a row


def _act(
    principal: Principal, name: str, act: PeeringAction, action: str, note: str | None, now: datetime | None
) -> Peer:
    now = now or timezone.now()
    require_administrator(principal)
    with change(now) as outbox:
        lock_domain()
        row = _locked(name)
        state = peers.on_action(_state(row), act, _theirs(row), name)
        row.note = row.note if note is None else note
        _enter(row, state, now, outbox, principal=principal, action=action)
    return row


def _enter(
    row: Peer,
    state: PeeringState | None,
    now: datetime,
    outbox: Outbox,
    *,
    action: str,
    principal: Principal | None = None,
    who: str = "",
    reason: str = "",
) -> None:
    """Set the row to `state` (None: remove it), report the change, and make a notice to the other domain due."""
    before = None if row._state.adding else PeeringState(row.state)
    if state is None:
        data = {"peer": peer_data(row), "reason": reason}
        if before is not PeeringState.ASKED and not takes_part(row.name):
            document_forget(row.name)
        Peer.objects.filter(pk=row.pk).delete()
        outbox.event(events.PEER_REMOVED, DOMAIN_ADMIN, data)
    else:
        row.state = state
        if state is not PeeringState.ASKED:
            row.asked_document = None
        row.hello_at = now if peers.greets(state, _theirs(row)) else None
        row.hello_failures = 0
        if before is not state:
            row.changed_at = now
        if before is None or before is PeeringState.ASKED:  # a lease of its own kind begins
            _contacted(row, now)
        row.save()
        if state is PeeringState.ACTIVE:
            delivery_resumed(peer=row.name, now=now)
            acquaintance_ends(row.name, AcquaintanceEnd.APPROVED, outbox)
        elif state is PeeringState.SUSPENDED:
            acquaintance_ends(row.name, AcquaintanceEnd.SUSPENDED, outbox)
        if before is not state:
            outbox.event(ENTERED[state], DOMAIN_ADMIN, {"peer": peer_data(row)})
    if state is not before or principal is not None:
        details = {"state": [before, state], "fingerprint": row.fingerprint, **({"reason": reason} if reason else {})}
        outbox.act(action, principal, "peer", row.name, who=who, **details)
    transaction.on_commit(_changed, robust=True)


def _changed() -> None:
    """Discard cached peers in this process and all gateways."""
    peers_forget()
    announce()


def _state(row: Peer | None) -> PeeringState | None:
    return None if row is None or row._state.adding else PeeringState(row.state)


def _theirs(row: Peer) -> Stance | None:
    return Stance(row.theirs) if row.theirs else None


def _locked(name: str) -> Peer:
    peer_row(name)
    return Peer.objects.select_for_update().get(name=name)


def _lease(state: str, now: datetime) -> leases.Grant:
    longest_s = peers.ASKED_LEASE_S if state == PeeringState.ASKED else peers.LEASE_S
    return leases.grant(None, now, default_s=longest_s, longest_s=longest_s)


def _contacted(row: Peer, now: datetime) -> None:
    granted = _lease(row.state, now)
    row.granted_s, row.warn_at, row.expires_at = granted.granted_s, granted.warn_at, granted.expires_at
    row.warned_at, row.heard_at = None, now


def _apply(row: Peer, stated: Mapping[str, Any]) -> None:
    for member, value in stated.items():
        if member not in (*TRUST, *RATES):
            raise InvalidRequest(f"{member} is not a setting of a peer.")
        if member in RATES and not 1 <= value <= peers.RATE_MAX:
            raise InvalidRequest(f"{member} must be from 1 to {peers.RATE_MAX}.")
        setattr(row, member, value)


def _pin(statement: Signed, fingerprint: str, now: datetime) -> None:
    try:
        document_pin(statement, fingerprint=fingerprint, now=now)
    except BadDocument as error:
        raise InvalidRequest(str(error)) from None


def _require_fingerprint(name: str, found: str, stated: str) -> None:
    if fingerprint_read(stated) != found:
        raise Conflict(
            f"The fingerprint of {name} is {found}, which is not the one that you stated. Compare it with its "
            "administrator; if it still differs, somebody intercepts the connection.",
            fingerprint=found,
        )


def _require_room(state: PeeringState, most: int) -> None:
    rows = (
        Peer.objects.filter(state=state)
        if state is PeeringState.ASKED
        else Peer.objects.exclude(state=PeeringState.ASKED)
    )
    if rows.count() >= most:
        what = "domains wait to be approved" if state is PeeringState.ASKED else "peers are known"
        raise QuotaExceeded(f"{most} {what} here already, which is the most. Remove some.", limit=most)


def _checked_url(url: str) -> str:
    url = url.rstrip("/")
    if len(url) > peers.URL_CHARS_MAX or "?" in url or not is_address(url):
        raise InvalidRequest(
            "The other domain's address must be https://HOST, at most 255 characters (http on this machine only)."
        )
    return url
