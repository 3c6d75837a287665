"""GET /metrics: the counts of all processes of this domain on this machine, for Prometheus (docs/observability.md).

Access: on a domain that only this machine can reach, any client on it that uses a local name (a page in a browser here
may make its own name resolve to this address) and is not forwarded by a proxy. Everywhere else `HERALD_METRICS_TOKEN`,
or a token of an administrator, operator or viewer. Metrics contain the names of peers and quantities, and nothing of
rendezvous points, principals or events.
"""

from __future__ import annotations

import asyncio
import hmac
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from eventing.client_address import scope_address
from eventing.core.client_address import address_key, is_loopback
from eventing.core.config import Config
from eventing.core.container import memoized, per_process
from eventing.core.errors import ApplicationError, Forbidden, MethodNotAllowed, Unauthenticated
from eventing.core.roles import oversees
from eventing.gateway import http
from eventing.gateway.admission.access import redacted_for
from eventing.gateway.admission.auditing import refused
from eventing.gateway.admission.limits import caller, is_stranger, shown_token
from eventing.gateway.gateway import Gateway
from eventing.telemetry.exposition import scrape
from eventing.telemetry.totals import totals

TOKEN_NEEDED = "Send HERALD_METRICS_TOKEN, or a viewer's token, as `Authorization: Bearer TOKEN`."  # noqa: S105 - no token
_FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via"})


@per_process
def _thread() -> ThreadPoolExecutor:
    """Thread of scrapes, which serialises concurrent ones."""
    return ThreadPoolExecutor(1, thread_name_prefix="scrape")


async def metrics(gateway: Gateway, scope: http.Scope, send: http.Send) -> None:
    """Answer a scrape."""
    try:
        if scope["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed("Use GET or HEAD for metrics.", allow=["GET", "HEAD"])
        await _admit(gateway, scope)
    except ApplicationError as raised:
        error = redacted_for(raised, anonymous=is_stranger(scope))
        refused(scope, error, action="metrics.read")
        totals().refuse(error.code)
        headers = [(b"allow", b"GET, HEAD")] if isinstance(error, MethodNotAllowed) else None
        await http.answer_problem(send, error, headers=headers)
        return
    gateway.measuring.copy()
    accept = http.header(scope, b"accept") or ""
    content, content_type = await asyncio.get_running_loop().run_in_executor(_thread(), scrape, accept)
    headers = [(b"content-type", content_type.encode()), (b"cache-control", b"no-store"), (b"vary", b"accept")]
    await http.answer(send, 200, b"" if scope["method"] == "HEAD" else content, headers)


async def _admit(gateway: Gateway, scope: http.Scope) -> None:
    """Raise Unauthenticated, Forbidden or RateLimited unless the client may read the metrics."""
    config = gateway.config
    token = shown_token(scope)
    if token is None:
        if not (_only_this_machine(config) and _from_this_machine(scope)):
            gateway.limits.request(gateway.limits.address(address_key(scope_address(scope))))
            raise Unauthenticated(TOKEN_NEEDED)
    elif not _is_metrics_token(config, token) and not oversees(await caller(gateway, scope)):
        raise Forbidden("Reading metrics requires the role viewer, operator or administrator.")


def _is_metrics_token(config: Config, token: str) -> bool:
    return bool(config.metrics_token) and hmac.compare_digest(token.encode(), config.metrics_token.encode())


@memoized(maxsize=1)
def _only_this_machine(config: Config) -> bool:
    """Return True if the domain listens on loopback, and has no other address."""
    try:
        named = urlsplit(config.base_url).hostname or ""
    except ValueError:
        return False
    return is_loopback(config.host) and is_loopback(named)


def _from_this_machine(scope: http.Scope) -> bool:
    """Return True if the connection is from loopback, to a local name, and not forwarded by a proxy."""
    client = scope.get("client")
    if client is None or not is_loopback(client[0]) or any(name in _FORWARDED for name, _ in scope["headers"]):
        return False
    try:
        return is_loopback(urlsplit(f"//{http.header(scope, b'host') or 'localhost'}").hostname or "")
    except ValueError:
        return False
