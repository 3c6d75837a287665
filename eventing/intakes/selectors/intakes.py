"""Reads of intakes: for their administrators, and for the gateway that receives their webhooks."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from eventing.conf import config
from eventing.core.errors import Gone, NotFound
from eventing.core.principals import Principal, Scope
from eventing.core.timestamps import timestamp
from eventing.intakes.models import Intake
from eventing.intakes.shapes import IntakeAnswer, IntakeData
from eventing.rest.shapes import LeaseAnswer
from eventing.sql.leases import renewed_from
from eventing.sql.pages import LIMIT_DEFAULT, Page, cursor_of, key_of
from eventing.sql.sealed import SealBroken, opened
from eventing.store.intake_uses import intake_uses_read

INTAKE_PATTERN = re.compile(r"in_[a-z2-7]{26}")
TOKEN_PATTERN = re.compile(r"hk_[A-Za-z0-9_-]{43}")
CLAIM = "intake"
"""Claim of an intake's principal with the intake's id, for predicates of policies."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IntakeState:
    """An intake as the gateway needs it.

    Attributes:
        rp: id of its RP.
        principal: as which it publishes: its owner, narrowed to publishing there.
        secrets: each with the Unix time until which it is accepted.
        broken: whether its secrets cannot be opened, so that nothing can be verified.
        expires_at: Unix seconds.
        renewed_from: Unix seconds from which on use renews the lease; infinity for never.
    """

    id: str
    rp: str
    format: str
    source: str
    timestamp_header: str
    principal: Principal
    secrets: tuple[tuple[str, float], ...] = field(repr=False)
    broken: bool
    expires_at: float
    renewed_from: float

    def secrets_at(self, now: float) -> tuple[str, ...]:
        """Return the secrets that are valid at `now`, Unix seconds."""
        return tuple(secret for secret, until in self.secrets if now < until)


def hash_of(token: str) -> str:
    """Return the form in which a token is stored: it is random, so one round of SHA-256 hides it."""
    return hashlib.sha256(token.encode()).hexdigest()


def secret_place(intake: str) -> str:
    """Return the place for which an intake's secrets are sealed."""
    return f"intake:{intake}"


def intake_principal(intake: str, rp: str, owner: str, created_at: datetime, expires_at: datetime) -> Principal:
    """Return the principal of an intake: its owner, narrowed to publishing at the RP, without any role of the owner.

    Its token id is the intake's id, and its time of issue that of the creation: revocations of the owner cover it.
    """
    claims: dict[str, Any] = {
        "iss": config().domain,
        "aud": config().domain,
        "sub": owner,
        "iat": int(created_at.timestamp()),
        CLAIM: intake,
    }
    scopes = (Scope((rp,), frozenset({"publish"})),)
    return Principal(config().domain, owner, False, expires_at.timestamp(), claims, scopes, token_id=intake)


def intake_get(intake_id: str, *, now: datetime | None = None, lock: bool = False) -> Intake:
    """Return the row; `lock` locks it until the transaction ends. Raises NotFound and Gone."""
    row = None
    if INTAKE_PATTERN.fullmatch(intake_id):
        rows = Intake.objects.select_for_update() if lock else Intake.objects.all()
        row = rows.filter(id=intake_id).first()
    if row is None:
        raise NotFound("There is no such intake.")
    if row.expires_at <= (now or timezone.now()):
        raise Gone("The intake has ended: its lease expired.")
    return row


def intake_state(token: str) -> IntakeState:
    """Return the intake whose address has this token. Raises NotFound, and Gone if its lease has expired."""
    row = Intake.objects.filter(token_hash=hash_of(token)).first() if TOKEN_PATTERN.fullmatch(token) else None
    if row is None:
        raise NotFound("Nothing receives webhooks at this address.")
    if row.expires_at <= timezone.now():
        raise Gone("Nothing receives webhooks at this address any more: the intake's lease expired.")
    secrets, broken = _secrets(row)
    return IntakeState(
        row.id,
        row.rp_id,
        row.format,
        row.source,
        row.timestamp_header,
        intake_principal(row.id, row.rp_id, row.owner, row.created_at, row.expires_at),
        secrets,
        broken,
        row.expires_at.timestamp(),
        renewed_from(row),
    )


def _secrets(row: Intake) -> tuple[tuple[tuple[str, float], ...], bool]:
    """Return the secrets, each with its end, and whether one could not be opened: then nothing may be accepted without it."""
    found: list[tuple[str, float]] = []
    try:
        if row.secret is not None:
            found.append((opened(bytes(row.secret), secret_place(row.id)), float("inf")))
        if row.previous is not None and row.previous_until is not None:
            found.append((opened(bytes(row.previous), secret_place(row.id)), row.previous_until.timestamp()))
    except SealBroken as error:
        log.error(
            "Intake %s receives nothing until its secret is stated again, which cannot be opened: %s", row.id, error
        )
        return (), True
    return tuple(found), False


def intakes_page(
    *, rp: str, cursor: str | None = None, limit: int = LIMIT_DEFAULT, now: datetime | None = None
) -> Page[Intake]:
    """Return a page of the intakes at the RP, by id. Raises InvalidCursor."""
    rows = Intake.objects.filter(rp=rp, expires_at__gt=now or timezone.now()).order_by("id")
    if cursor is not None:
        rows = rows.filter(id__gt=key_of("intake", cursor))
    found = list(rows[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    return Page(found, cursor_of("intake", found[-1].id) if more else None)


def intakes_at(rp: str) -> int:
    """Return the number of intakes at the RP."""
    return Intake.objects.filter(rp=rp).count()


def intakes_of(rp: str) -> list[Intake]:
    """Return the intakes at the RP, by id; a bound of the services limits their number."""
    return list(Intake.objects.filter(rp=rp).order_by("id"))


def intakes_in(ids: Collection[str], now: datetime) -> list[Intake]:
    """Return those of these intakes that have not expired."""
    return list(Intake.objects.filter(id__in=ids, expires_at__gt=now))


def intake_answers(rows: Sequence[Intake]) -> list[IntakeAnswer]:
    """Return intakes of one RP as answers show them. Raises redis.RedisError."""
    used = intake_uses_read(rows[0].rp_id, [row.id for row in rows]) if rows else []
    return [
        IntakeAnswer.of(
            row,
            rp=row.rp_id,
            signed=row.secret is not None,
            lease=LeaseAnswer.of(row),
            last_used_at=None if at is None else timestamp(datetime.fromtimestamp(at, tz=UTC)),
        )
        for row, at in zip(rows, used, strict=True)
    ]


def intake_answer(row: Intake) -> IntakeAnswer:
    """Return an intake as answers show it. Raises redis.RedisError."""
    return intake_answers([row])[0]


def intake_data(row: Intake) -> IntakeData:
    """Return an intake as its administrative events show it."""
    return IntakeData.of(row, at=row.rp_id, signed=row.secret is not None, lease=LeaseAnswer.of(row))
