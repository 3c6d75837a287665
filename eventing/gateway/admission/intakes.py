"""Intakes for the hot path, by the tokens in their addresses, from memory; SQL is read only for new ones.

A token is kept by its hash only. An intake is cached until a change at its RP is announced, or INTAKE_S has passed.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Protocol

from eventing.access.verification.revocations import refuse_revoked, revocations
from eventing.client_address import scope_address
from eventing.core.client_address import address_key
from eventing.core.errors import ApplicationError, NotFound, RateLimited, Unavailable
from eventing.gateway import http
from eventing.gateway.admission.limits import ACCOUNT, AdmissionGateway, count_stranger
from eventing.gateway.recording import access
from eventing.intakes.selectors.intakes import TOKEN_PATTERN, IntakeState, hash_of, intake_state
from eventing.sql.threads import in_database

INTAKES_MAX = 10_000  # bound: intakes in the cache; the oldest intake is read again
INTAKE_S = 60.0  # bound: seconds that a cached intake is valid; the next webhook waits until it is read again


class IntakeCache:
    """Cache of intakes, by the hash of the token."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[IntakeState, float]] = OrderedDict()

    def peek(self, token: str) -> IntakeState | None:
        """Return the intake, if it is cached and its lease has not ended."""
        entry = self._known.get(hash_of(token))
        if entry is None or time.monotonic() >= entry[1]:
            return None
        return entry[0] if time.time() < entry[0].expires_at else None

    async def get(self, token: str) -> IntakeState:
        """Return the intake with this token. Raises NotFound, Gone, Unavailable."""
        found = self.peek(token)
        if found is None:
            found = await in_database(intake_state)(token)
            self._known[hash_of(token)] = found, time.monotonic() + INTAKE_S
            if len(self._known) > INTAKES_MAX:
                self._known.popitem(last=False)
        return found

    def forget(self, rp: str) -> None:
        """Drop the cached intakes of one RP; all if `rp` is empty."""
        for key in [key for key, (one, _) in self._known.items() if not rp or one.rp == rp]:
            del self._known[key]


class IntakeGateway(AdmissionGateway, Protocol):
    """Parts of a gateway that admission of webhooks needs."""

    @property
    def intakes(self) -> IntakeCache:
        """Cache of intakes."""


async def intake_of(gateway: IntakeGateway, scope: http.Scope, token: str) -> IntakeState:
    """Return the intake of a webhook's address and count the request: under the intake's own account, so that each has
    the rates of a principal; under the client's address where there is no such intake.

    Raises NotFound, Gone, RateLimited, Unavailable, TokenRevoked.
    """
    address = address_key(scope_address(scope))
    try:
        found = gateway.intakes.peek(token)
        if found is None:
            gateway.limits.require_may_try(address)
            if TOKEN_PATTERN.fullmatch(token) is None:
                raise NotFound("Nothing receives webhooks at this address.")
            found = await gateway.intakes.get(token)
    except RateLimited:
        raise
    except ApplicationError as error:
        if not isinstance(error, Unavailable):
            gateway.limits.token_failed(address)
        count_stranger(gateway, scope)
        raise
    access(scope).rp = found.rp
    access(scope).principal = found.principal
    account = scope[ACCOUNT] = gateway.limits.principal(f"#{found.id}")  # no identity begins with this mark
    gateway.limits.request(account)
    if not revocations().loaded:
        await in_database(revocations().refresh_if_due)()
    refuse_revoked(found.principal)
    return found
