"""POST /hooks/{token}: any system's webhook, verified in its sender's way and published as an event.

The token in the path is a secret: it is in no log line, access record, audit entry, span or answer. OPTIONS answers the
handshake of CloudEvents' webhooks (HTTP 1.1 Web Hooks for Event Delivery, section 4); GET is for the hub of a WebSub topic
(intake_hub.py).
"""

from __future__ import annotations

import time

from eventing.core.errors import ApplicationError, InvalidEvent, MethodNotAllowed, Timeout, TooLarge, Unavailable
from eventing.core.events.cloudevents_http import read_head
from eventing.gateway import http
from eventing.gateway.admission.access import require
from eventing.gateway.admission.auditing import refused
from eventing.gateway.admission.intakes import intake_of
from eventing.gateway.admission.limits import account_of, bytes_of
from eventing.gateway.answers import AnswerSender
from eventing.gateway.endpoints.intake_hub import hub_confirmed
from eventing.gateway.endpoints.publish import make_id, now_text, published
from eventing.gateway.gateway import Gateway
from eventing.gateway.recording import DISCONNECTED, access
from eventing.intakes.rules.conversion import ConversionBounds, events_of
from eventing.intakes.rules.formats import CLOUDEVENTS, HOOKS
from eventing.intakes.rules.signatures import verify
from eventing.intakes.selectors.intakes import IntakeState

CLIENT = "hook"
"""Kind of client in access records."""

METHODS = ["POST", "OPTIONS"]
ORIGIN_CHARS_MAX = 255  # bound: characters of WebHook-Request-Origin; the handshake is refused


async def intake(gateway: Gateway, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
    """Serve one request; every refusal is a problem document."""
    records = gateway.records
    send = AnswerSender(gateway, scope, send)
    record = records.begin(scope, "publish", CLIENT)
    found: IntakeState | None = None
    reason = ""
    try:
        if scope["method"] not in (*METHODS, "GET"):  # GET is for one format, which is not known yet
            raise MethodNotAllowed("Webhooks are sent here by POST.", allow=METHODS)
        found = await intake_of(gateway, scope, scope["path"][len(HOOKS) :])
        if scope["method"] == "OPTIONS":
            record.operation = "describe"
            await _handshake(scope, found, send)
        elif scope["method"] == "GET":
            record.operation = "describe"
            await hub_confirmed(gateway, scope, send, found)
        else:
            await _publish(gateway, scope, receive, send, found)
    except ApplicationError as error:
        reason = error.code
        on = ("intake", found.id) if found is not None else ("", "")
        refused(scope, error, action="publish", on=on, principal=found.principal if found is not None else None)
        allowed = error.extra.get("allow")
        headers = [(b"allow", b", ".join(name.encode() for name in allowed))] if allowed else None
        await http.answer_problem(send, error, close=isinstance(error, TooLarge | Timeout), headers=headers)
    except http.ClientDisconnected:
        reason = DISCONNECTED
    finally:
        records.end(record, reason)


async def _publish(
    gateway: Gateway, scope: http.Scope, receive: http.Receive, send: http.Send, found: IntakeState
) -> None:
    """Answer 201 once the events are as durable as the RP's acknowledgement level requires; nothing is published before
    the signature is verified."""
    if found.broken:
        raise Unavailable("The secret of this intake cannot be read by the domain. Have its owner state it again.")
    descriptor = gateway.descriptors.peek(found.rp) or await gateway.descriptors.get(found.rp)
    require(descriptor, found.principal, "publish")
    if descriptor.audience:
        await gateway.audiences.check(descriptor)
    gateway.require_taken(descriptor)
    config = gateway.config
    head = read_head(scope["headers"])
    body = await http.body(scope, receive, config.batch_bytes_max, config.request_timeout_s)
    now = time.time()
    headers = _first(scope["headers"])
    verify(found.format, found.secrets_at(now), headers, body, now=now, timestamp_header=found.timestamp_header)
    events, batch = events_of(
        found.format,
        head,
        headers,
        body,
        source=found.source,
        bounds=ConversionBounds(config.event_bytes_max, config.batch_events_max),
        make_id=make_id,
        now=now,
        now_text=now_text,
    )
    if not events:
        raise InvalidEvent("A batch holds at least one event.")
    size = bytes_of(events)
    access(scope).published(len(events), size)
    gateway.limits.publish(account_of(scope), descriptor.id, len(events), size)
    appended = await gateway.appender.append_and_wait(descriptor, events)
    gateway.uses.intake(found)
    await http.answer_json(send, 201, published(events, appended, batch))


async def _handshake(scope: http.Scope, found: IntakeState, send: http.Send) -> None:
    """Consent to deliveries from the origin that asks: every holder of the address may publish."""
    origin = http.header(scope, b"webhook-request-origin") or ""
    headers: http.Headers = [(b"allow", b", ".join(name.encode() for name in METHODS))]
    if (
        found.format == CLOUDEVENTS
        and 0 < len(origin) <= ORIGIN_CHARS_MAX
        and origin.isascii()
        and origin.isprintable()
    ):
        headers += [(b"webhook-allowed-origin", origin.encode()), (b"webhook-allowed-rate", b"*")]
    await http.answer(send, 200, b"", headers)


def _first(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the first value of each header, as Latin-1."""
    found: dict[str, str] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    return found
