"""Endpoint pages: a link that shows one subscription's endpoint to its holder, for people without an account.

The life of a page: a manager of the subscription makes a link (`page_link_create`); it works once, within LINK_S
(`page_open`), and becomes a session of at most SESSION_S. A session acts as the maker of the link, narrowed to this
RP and to what looking after this endpoint needs, and its requests are about this subscription alone (portal/console/pages/
endpoint_page.py). It lasts no longer than the maker's token and the subscription's lease, and revocations of the maker cover it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.utils import timezone

from eventing.access.rules.permission import require_writer
from eventing.access.verification.revocations import refuse_revoked, revocations
from eventing.conf import config
from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.errors import Forbidden, QuotaExceeded, Unauthenticated
from eventing.core.principals import Principal, Scope
from eventing.outbox.services import change
from eventing.rps.rules.descriptor import Descriptor
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.store.endpoint_pages import (
    page_link_put,
    page_link_take,
    page_links_counted,
    page_session_delete,
    page_session_get,
    page_session_put,
)
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.selectors import endpoint_get
from eventing.subscriptions.selectors.subscriptions import subscription_get
from eventing.subscriptions.services.permission import require_managed

LINK_S = 900  # bound: seconds for which a link can be opened; it is unknown then
SESSION_S = 3600  # bound: seconds of a page's session; another link is needed then
LINKS_PER_HOUR_MAX = 20  # bound: links of a subscription in an hour; `quota-exceeded`
PAGE_PATH = "/endpoint"
CLAIM = "endpoint_page"
"""Claim of a page's principal with the subscription's id, for predicates of policies."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_TOKEN_BYTES = 32
_ENDED = "This page has ended. Ask for a new link."


class PageGrant(msgspec.Struct, array_like=True, frozen=True):
    """The grant of a link or session: the maker as it was, the subscription, and the operations at its RP.

    `expires_at`: Unix seconds after which no session may last.
    """

    subscription: str
    rp: str
    issuer: str
    subject: str
    admin: bool
    local: bool
    keys_from: str
    key_id: str
    token_id: str
    claims: dict[str, Any]
    operations: tuple[str, ...]
    expires_at: float


@dataclass(frozen=True, slots=True)
class PageLink:
    """A new link; its token is in the fragment, which browsers send to no server."""

    url: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class PageSession:
    """An open page: its subscription, and as whom it acts."""

    subscription: str
    principal: Principal


_encode = msgspec.msgpack.Encoder().encode
_decode = msgpack_reader(PageGrant)


def page_link_create(*, subscription_id: str, principal: Principal, now: datetime | None = None) -> PageLink:
    """Make a link. Raises NotFound, Gone, Forbidden, QuotaExceeded, redis.RedisError."""
    now = now or timezone.now()
    require_writer(principal)
    subscription = subscription_get(subscription_id, now=now)
    descriptor = descriptor_get(subscription.at, now=now)
    require_managed(subscription, descriptor, principal)
    endpoint_get(subscription_id)
    if principal.restriction is not None:
        raise Forbidden("A delegated token makes no link to a page: its conditions cannot be kept there.")
    grant = _grant(subscription, descriptor, principal, now)
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    valid_s = max(1, min(LINK_S, int(grant.expires_at - now.timestamp())))
    if page_links_counted(subscription_id, 3600) > LINKS_PER_HOUR_MAX:
        raise QuotaExceeded(
            f"At most {LINKS_PER_HOUR_MAX} links to this page are made in an hour.", limit=LINKS_PER_HOUR_MAX
        )
    page_link_put(_digest(token), _encode(grant), valid_s)
    with change(now) as outbox:
        outbox.act("endpoint.page", principal, "subscription", subscription_id, rp=subscription.at)
    ends = datetime.fromtimestamp(now.timestamp() + valid_s, tz=UTC)
    return PageLink(f"{config().base_url}{PAGE_PATH}#{token}", ends)


def page_open(link: str) -> tuple[str, int, PageSession]:
    """Make a session of a link, which is used up by it. Returns its token and its seconds. Raises Unauthenticated, redis.RedisError."""
    data = page_link_take(_digest(link)) if _TOKEN.fullmatch(link) else None
    if data is None:
        raise Unauthenticated("This link is unknown, used or expired. Ask for a new one.")
    grant = _granted(data)
    session_s = min(SESSION_S, int(grant.expires_at - time.time()))
    if session_s < 1:
        raise Unauthenticated(_ENDED)
    grant = msgspec.structs.replace(grant, expires_at=time.time() + session_s)
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    session = PageSession(grant.subscription, _principal(grant))
    page_session_put(_digest(token), _encode(grant), session_s)
    return token, session_s, session


def page_session(token: str) -> PageSession:
    """Return the session of a token. Raises Unauthenticated (TokenRevoked too), redis.RedisError."""
    data = page_session_get(_digest(token)) if _TOKEN.fullmatch(token) else None
    if data is None:
        raise Unauthenticated(_ENDED)
    grant = _granted(data)
    return PageSession(grant.subscription, _principal(grant))


def page_close(token: str) -> None:
    """End a session. Raises redis.RedisError."""
    page_session_delete(_digest(token))


def _grant(row: Subscription, descriptor: Descriptor, principal: Principal, now: datetime) -> PageGrant:
    """Narrow the maker: its owner needs no role; an administrator of the RP keeps what that takes."""
    own = row.owner == principal.identity
    wanted = ("subscribe", "history") if own else ("administer", "subscribe", "history")
    operations = tuple(one for one in wanted if principal.permits(one, descriptor.id, descriptor.name))
    claims = {**principal.claims, CLAIM: row.id}
    claims.setdefault("iat", int(now.timestamp()))
    return PageGrant(
        subscription=row.id,
        rp=descriptor.id,
        issuer=principal.issuer,
        subject=principal.subject,
        admin=principal.admin and not own,
        local=principal.local,
        keys_from=principal.keys_from,
        key_id=principal.key_id,
        token_id=principal.token_id,
        claims=claims,
        operations=operations,
        expires_at=min(principal.expires_at, row.expires_at.timestamp()),
    )


def _granted(data: bytes) -> PageGrant:
    try:
        return _decode(data)
    except Undecodable:  # written by another version
        raise Unauthenticated(_ENDED) from None


def _principal(grant: PageGrant) -> Principal:
    """Return the principal of a page. Raises Unauthenticated, TokenRevoked."""
    if grant.expires_at <= time.time():
        raise Unauthenticated(_ENDED)
    principal = Principal(
        grant.issuer,
        grant.subject,
        grant.admin,
        grant.expires_at,
        grant.claims,
        (Scope((grant.rp,), frozenset(grant.operations)),),
        local=grant.local,
        token_id=grant.token_id,
        key_id=grant.key_id,
        keys_from=grant.keys_from,
    )
    revocations().refresh_if_due()
    refuse_revoked(principal)
    return principal


def _digest(token: str) -> str:
    """Return the form in which a token is stored: it is random, so one round of SHA-256 hides it."""
    return hashlib.sha256(token.encode()).hexdigest()
