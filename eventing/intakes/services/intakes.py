"""Writes of intakes: create, change, renew, delete.

An intake lets everybody who has its address publish as its owner. So all of it requires the operation `administer` at the RP,
whose holder may open the RP to anybody anyway, and what is received is checked against the RP's policy each time.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from eventing.conf import config
from eventing.core.errors import Forbidden, InvalidRequest, PreconditionFailed, QuotaExceeded
from eventing.core.events.cloudevents_attributes import is_string, is_uri_reference
from eventing.core.principals import Principal
from eventing.intakes.models import SOURCE_CHARS_MAX, TITLE_CHARS_MAX, Intake
from eventing.intakes.rules.formats import FORMATS, HEADER_CHARS_MAX, HOOKS, NAMES, WEBSUB
from eventing.intakes.rules.signatures import check_secret
from eventing.intakes.selectors.intakes import (
    hash_of,
    intake_data,
    intake_get,
    intake_principal,
    intakes_at,
    intakes_of,
    secret_place,
)
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.rest.shapes import LeaseAnswer
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.services.permission import rp_administered
from eventing.sql.leases import LEASE_COLUMNS, lease_grant, lease_renew
from eventing.sql.random_ids import random_id
from eventing.sql.sealed import sealed
from eventing.store.intake_uses import intake_uses_forget

INTAKES_PER_RP_MAX = 100  # bound: intakes of a rendezvous point; `quota-exceeded`
ROTATION_S = 86_400  # bound: seconds for which the secret before the last change is accepted; it is no longer accepted
TOKEN_BYTES = 32  # random: nobody finds an address by trying
RP_ENDED = "rp-ended"
CHANGEABLE = ("title", "secret", "timestamp_header")
_HEADER = re.compile(rf"[A-Za-z0-9-]{{1,{HEADER_CHARS_MAX}}}", re.ASCII)


def intake_create(
    *,
    reference: str,
    principal: Principal,
    kind: str = "plain",
    title: str = "",
    source: str | None = None,
    secret: str | None = None,
    timestamp_header: str = "",
    lease_s: int | None = None,
    now: datetime | None = None,
) -> tuple[Intake, str]:
    """Create an intake at an RP. Returns the row, and the address, which is not stored.

    Args:
        kind: name of a format (rules/formats.py).
        source: `source` of events whose sender states none; None for `/DOMAIN/intakes/ID`. Of websub: the topic.
        secret: the sender's secret; needed by formats that are signed.
        timestamp_header: of Grafana: the header with the signature's time; empty for none.
        lease_s: requested lease, seconds; None for the longest.

    Raises NotFound, Gone, Forbidden, InvalidRequest, QuotaExceeded.
    """
    now = now or timezone.now()
    if kind not in FORMATS:
        raise InvalidRequest(f"format is one of {', '.join(NAMES)}.")
    intake, token = f"in_{random_id()}", f"hk_{secrets.token_urlsafe(TOKEN_BYTES)}"
    row = Intake(
        id=intake,
        token_hash=hash_of(token),
        owner=principal.identity,
        format=kind,
        title=_title(title),
        source=_source(source, intake, kind),
        secret=_sealed(kind, secret, intake),
        timestamp_header=_timestamp_header(kind, timestamp_header, secret is not None),
        created_at=now,
    )
    lease_grant(row, lease_s, now)
    with change(now) as outbox:
        rp = rp_administered(reference, principal, now)
        if not principal.local:
            raise Forbidden("Creating an intake requires a token of this domain: the intake publishes as its owner.")
        row.rp = rp
        _require_may_publish(row, rp)
        if intakes_at(rp.id) >= INTAKES_PER_RP_MAX:
            raise QuotaExceeded(
                f"A rendezvous point has at most {INTAKES_PER_RP_MAX} intakes.", limit=INTAKES_PER_RP_MAX
            )
        row.save(force_insert=True)
        outbox.event(events.INTAKE_CREATED, row.rp_id, {"intake": intake_data(row)}, domain_too=True)
        outbox.lease_event(events.LEASE_GRANTED, row)
        outbox.act("intake.create", principal, "intake", row.id, rp=row.rp_id, format=kind, granted_s=row.granted_s)
    return row, f"{config().base_url}{HOOKS}{token}"


def intake_update(
    *,
    intake_id: str,
    principal: Principal,
    changes: Mapping[str, Any],
    versions: frozenset[int] | None = None,
    now: datetime | None = None,
) -> Intake:
    """Change title, secret or header of an intake. The secret before stays valid for ROTATION_S seconds.

    Args:
        changes: new values of members in CHANGEABLE; `secret` None removes it at once, where the format needs none.
        versions: those of If-Match; None for any.

    Raises NotFound, Gone, Forbidden, PreconditionFailed, InvalidRequest.
    """
    now = now or timezone.now()
    with change(now) as outbox:
        row = _administered(intake_id, principal, now)
        if versions is not None and row.version not in versions:
            raise PreconditionFailed(
                f"The intake's version is {row.version} now. Read it again and repeat your change."
            )
        if "title" in changes:
            row.title = _title(changes["title"])
        if "secret" in changes:
            _secret_replace(row, changes["secret"], now)
        header = changes.get("timestamp_header", row.timestamp_header)
        row.timestamp_header = _timestamp_header(row.format, header, row.secret is not None)
        row.version += 1
        row.save()
        outbox.announce(row.rp_id)
        outbox.event(events.INTAKE_CHANGED, row.rp_id, {"intake": intake_data(row)}, domain_too=True)
        changed = [name for name in CHANGEABLE if name in changes]
        outbox.act("intake.update", principal, "intake", row.id, rp=row.rp_id, changed=changed)
    return row


def intake_renew(
    *, intake_id: str, principal: Principal, lease_s: int | None = None, now: datetime | None = None
) -> LeaseAnswer:
    """Renew the lease from now. Raises NotFound, Gone (it has expired already), Forbidden, InvalidRequest."""
    now = now or timezone.now()
    with change(now) as outbox:
        row = _administered(intake_id, principal, now)
        lease_renew(row, lease_s, now)
        row.save(update_fields=LEASE_COLUMNS)
        outbox.announce(row.rp_id)
        outbox.lease_event(events.LEASE_RENEWED, row)
        outbox.act("intake.renew", principal, "intake", row.id, rp=row.rp_id, granted_s=row.granted_s)
    return LeaseAnswer.of(row)


def intake_delete(
    *, intake_id: str, principal: Principal, versions: frozenset[int] | None = None, now: datetime | None = None
) -> None:
    """End an intake: its address receives nothing any more.

    Args:
        versions: those of If-Match; None for any.

    Raises NotFound, Gone, Forbidden, PreconditionFailed.
    """
    now = now or timezone.now()
    with change(now) as outbox:
        row = _administered(intake_id, principal, now)
        if versions is not None and row.version not in versions:
            raise PreconditionFailed(
                f"The intake's version is {row.version} now. Read it again and repeat your change."
            )
        outbox.act("intake.delete", principal, "intake", row.id, rp=row.rp_id)
        remove(row, outbox, "deleted")


def remove(row: Intake, outbox: Outbox, reason: str) -> None:
    """Delete the intake within the caller's transaction."""
    data, rp, intake = {"intake": intake_data(row), "reason": reason}, row.rp_id, row.id
    transaction.on_commit(lambda: intake_uses_forget(rp, intake), robust=True)
    row.delete()
    outbox.announce(rp)
    outbox.event(events.INTAKE_DELETED, rp, data, domain_too=True)


