"""Refusals of the hot path on their way into the audit.

`refused` is called where a refusal is answered and counts it in memory (audit/refusals.py), which is the hot path's
only cost. `Auditing` writes the gathered refusals each second, on the database's threads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from eventing.access.verification.verifier import verifier
from eventing.audit.refusals import is_refusal, refusals
from eventing.core.errors import ApplicationError
from eventing.core.principals import Principal
from eventing.core.request_origin import Origin
from eventing.gateway import http
from eventing.sql.threads import in_database

FLUSH_S = 1.0
REFERENCE_CHARS_MAX = 255
ACTIONS: Mapping[tuple[str, str], str] = {
    ("POST", "events"): "publish",
    ("GET", "events"): "history",
    ("GET", "stream"): "subscribe",
    ("POST", "ack"): "subscription.ack",
}
"""Names of the hot path's requests in the audit."""

OPERATIONS: Mapping[str, str] = {
    "publish": "publish",
    "subscribe": "subscribe",
    "ack": "subscription.ack",
}
"""Names of the operations of a herald.v1 session in the audit; that of `renew` depends on the renewed thing."""

log = logging.getLogger(__name__)


class Auditing:
    """Periodic writing of this process's refusals, each second from `start` to `close`."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        refusals().flushed = True
        self._task = asyncio.get_running_loop().create_task(self._flush_forever())

    async def _flush_forever(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            if refusals().busy:
                try:
                    await in_database(refusals().flush)()
                except ApplicationError as error:
                    log.warning("Refusals are not in the audit yet: %s", error.detail)
                except Exception:
                    log.exception("Refusals could not be written to the audit")

    async def close(self) -> None:
        """Write the remaining refusals, and stop."""
        if self._task is None:
            return
        self._task.cancel()
        self._task = None
        refusals().flushed = False
        if refusals().busy:
            await in_database(refusals().flush)(everything=True)


def refused(
    scope: http.Scope,
    error: ApplicationError,
    *,
    action: str,
    on: tuple[str, str] = ("", ""),
    principal: Principal | None = None,
) -> None:
    """Count `error`, the answer to the request of `scope`, if it is a refusal; `principal` None: the bearer of the
    request's token."""
    if is_refusal(error):
        refusals().note(action=action, error=error, principal=principal or _bearer(scope), on=on)


def refused_request(
    scope: http.Scope, error: ApplicationError, action: str, reference: str, principal: Principal | None = None
) -> None:
    """Count a refused request of the hot path, `POST|GET .../REFERENCE/ACTION`; `principal` as for `refused`."""
    if is_refusal(error):
        name = ACTIONS.get((scope["method"], action), action)
        kind = "subscription" if reference.startswith("sub_") else "rp"
        refused(scope, error, action=name, on=(kind, reference[:REFERENCE_CHARS_MAX]), principal=principal)


def refused_handshake(scope: http.Scope, error: ApplicationError) -> None:
    """Count a refused WebSocket handshake; one that names its RP (`?rp=`) is a subscription."""
    if is_refusal(error):
        try:
            rp = http.query(scope).get("rp", "")
        except ApplicationError:
            rp = ""
        refused(
            scope,
            error,
            action="subscribe" if rp else "connect",
            on=("rp", rp[:REFERENCE_CHARS_MAX]) if rp else ("", ""),
        )


def refused_operation(
    origin: Origin, principal: Principal, error: ApplicationError, op: str, rp: str, subscription: str = ""
) -> None:
    """Count a refused operation of a herald.v1 session."""
    if is_refusal(error):
        kind, reference = ("subscription", subscription) if subscription else ("rp", rp)
        action = OPERATIONS.get(op) or f"{kind}.{op}"
        on = (kind, reference[:REFERENCE_CHARS_MAX])
        refusals().note(action=action, error=error, principal=principal, on=on, origin=origin)


def _bearer(scope: http.Scope) -> Principal | None:
    """Return the bearer of a valid token: it was verified for this request, so memory has its principal."""
    try:
        return verifier().peek(http.bearer(scope))
    except ApplicationError:
        return None
