"""GET /console/ws: the WebSocket of the console's pages, authenticated by the session's cookie.

A browser sends the cookie with handshakes that pages of other sites begin, too, and no CSRF token protects a handshake.
So `Origin` must be an origin that CSRF protection trusts; a handshake without `Origin` is refused. Channels'
AuthMiddlewareStack then loads session and user, and the gateway serves the connection
(eventing/gateway/endpoints/websocket.py) for a principal with the rights of the user's role.

A connection ends with its session, whichever way the session ends (logout, another device, disuse): the sessions of all
open connections are looked up together every CHECK_S. It ends when the user's tokens are revoked, which a lower role does.
And it ends after CONNECTION_S: the page then connects again, which counts as a use of the session and applies the role
that the user has by then.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import Any
from urllib.parse import urlparse

from channels.auth import AuthMiddlewareStack
from channels.security.websocket import OriginValidator
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase
from django.db import InterfaceError, OperationalError

from eventing.access.selectors.console_users import user_principal
from eventing.core.errors import ApplicationError, Forbidden, Unauthenticated, Unavailable
from eventing.core.principals import Principal
from eventing.gateway import http
from eventing.gateway.admission.limits import AdmissionGateway, count_caller, count_stranger
from eventing.gateway.endpoints.websocket import ENDED, websocket
from eventing.gateway.gateway import running_gateway
from eventing.sql.threads import in_database
from portal.accounts.services.sessions import session_ends_at, sessions_alive

CONNECTION_S = 600  # bound: seconds of one connection; the page connects again
"""An open page uses its session at least this often."""

CHECK_S = 2.0
"""Between two looks at the sessions of open connections: a connection closes within 5 s of the end of its session."""

log = logging.getLogger(__name__)


class ConsoleWebSocket:
    """The ASGI application; see the module. Holds the open connections of one event loop."""

    def __init__(self) -> None:
        self._stack: Any = AuthMiddlewareStack(self._serve)
        self._open: dict[asyncio.Future[None], str] = {}  # what ends a connection, and the key of its session
        self._checking: asyncio.Task[None] | None = None

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Serve one connection."""
        if not _trusted_origin(scope):
            await _refuse(scope, receive, send, Forbidden("Only this console's own pages connect here."))
            return
        try:
            await self._stack(scope, receive, send)
        except (OperationalError, InterfaceError) as error:  # of Channels' queries: ours raise Unavailable
            log.error("The database does not answer: %s", error)
            unavailable = Unavailable("The database does not answer. Try again in a moment.", retry_after_s=2)
            await _refuse(scope, receive, send, unavailable)

    async def _serve(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        loop = asyncio.get_running_loop()
        ended = scope[ENDED] = loop.create_future()
        if scope["user"].is_authenticated:
            self._open[ended] = scope["session"].session_key
            if self._checking is None or self._checking.done():
                self._checking = loop.create_task(self._check())
        try:
            await websocket(await running_gateway(), scope, receive, send, _of_session)
        finally:
            self._open.pop(ended, None)

    async def _check(self) -> None:
        """End the connections whose sessions have ended, until no connection is open."""
        while self._open:
            await asyncio.sleep(CHECK_S)
            looked = dict(self._open)
            try:
                alive = await in_database(sessions_alive)(set(looked.values()))
            except Exception:
                log.exception("The sessions of open pages cannot be looked up; their connections stay open meanwhile.")
                continue
            for ended, key in looked.items():
                if key not in alive and not ended.done():
                    ended.set_result(None)


def _trusted_origin(scope: http.Scope) -> bool:
    """Return whether Origin is the site named in Host, or one of CSRF_TRUSTED_ORIGINS."""
    origin, host = http.header(scope, b"origin"), http.header(scope, b"host")
    if origin is None or host is None:
        return False
    own = f"{'https' if scope.get('scheme') == 'wss' else 'http'}://{host}"
    try:
        validator = OriginValidator(None, [own, *settings.CSRF_TRUSTED_ORIGINS])
        return bool(validator.valid_origin(urlparse(origin)))
    except ValueError:  # no browser sends such an Origin or Host
        return False


async def _refuse(scope: http.Scope, receive: http.Receive, send: http.Send, error: ApplicationError) -> None:
    async def refuse(gateway: AdmissionGateway, scope: http.Scope, members: dict[str, str]) -> Principal:
        count_stranger(gateway, scope)
        raise error

    await websocket(await running_gateway(), scope, receive, send, refuse)


async def _of_session(gateway: AdmissionGateway, scope: http.Scope, members: dict[str, str]) -> Principal:
    """Return the principal of the session's user. Raises Unauthenticated without a valid session."""
    user, session, now = scope["user"], scope["session"], time.time()
    if not user.is_authenticated or now > session_ends_at(session):
        count_stranger(gateway, scope)
        raise Unauthenticated("Your session has ended; log in again.")
    return count_caller(gateway, scope, await in_database(_principal)(user, session, now))


def _principal(user: User, session: SessionBase, now: float) -> Principal:
    principal = user_principal(user, expires_at=min(now + CONNECTION_S, session_ends_at(session)))
    return replace(principal, claims={**principal.claims, "iat": int(now)})  # revocations from now on cover it
