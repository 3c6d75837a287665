"""Disconnection of live sessions at all gateways: one by its id, all of a principal, all readers of a rendezvous point.

A disconnected client may connect again: `retry` states whether it is asked to. To exclude it, revoke its token or its
subject, change the policy, or pause the RP.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from django.utils import timezone

from eventing.access.rules.permission import require_operator
from eventing.access.rules.tokens import IDENTITY_CHARS_MAX
from eventing.core.errors import InvalidRequest, NotFound, Unavailable
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.operations.rules.session_listing import ID_CHARS_MAX, Ask
from eventing.operations.selectors.sessions import session_find, sessions_ask
from eventing.operations.shapes import DisconnectedAnswer, GatewaysAsked
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.rps.models import REASON_CHARS_MAX
from eventing.rps.selectors.descriptors import descriptor_get

_NONE = "There is no such session."


def session_disconnect(
    *, principal: Principal, session: str, retry: bool = False, reason: str = "", now: datetime | None = None
) -> DisconnectedAnswer:
    """Disconnect one session.

    Args:
        session: its id, as the list of sessions shows it.
        retry: whether its client is asked to connect again.
        reason: for the audit.

    Raises Forbidden, InvalidRequest, NotFound, Unavailable (a gateway that may have it did not answer),
    redis.RedisError.
    """
    require_operator(principal)
    if len(session) > ID_CHARS_MAX:
        raise NotFound(_NONE)
    row, complete = session_find(session)
    if row is None and not complete:
        raise Unavailable(
            "Not all gateways answered, and one of them may have this session. Try again.", retry_after_s=1
        )
    if row is None:
        raise NotFound(_NONE)
    about = {"session": session, "principal": row.principal}
    return _disconnect(principal, ("session", session), about, Ask("", session=session), retry, reason, now)


def sessions_disconnect(
    *,
    principal: Principal,
    subject: str | None = None,
    rp: str | None = None,
    retry: bool = False,
    reason: str = "",
    now: datetime | None = None,
) -> DisconnectedAnswer:
    """Disconnect all sessions of a principal, or all that read an RP: exactly one is given.

    Args:
        subject: identity of the principal: its subject, or ISSUER#SUBJECT from elsewhere.
        rp: id or name.

    Raises Forbidden, InvalidRequest, NotFound, Gone, redis.RedisError.
    """
    require_operator(principal)
    if (subject is None) == (rp is None):
        raise InvalidRequest("Give either a principal or an rp.")
    if subject is not None:
        if not 0 < len(subject) <= IDENTITY_CHARS_MAX:
            raise InvalidRequest(f"A principal has 1 to {IDENTITY_CHARS_MAX} characters.")
        ask, on, about = Ask("", principal=subject), ("principal", subject), {"principal": subject}
    else:
        read = descriptor_get(str(rp)).id
        ask, on, about = Ask("", rp=read), ("rp", read), {"rp": read}
    return _disconnect(principal, on, about, ask, retry, reason, now)


def _disconnect(
    principal: Principal,
    on: tuple[str, str],
    about: dict[str, Any],
    ask: Ask,
    retry: bool,
    reason: str,
    now: datetime | None,
) -> DisconnectedAnswer:
    now = now or timezone.now()
    if len(reason) > REASON_CHARS_MAX:
        raise InvalidRequest(f"A reason has at most {REASON_CHARS_MAX} characters.")
    with change(now) as outbox:  # the request is in the audit before any session is disconnected
        outbox.act("session.disconnect", principal, *on, retry=retry, reason=reason)
    found = sessions_ask(msgspec.structs.replace(ask, close=retry))
    count = sum(answer.matching for answer in found.answers)
    if count:
        data = {**about, "count": count, "retry": retry, "by": principal.identity, "reason": reason}
        with change(now) as outbox:
            outbox.event(events.SESSIONS_DISCONNECTED, DOMAIN_ADMIN, data)
    return DisconnectedAnswer(count, retry, GatewaysAsked(found.asked, len(found.answers)))
