"""GET /metrics: what all processes of this domain on this machine count, for Prometheus (docs/observability.md).

Who may: on a domain that nobody but this machine reaches, whoever asks from it, by a name of it (a page in a browser here
may have its own name lead to this address), and is not shown in by a proxy. Everywhere
else `HERALD_METRICS_TOKEN`, or a token of somebody who sees the domain: an administrator, an operator, a viewer. It tells
the names of peers and how much goes on, and nothing of rendezvous points, principals or events.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from urllib.parse import urlsplit

from eventing.client_address import scope_address
from eventing.core.client_address import address_key
from eventing.core.config import Config
from eventing.core.errors import Forbidden, HeraldError, MethodNotAllowed, Unauthenticated
from eventing.core.roles import oversees
from eventing.gateway import http
from eventing.gateway.admission.access import as_told
from eventing.gateway.admission.auditing import refused
from eventing.gateway.admission.limits import caller, is_stranger, shown_token
from eventing.gateway.gateway import Gateway
from eventing.telemetry.exposition import scrape
from eventing.telemetry.totals import TOTALS

TOKEN_NEEDED = "Send HERALD_METRICS_TOKEN, or a viewer's token, as `Authorization: Bearer TOKEN`."  # noqa: S105 - no token
_FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via"})
_thread = ThreadPoolExecutor(1, thread_name_prefix="scrape")  # several scrapes at once take turns


async def metrics(gateway: Gateway, scope: http.Scope, send: http.Send) -> None:
    """Answer a scrape."""
    try:
        if scope["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed("Metrics are read.", allow=["GET", "HEAD"])
        await _admit(gateway, scope)
    except HeraldError as raised:
        error = as_told(raised, anonymous=is_stranger(scope))
        refused(scope, error, action="metrics.read")
        TOTALS.refuse(error.code)
        headers = [(b"allow", b"GET, HEAD")] if isinstance(error, MethodNotAllowed) else None
        await http.answer_problem(send, error, headers=headers)
        return
    gateway.measuring.copy()
    accept = http.header(scope, b"accept") or ""
    content, content_type = await asyncio.get_running_loop().run_in_executor(_thread, scrape, accept)
    headers = [(b"content-type", content_type.encode()), (b"cache-control", b"no-store"), (b"vary", b"accept")]
    await http.answer(send, 200, b"" if scope["method"] == "HEAD" else content, headers)


async def _admit(gateway: Gateway, scope: http.Scope) -> None:
    """Raise Unauthenticated, Forbidden or RateLimited unless the asker may read the metrics."""
    config = gateway.config
    token = shown_token(scope)
    if token is None:
        if not (_only_this_machine(config) and _from_this_machine(scope)):
            gateway.limits.request(gateway.limits.address(address_key(scope_address(scope))))
            raise Unauthenticated(TOKEN_NEEDED)
    elif not _is_metrics_token(config, token) and not oversees(await caller(gateway, scope)):
        raise Forbidden("Metrics are for those who see the whole domain: viewers, operators, administrators.")


def _is_metrics_token(config: Config, token: str) -> bool:
    return bool(config.metrics_token) and hmac.compare_digest(token.encode(), config.metrics_token.encode())


@lru_cache(maxsize=1)
def _only_this_machine(config: Config) -> bool:
    """Whether the domain listens on loopback, and is known under no other address."""
    try:
        named = urlsplit(config.base_url).hostname or ""
    except ValueError:
        return False
    return _is_loopback(config.host) and _is_loopback(named)


def _from_this_machine(scope: http.Scope) -> bool:
    """Whether the connection comes from loopback, to a name of loopback, and no proxy says that it speaks for somebody else."""
    client = scope.get("client")
    if client is None or not _is_loopback(client[0]) or any(name in _FORWARDED for name, _ in scope["headers"]):
        return False
    try:
        return _is_loopback(urlsplit(f"//{http.header(scope, b'host') or 'localhost'}").hostname or "")
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
