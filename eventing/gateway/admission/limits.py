"""Who asks, counted: every request of the hot path, and every other one below /api/ before Django sees it.

The account that a request is counted under is its principal's; without a valid token it is the client address's, so that
a flood of bad tokens is refused for little: after too many that did not verify, unknown tokens from that address are
refused without looking at them, while those that are known already, and other addresses, notice nothing.

Answers carry `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from eventing.access.rules.limits import Account, Limits
from eventing.client_address import scope_address
from eventing.core.client_address import address_key
from eventing.core.errors import HeraldError, InvalidRequest, Unauthenticated
from eventing.core.events.cloudevents import Event
from eventing.core.principals import Principal
from eventing.gateway import http
from eventing.gateway.admission.access import Tokens
from eventing.gateway.recording import access

ACCOUNT = "herald.account"
"""Where the scope keeps the account, for headers, sessions and /api/v1/limits."""

LIMITS = "herald.limits"
"""Where the scope keeps the process's limits, for /api/v1/limits: the REST interface does not import the edge."""

API = "/api/"


class Admission(Protocol):
    """What is used of a gateway here."""

    @property
    def tokens(self) -> Tokens:
        """The tokens that it knows."""

    @property
    def limits(self) -> Limits:
        """The process's limits."""


async def caller(gateway: Admission, scope: http.Scope, members: dict[str, str] | None = None) -> Principal:
    """Who sends this request (`members` is its query, if it was read), counted as one request.

    Raises Unauthenticated for a token that is not good, RateLimited, Unavailable.
    """
    try:
        token = shown_token(scope, members)
        if token is None:
            stranger = await gateway.tokens.principal("")  # refused where no policy admits anyone
            gateway.limits.request(_stranger(gateway.limits, scope))
            return stranger
        principal = gateway.tokens.peek(token) or await _verified(gateway, scope, token)
    except Unauthenticated:
        gateway.limits.request(_stranger(gateway.limits, scope))
        raise
    access(scope).principal = principal
    account = scope[ACCOUNT] = gateway.limits.principal(principal.identity)
    gateway.limits.request(account)
    return principal


async def connecting(gateway: Admission, scope: http.Scope, members: dict[str, str]) -> Principal:
    """As `caller`, for a request that opens a connection: refused with Unavailable before anything is looked at when they
    come too fast. Whoever is refused for another reason takes nobody's turn."""
    gateway.limits.accept()
    try:
        return await caller(gateway, scope, members)
    except HeraldError:
        gateway.limits.not_accepted()
        raise


def account_of(scope: http.Scope) -> Account:
    """The account that `caller` has found."""
    account: Account = scope[ACCOUNT]
    return account


def is_stranger(scope: http.Scope) -> bool:
    """Whether this request was counted under a client address: it shows no valid token."""
    account: Account | None = scope.get(ACCOUNT)
    return account is not None and account.address


async def count_passed(gateway: Admission, scope: http.Scope) -> None:
    """Count a request that is for Django, if it is for an interface. Raises RateLimited.

    A token that is not good is Django's to refuse, or not: the description of the interface is open to everybody.
    """
    if not scope["path"].startswith(API):
        return
    scope[LIMITS] = gateway.limits
    try:
        await caller(gateway, scope)
    except Unauthenticated:
        pass
    except InvalidRequest:  # the query is not one that we can read: Django may be able to
        gateway.limits.request(_stranger(gateway.limits, scope))


def bytes_of(events: Sequence[Event]) -> int:
    """What events count for in limits of bytes: what is stored of them."""
    return len(events[0].body) if len(events) == 1 else sum([len(event.body) for event in events])


def shown_token(scope: http.Scope, members: dict[str, str] | None = None) -> str | None:
    """The token that the request shows; None for none. Raises Unauthenticated for an Authorization of another kind."""
    if http.header(scope, b"authorization") is not None:
        return http.bearer(scope, members)
    return (http.query(scope) if members is None else members).get("access_token") or None


def rate_headers(limits: Limits, account: Account, publishing: bool) -> http.Headers:
    """The RateLimit headers for `account`; none where nothing is limited."""
    value = limits.field(account, publishing)
    return [(b"ratelimit-policy", limits.policy_field(publishing)), (b"ratelimit", value)] if value else []


def _stranger(limits: Limits, scope: http.Scope) -> Account:
    account = scope[ACCOUNT] = limits.address(address_key(scope_address(scope)))
    return account


async def _verified(gateway: Admission, scope: http.Scope, token: str) -> Principal:
    """The principal of an unknown token; looked at only if few from this address were bad."""
    address = address_key(scope_address(scope))
    try:
        gateway.limits.require_may_try(address)
        return await gateway.tokens.principal(token)
    except Unauthenticated:
        gateway.limits.token_failed(address)
        raise
    except HeraldError:
        _stranger(gateway.limits, scope)  # who is told of their limits
        raise
