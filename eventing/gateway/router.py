"""ASGI application in front of Django: handles the hot path's requests, and passes everything else on.

Grammar of the paths below /api/v1/rps/: an id, or a name `/authority/a/b/`, then `/events` or `/stream` (a name ends
with a slash and an action does not, so they cannot be confused). Bodies of requests for Django are bounded in size and
time.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from eventing.core.errors import ApplicationError, MethodNotAllowed, Moved, RateLimited, Timeout, TooLarge, Unavailable
from eventing.gateway import http
from eventing.gateway.admission.access import redacted_for
from eventing.gateway.admission.auditing import refused, refused_request
from eventing.gateway.admission.limits import count_passed, is_stranger
from eventing.gateway.answers import AnswerSender
from eventing.gateway.delivery.close_codes import CLOSE_BAD_REQUEST
from eventing.gateway.delivery.redirects import location, of_subscription
from eventing.gateway.endpoints.federation import federation
from eventing.gateway.endpoints.health import livez, readyz
from eventing.gateway.endpoints.intake import intake
from eventing.gateway.endpoints.metrics import metrics
from eventing.gateway.endpoints.publish import publish
from eventing.gateway.endpoints.pull import acknowledge, pull, pull_subscription
from eventing.gateway.endpoints.stream import stream
from eventing.gateway.endpoints.websocket import websocket
from eventing.gateway.endpoints.websub import PREFIX as WEBSUB
from eventing.gateway.endpoints.websub import websub
from eventing.gateway.gateway import Gateway, running_gateway, stop_gateway
from eventing.gateway.recording import DISCONNECTED, RECORDED, access
from eventing.intakes.rules.formats import HOOKS

PASSED_BODY_BYTES_MAX = 1024 * 1024  # bound: bytes of a request to Django; 413 `too-large`
_RP = re.compile(r"/api/v1/rps/(?P<ref>.+)/(?P<action>events|stream)")
_SUBSCRIPTION = re.compile(r"/api/v1/subscriptions/(?P<ref>[^/]+)/(?P<action>events|ack)")
_RP_ACTIONS = {("POST", "events"): publish, ("GET", "events"): pull, ("GET", "stream"): stream}
_SUBSCRIPTION_ACTIONS = {("GET", "events"): pull_subscription, ("POST", "ack"): acknowledge}
_HEALTH = {"/livez": livez, "/readyz": readyz}
METRICS = "/metrics"

Application = Callable[[http.Scope, http.Receive, Any], Awaitable[None]]
log = logging.getLogger(__name__)


class GatewayRouter:
    """The ASGI application for HTTP.

    Args:
        django: application for all other requests.
    """

    def __init__(self, django: Application) -> None:
        self._django = django

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Serve one request."""
        path = scope["path"]
        if path.startswith("/api/v1/rps/") and (match := _RP.fullmatch(path)):
            await _serve(_RP_ACTIONS, match, scope, receive, send)
        elif path.startswith("/api/v1/subscriptions/") and (match := _SUBSCRIPTION.fullmatch(path)):
            await _serve(_SUBSCRIPTION_ACTIONS, match, scope, receive, send)
        elif path.startswith("/federation/v1/"):
            await federation(await running_gateway(), scope, receive, send)
        elif path.startswith(HOOKS):
            await intake(await running_gateway(), scope, receive, send)
        elif path.startswith(WEBSUB):
            await websub(await running_gateway(), scope, receive, send)
        elif path in _HEALTH:
            await _HEALTH[path](await running_gateway(), send)
        elif path == METRICS:
            await metrics(await running_gateway(), scope, send)
        else:
            await (await running_gateway()).records.passed_on(self._pass_on, scope, receive, send)

    async def _pass_on(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Pass the request to Django, once its body is complete and within bounds."""
        gateway = await running_gateway()
        config = gateway.config
        send = AnswerSender(gateway, scope, send)
        try:
            await count_passed(gateway, scope)
            content = await http.body(scope, receive, PASSED_BODY_BYTES_MAX, config.request_timeout_s)
        except (TooLarge, Timeout, RateLimited, Unavailable) as error:
            refused(scope, error, action="request")
            access(scope).reason = error.code
            await http.answer_problem(send, error, close=True)
            return
        except http.ClientDisconnected:
            return
        access(scope).bytes_in = len(content)
        unread = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive_again() -> dict[str, Any]:
            return unread.pop() if unread else await receive()

        await self._django(scope, receive_again, send)


async def _serve(
    actions: Mapping[tuple[str, str], Callable[[Gateway, http.Scope, http.Receive, http.Send, str], Awaitable[None]]],
    match: re.Match[str],
    scope: http.Scope,
    receive: http.Receive,
    send: http.Send,
) -> None:
    """Serve one of the hot path's requests; every refusal is a problem document."""
    gateway = await running_gateway()
    records = gateway.records
    send = AnswerSender(gateway, scope, send)
    asked, client = RECORDED.get((scope["method"], match["action"]), ("unknown", "http"))
    record = records.begin(scope, asked, client, match["ref"])
    reason = ""
    try:
        action = actions.get((scope["method"], match["action"]))
        if action is None:
            allowed = [method for method, name in actions if name == match["action"]]
            raise MethodNotAllowed(f"Here: {', '.join(allowed)}.", allow=allowed)
        await action(gateway, scope, receive, send, match["ref"])
    except ApplicationError as raised:
        error = redacted_for(raised, anonymous=is_stranger(scope))
        error = of_subscription(error) if actions is _SUBSCRIPTION_ACTIONS else error
        reason = error.code
        refused_request(scope, error, match["action"], match["ref"])
        headers = [(b"allow", ", ".join(error.extra["allow"]).encode())] if "allow" in error.extra else None
        if isinstance(error, Moved):
            headers = [(b"location", location(error, scope, match["action"]).encode())]
            if "hops" in error.extra:
                headers.append((b"herald-hops", str(error.extra["hops"]).encode()))
        await http.answer_problem(send, error, close=isinstance(error, TooLarge | Timeout), headers=headers)
    except http.ClientDisconnected:
        reason = DISCONNECTED
    finally:
        records.end(record, reason)


async def serve_websocket(scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
    """ASGI application at /ws."""
    await websocket(await running_gateway(), scope, receive, send)


async def refuse_websocket(scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
    """ASGI application for WebSockets at any other path."""
    await receive()
    await send({"type": "websocket.close", "code": CLOSE_BAD_REQUEST, "reason": "WebSockets are served at /ws"})


async def serve_lifespan(scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
    """Start and stop with the server."""
    while True:
        event = await receive()
        if event["type"] == "lifespan.startup":
            await running_gateway()
            await send({"type": "lifespan.startup.complete"})
        else:
            await stop_gateway()
            await send({"type": "lifespan.shutdown.complete"})
            return