def intakes_rp_ends(row: RendezvousPoint, outbox: Outbox, reason: str) -> None:
    """Report the intakes that end with an RP (rps/ports.py: rp_ending); their rows are deleted with its row."""
    for intake in intakes_of(row.id):
        remove(intake, outbox, RP_ENDED)


def _administered(intake_id: str, principal: Principal, now: datetime) -> Intake:
    """Return the intake, locked, if `principal` administers its RP."""
    row = intake_get(intake_id, now=now)
    rp_administered(row.rp_id, principal, now)
    return intake_get(intake_id, now=now, lock=True)


def _require_may_publish(row: Intake, rp: RendezvousPoint) -> None:
    """Raise Forbidden if the policy does not let the intake publish as its owner."""
    who = intake_principal(row.id, rp.id, row.owner, row.created_at, row.expires_at)
    if not descriptor_of(rp).allows(who, "publish"):
        raise Forbidden(
            f"The intake would publish as {row.owner}, whom the policy does not allow to publish here. Add a rule for this "
            "subject, or let the rendezvous point's creator make the intake."
        )


def _secret_replace(row: Intake, secret: str | None, now: datetime) -> None:
    new = _sealed(row.format, secret, row.id)
    keep = row.secret is not None and new is not None
    row.previous = row.secret if keep else None
    row.previous_until = now + timedelta(seconds=ROTATION_S) if keep else None
    row.secret = new


def _sealed(kind: str, secret: str | None, intake: str) -> bytes | None:
    if secret is None:
        if FORMATS[kind].secret_needed:
            raise InvalidRequest(f"The format {kind} needs the secret with which the sender signs.")
        return None
    check_secret(kind, secret)
    return sealed(secret, secret_place(intake))


def _title(title: str) -> str:
    if len(title) > TITLE_CHARS_MAX:
        raise InvalidRequest(f"A title has at most {TITLE_CHARS_MAX} characters.")
    return title


def _source(source: str | None, intake: str, kind: str) -> str:
    if kind == WEBSUB and not (source or "").startswith(("http://", "https://")):
        raise InvalidRequest("The format websub needs source: the address of the topic, as its hub names it.")
    if source is None:
        return f"/{config().domain}/intakes/{intake}"
    if len(source) > SOURCE_CHARS_MAX or not is_uri_reference(source) or not is_string(source):
        raise InvalidRequest(f"source is a URI-reference of at most {SOURCE_CHARS_MAX} characters.")
    return source


def _timestamp_header(kind: str, name: str, signed: bool) -> str:
    if not name:
        return ""
    if not FORMATS[kind].timed or not signed:
        raise InvalidRequest("timestamp_header is of the format grafana with a secret.")
    if _HEADER.fullmatch(name) is None:
        raise InvalidRequest(f"timestamp_header is the name of a header, at most {HEADER_CHARS_MAX} characters.")
    return name.lower()
