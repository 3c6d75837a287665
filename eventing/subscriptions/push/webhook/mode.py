"""The mode `webhook`: CloudEvents 1.0.2 over HTTP with the signatures of Standard Webhooks.

Formats: `structured` (application/cloudevents+json, the event byte for byte), `batch` (a JSON array of such events),
`binary` (ce- fields and the data), `raw` (the data alone).

An endpoint consents by answering 2xx to a signed challenge event and repeating the challenge in the body; or, where
`verification` is `cloudevents`, by the handshake of the CloudEvents webhook specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from eventing.subscriptions.push.modes import PushRequest, PushTarget, StoredEvent
from eventing.subscriptions.push.rules.options import HANDSHAKE
from eventing.subscriptions.push.rules.signatures import signature_field
from eventing.subscriptions.push.rules.verdicts import AttemptVerdict, PushAnswer, judged
from eventing.subscriptions.push.webhook.binary import binary_form
from eventing.subscriptions.push.webhook.handshake import handshake_allows, handshake_request

# In lower case, though case means nothing here: the JavaScript SDK of CloudEvents reads no other.
STRUCTURED_TYPE = "application/cloudevents+json; charset=utf-8"
BATCH_TYPE = "application/cloudevents-batch+json; charset=utf-8"
CHALLENGE_KIND = "io.herald.webhook.challenge"
TEST_KIND = "io.herald.webhook.test"
WARNING_KIND = "io.herald.webhook.warning"


class WebhookMode:
    """Delivery by webhook."""

    def request(self, target: PushTarget, events: Sequence[StoredEvent], now: int) -> PushRequest:
        """Make the signed request of these events."""
        first = events[0]
        message = f"msg_{first.epoch}_{first.offset}"
        fields: tuple[tuple[str, str], ...] = ()
        if target.form == "batch":
            message += f"-{events[-1].offset}"
            kind, body = BATCH_TYPE, b"[" + b",".join([event.body for event in events]) + b"]"
        elif target.form in ("binary", "raw"):
            made = binary_form(first.body)
            if made is None:
                kind, body = STRUCTURED_TYPE, first.body
            else:
                fields, kind, body = made if target.form == "binary" else ((), *made[1:])
        else:
            kind, body = STRUCTURED_TYPE, first.body
        return _signed(target, message, kind, body, now, fields)

    def verdict(self, answer: PushAnswer) -> AttemptVerdict:
        """Judge by Standard Webhooks."""
        return judged(answer)

    def consent_request(self, target: PushTarget, token: str, now: int) -> PushRequest:
        """Make the challenge event, or the handshake of CloudEvents."""
        if target.verification == HANDSHAKE:
            return handshake_request(target)
        event = made_event(target, CHALLENGE_KIND, token, {"challenge": token})
        return _signed(target, f"msg_{token}", STRUCTURED_TYPE, event, now, ())

    def consents(self, target: PushTarget, token: str, answer: PushAnswer) -> bool:
        """Return True if the challenge is in the body, or the origin is allowed."""
        if target.verification == HANDSHAKE:
            return handshake_allows(target, answer)
        return 200 <= answer.status < 300 and token.encode() in answer.excerpt


def made_event(target: PushTarget, kind: str, event_id: str, data: dict[str, Any]) -> bytes:
    """Make an event of this domain's own, of the RP: the challenge, a test, or a warning."""
    members = {
        "specversion": "1.0",
        "id": event_id,
        "source": f"herald://{target.origin}/subscriptions/{target.subscription}",
        "type": kind,
        "subject": target.rp,
        "datacontenttype": "application/json",
        "data": data,
    }
    return msgspec.json.encode(members)


def _signed(
    target: PushTarget, message: str, kind: str, body: bytes, now: int, fields: tuple[tuple[str, str], ...]
) -> PushRequest:
    signature = signature_field(message, now, body, target.secrets, target.key)
    return PushRequest(
        "POST",
        (
            *((("Content-Type", kind),) if kind else ()),
            *fields,
            *target.headers,
            ("webhook-id", message),
            ("webhook-timestamp", str(now)),
            ("webhook-signature", signature),
            ("WebHook-Request-Origin", target.origin),
        ),
        body,
    )
