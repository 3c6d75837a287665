"""The mode `cloudevents-http`: the CloudEvents HTTP protocol binding 1.0.2 over the webhook specification of the same version.

Formats: `structured`, `binary`, `batch`. Requests carry the signatures of Standard Webhooks too, which a receiver of
CloudEvents may ignore. The endpoint consents by the handshake only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eventing.subscriptions.push.modes import PushRequest, PushTarget, StoredEvent
from eventing.subscriptions.push.rules.verdicts import AttemptVerdict, PushAnswer, judged
from eventing.subscriptions.push.webhook.handshake import handshake_allows, handshake_request
from eventing.subscriptions.push.webhook.mode import WebhookMode

_WEBHOOK = WebhookMode()


class CloudEventsHttpMode:
    """Delivery to a CloudEvents endpoint."""

    def request(self, target: PushTarget, events: Sequence[StoredEvent], now: int) -> PushRequest:
        """Make the request of these events.

        An event without data is sent in structured mode: the webhook specification permits no request without payload
        (section 2.1).
        """
        made = _WEBHOOK.request(target, events, now)
        if not made.body:
            return _WEBHOOK.request(replace(target, form="structured"), events, now)
        return made

    def verdict(self, answer: PushAnswer) -> AttemptVerdict:
        """Judge by section 2.2, which Standard Webhooks agrees with."""
        return judged(answer)

    def consent_request(self, target: PushTarget, token: str, now: int) -> PushRequest:
        """Make the handshake's request."""
        return handshake_request(target)

    def consents(self, target: PushTarget, token: str, answer: PushAnswer) -> bool:
        """Return True if the handshake permits requests."""
        return handshake_allows(target, answer)
