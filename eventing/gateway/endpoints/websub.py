"""The WebSub hub, POST /websub/hub, and the topics, GET /websub/topics/{rp} (W3C Recommendation, sections 4 to 7).

The hub answers a well-formed request 202 whatever its outcome: the deliverer verifies the intent, or sends the denial, later. What is
malformed, or beyond the bounds of a source or target, is answered in plain text. A topic's content is the last event of its RP.
"""

from __future__ import annotations

import time

from eventing.access.rules.permission import require_writer
from eventing.client_address import scope_address
from eventing.core.client_address import address_key
from eventing.core.errors import (
    ApplicationError,
    Forbidden,
    Gone,
    InvalidRequest,
    MethodNotAllowed,
    Moved,
    NotFound,
    RateLimited,
    Timeout,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from eventing.core.principals import ANONYMOUS, Principal
from eventing.gateway import http
from eventing.gateway.admission.access import redacted_for, require
from eventing.gateway.admission.auditing import refused
from eventing.gateway.admission.limits import caller, is_stranger, shown_token
from eventing.gateway.answers import AnswerSender
from eventing.gateway.discovery import discovery_headers
from eventing.gateway.gateway import Gateway
from eventing.gateway.recording import DISCONNECTED, access
from eventing.log.reader import READ_BYTES_MAX
from eventing.log.scripts import NoLog
from eventing.store.errors import RedisError
from eventing.store.hub_requests import COUNTS_S, hub_request_add
from eventing.subscriptions.push.services.unsettled import UnsettledRequest, request_seal, subscription_id
from eventing.subscriptions.push.services.websub import callback_parse, stranger_at
from eventing.subscriptions.push.websub.callbacks import granted_lease_s
from eventing.subscriptions.push.websub.requests import (
    BODY_BYTES_MAX,
    ContentPing,
    HubRequestMalformed,
    SubscriptionWish,
    UnsubscriptionWish,
    read_hub_request,
)
from eventing.subscriptions.push.websub.topics import CONTENT_TYPE, HUB_PATH, TOPICS_PATH, topic_rp, topic_url

CLIENT = "websub"
"""Kind of client in access records."""

PREFIX = "/websub/"
NOT_OPEN = "This topic does not exist, or you may not subscribe to it."
_TEXT = (b"content-type", b"text/plain; charset=utf-8")


async def websub(gateway: Gateway, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
    """Serve one request below /websub/."""
    path = scope["path"]
    send = AnswerSender(gateway, scope, send)
    is_hub = path == HUB_PATH
    record = gateway.records.begin(scope, "subscribe" if is_hub else "history", CLIENT)
    reason = ""
    try:
        if not gateway.config.push:
            raise NotFound("This domain delivers to no endpoints, so it has no WebSub hub.")
        if is_hub:
            await _hub(gateway, scope, receive, send)
        elif path.startswith(TOPICS_PATH):
            await _topic(gateway, scope, send, path[len(TOPICS_PATH) :])
        else:
            raise NotFound(f"The hub is {HUB_PATH}; topics are below {TOPICS_PATH}.")
    except ApplicationError as raised:
        error = redacted_for(raised, anonymous=is_stranger(scope) and not is_hub)
        reason = error.code
        refused(scope, error, action="subscribe" if is_hub else "history")
        await _refuse(send, error, plain=is_hub)
    except http.ClientDisconnected:
        reason = DISCONNECTED
    finally:
        gateway.records.end(record, reason)


async def _hub(gateway: Gateway, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
    if scope["method"] != "POST":
        raise MethodNotAllowed("Requests to the hub are sent by POST.", allow=["POST"])
    members = http.query(scope)
    principal = await _sender(gateway, scope, members)
    body = await http.body(scope, receive, BODY_BYTES_MAX, gateway.config.request_timeout_s)
    try:
        asked = read_hub_request(http.header(scope, b"content-type") or "", body)
    except HubRequestMalformed as error:
        raise InvalidRequest(str(error)) from None
    if isinstance(asked, ContentPing):
        _require_own(gateway, asked)
    else:
        await _store(gateway, scope, principal, asked)
    await http.answer(send, 202, b"", [])


async def _sender(gateway: Gateway, scope: http.Scope, members: dict[str, str]) -> Principal:
    """Return the principal of a request to the hub, and count it; ANONYMOUS without a token, also where no policy admits strangers."""
    if shown_token(scope, members) is not None:
        return await caller(gateway, scope, members)
    try:
        return await caller(gateway, scope, members)
    except Unauthenticated:
        return ANONYMOUS


def _require_own(gateway: Gateway, ping: ContentPing) -> None:
    """Refuse pings about topics that are no RPs of this domain. For those there is nothing to do: each event is distributed
    when it is published."""
    for topic in ping.topics:
        if topic_rp(gateway.config.base_url, topic) is None:
            raise InvalidRequest(
                f"This hub distributes its own topics only, {topic_url(gateway.config.base_url, 'ID')}; publish events to their rendezvous points."
            )


async def _store(
    gateway: Gateway, scope: http.Scope, principal: Principal, asked: SubscriptionWish | UnsubscriptionWish
) -> None:
    """Store a request for the deliverer. Raises InvalidRequest for a callback that is never called, RateLimited, Unavailable."""
    try:
        host = callback_parse(asked.callback).host
    except InvalidRequest as error:
        raise InvalidRequest(error.detail.replace("deliver.url", "hub.callback")) from None
    mode, rp, reason = await _decided(gateway, principal, asked)
    access(scope).rp = rp
    wanted_s, secret = (asked.lease_s, asked.secret) if isinstance(asked, SubscriptionWish) else (None, "")
    request = UnsettledRequest(
        mode=mode,
        rp=rp,
        topic=asked.topic,
        callback=asked.callback,
        lease_s=granted_lease_s(wanted_s, longest_s=gateway.config.lease_s_max),
        secret=secret,
        owner=stranger_at(host) if principal.anonymous else principal.identity,
        reason=reason,
        at=time.time(),
    )
    source = address_key(scope_address(scope)) if principal.anonymous else principal.identity
    field = subscription_id(asked.topic, asked.callback)
    try:
        stored = await hub_request_add(gateway.redis, field, request_seal(request), source=source, target=host)
    except (RedisError, OSError):
        raise Unavailable("The hub is not responding. Try again in a moment.", retry_after_s=2) from None
    if stored != "stored":
        raise RateLimited(
            "The hub has too many requests of yours, or to this host. Try again later.", retry_after_s=COUNTS_S
        )


async def _decided(
    gateway: Gateway, principal: Principal, asked: SubscriptionWish | UnsubscriptionWish
) -> tuple[str, str, str]:
    """Return the mode of the stored request, the id of its RP (empty for none), and the reason of a denial."""
    rp = topic_rp(gateway.config.base_url, asked.topic)
    if isinstance(asked, UnsubscriptionWish):
        return "unsubscribe", rp or "", ""
    if rp is None:
        return "denied", "", NOT_OPEN
    try:
        descriptor = await gateway.descriptors.get(rp)
        require(descriptor, principal, "subscribe")
        require_writer(principal)
    except (NotFound, Gone, Moved):
        return "denied", "", NOT_OPEN
    except (Forbidden, Unauthenticated):
        return "denied", rp, NOT_OPEN
    return "subscribe", rp, ""


async def _topic(gateway: Gateway, scope: http.Scope, send: http.Send, reference: str) -> None:
    """Answer the content of a topic, the last event; 204 where there is none, or the policy does not allow its reading."""
    if scope["method"] not in ("GET", "HEAD"):
        raise MethodNotAllowed("Topics are read by GET.", allow=["GET", "HEAD"])
    principal = await caller(gateway, scope, http.query(scope))
    descriptor = await gateway.descriptors.get(reference)
    access(scope).rp = descriptor.id
    require(descriptor, principal, "subscribe")
    links = discovery_headers(descriptor.id)
    events: list[bytes] = []
    if descriptor.allows(principal, "history"):
        try:
            state = await gateway.reader.state(descriptor.id)
            size = max(READ_BYTES_MAX, gateway.config.event_bytes_max)
            events = (
                (await gateway.reader.read(descriptor.id, state.next - 1, 1, size)).events if state.next > 1 else []
            )
        except NoLog:
            events = []
        except (RedisError, OSError):
            raise Unavailable("The event log is not responding. Try again in a moment.", retry_after_s=2) from None
    if not events:
        await http.answer(send, 204, b"", [*links, (b"cache-control", b"no-cache")])
        return
    access(scope).answered(events)
    await http.answer(
        send, 200, events[-1], [(b"content-type", CONTENT_TYPE.encode()), *links, (b"cache-control", b"no-cache")]
    )


async def _refuse(send: http.Send, error: ApplicationError, *, plain: bool) -> None:
    """Answer a refusal: the hub's in plain text (section 5.1), a topic's as a problem document."""
    headers: http.Headers = []
    if "allow" in error.extra:
        headers.append((b"allow", ", ".join(error.extra["allow"]).encode()))
    close = isinstance(error, TooLarge | Timeout)
    if not plain:
        await http.answer_problem(send, error, close=close, headers=headers)
        return
    if error.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after_s))
    if close:
        headers.append((b"connection", b"close"))
    await http.answer(send, error.status, f"{error.detail}\n".encode(), [_TEXT, *headers])
