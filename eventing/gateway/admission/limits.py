"""Counting of requests: each one of the hot path, and every other one below /api/ before Django handles it.

A request is counted under the account of its principal; without a valid token under the client address's account, so
that a flood of invalid tokens is refused cheaply: after too many that failed verification, unknown tokens from that
address are refused unverified, without effect on cached tokens and on other addresses.

Answers carry `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from eventing.access.rules.limits import Account, Limits
from eventing.client_address import scope_address
from eventing.core.client_address import address_key
from eventing.core.errors import ApplicationError, InvalidRequest, Unauthenticated
from eventing.core.events.cloudevents import Event
from eventing.core.principals import Principal
from eventing.gateway import http
from eventing.gateway.admission.access import Tokens
from eventing.gateway.recording import access

ACCOUNT = "herald.account"
"""Key of the account in the scope, for headers, sessions and /api/v1/limits."""

LIMITS = "herald.limits"
"""Key of the process's limits in the scope, for /api/v1/limits: the REST interface does not import the gateway."""

API = "/api/"


class AdmissionGateway(Protocol):
    """Parts of a gateway that admission needs."""

    @property
    def tokens(self) -> Tokens:
        """Verification of tokens."""

    @property
    def limits(self) -> Limits:
        """Limits of the process."""


async def caller(gateway: AdmissionGateway, scope: http.Scope, members: dict[str, str] | None = None) -> Principal:
    """Authenticate the client and count one request. `members` is the query, if already read.

    Raises Unauthenticated for an invalid token, RateLimited, Unavailable.
    """
    try:
        token = shown_token(scope, members)
        if token is None:
            stranger = await gateway.tokens.principal("")  # refused where no policy admits anyone
            count_stranger(gateway, scope)
            return stranger
        principal = gateway.tokens.peek(token) or await _verified(gateway, scope, token)
    except Unauthenticated:
        count_stranger(gateway, scope)
        raise
    return count_caller(gateway, scope, principal)


Find = Callable[[AdmissionGateway, http.Scope, dict[str, str]], Awaitable[Principal]]
"""Finds the principal of a request and counts the request, as `caller` does."""


async def connecting(
    gateway: AdmissionGateway, scope: http.Scope, members: dict[str, str], find: Find = caller
) -> Principal:
    """Authenticate with `find` a request that opens a connection. Raises Unavailable first if connections are opened
    too fast; a connection that `find` refuses does not count towards that rate."""
    gateway.limits.accept()
    try:
        return await find(gateway, scope, members)
    except ApplicationError:
        gateway.limits.not_accepted()
        raise


def count_caller(gateway: AdmissionGateway, scope: http.Scope, principal: Principal) -> Principal:
    """Count one request of `principal`, which has been verified. Raises RateLimited."""
    access(scope).principal = principal
    account = scope[ACCOUNT] = gateway.limits.principal(principal.identity)
    gateway.limits.request(account)
    return principal


def count_stranger(gateway: AdmissionGateway, scope: http.Scope) -> None:
    """Count one request under its client's address. Raises RateLimited."""
    gateway.limits.request(_stranger(gateway.limits, scope))


def account_of(scope: http.Scope) -> Account:
    """Return the account that `caller` has found."""
    account: Account = scope[ACCOUNT]
    return account


def is_stranger(scope: http.Scope) -> bool:
    """Return True if this request was counted under a client address: it carries no valid token."""
    account: Account | None = scope.get(ACCOUNT)
    return account is not None and account.address


async def count_passed(gateway: AdmissionGateway, scope: http.Scope) -> None:
    """Count a request for Django, if it is for an interface. Raises RateLimited.

    Django decides about an invalid token: the description of the interface is open to everybody.
    """
    if not scope["path"].startswith(API):
        return
    scope[LIMITS] = gateway.limits
    try:
        await caller(gateway, scope)
    except Unauthenticated:
        pass
    except InvalidRequest:  # a malformed query: Django may be able to read it
        count_stranger(gateway, scope)


def bytes_of(events: Sequence[Event]) -> int:
    """Return the size of events for limits of bytes: their stored size."""
    return len(events[0].body) if len(events) == 1 else sum([len(event.body) for event in events])


def shown_token(scope: http.Scope, members: dict[str, str] | None = None) -> str | None:
    """Return the token in the request; None for none. Raises Unauthenticated for an Authorization of another kind."""
    if http.header(scope, b"authorization") is not None:
        return http.bearer(scope, members)
    return (http.query(scope) if members is None else members).get("access_token") or None


def rate_headers(limits: Limits, account: Account, publishing: bool) -> http.Headers:
    """Make the RateLimit headers for `account`; none without limits."""
    value = limits.field(account, publishing)
    return [(b"ratelimit-policy", limits.policy_field(publishing)), (b"ratelimit", value)] if value else []


def _stranger(limits: Limits, scope: http.Scope) -> Account:
    account = scope[ACCOUNT] = limits.address(address_key(scope_address(scope)))
    return account


async def _verified(gateway: AdmissionGateway, scope: http.Scope, token: str) -> Principal:
    """Verify an unknown token, unless too many from this address were invalid."""
    address = address_key(scope_address(scope))
    try:
        gateway.limits.require_may_try(address)
        return await gateway.tokens.principal(token)
    except Unauthenticated:
        gateway.limits.token_failed(address)
        raise
    except ApplicationError:
        _stranger(gateway.limits, scope)  # whose limits the answer states
        raise
