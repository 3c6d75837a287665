"""The mode `websub`: content distribution by the hub (section 7). The content of a topic is its last event, so each event is
one distribution: the body is the stored event byte for byte, as the topic's address answers it.

The hub verifies intent before the subscription exists (process/hub_requests.py), so endpoints are never asked for consent here.
"""

from __future__ import annotations

from collections.abc import Sequence

from eventing.subscriptions.push.modes import PushRequest, PushTarget, StoredEvent
from eventing.subscriptions.push.rules.verdicts import AttemptVerdict, PushAnswer, judged
from eventing.subscriptions.push.websub.distribution import distribution_fields, signature_method
from eventing.subscriptions.push.websub.topics import CONTENT_TYPE, hub_url, topic_url


class WebSubMode:
    """Delivery by the WebSub hub."""

    def request(self, target: PushTarget, events: Sequence[StoredEvent], now: int) -> PushRequest:
        """Make the request that distributes the first of these events; the deliverer passes one."""
        body = events[0].body
        fields = distribution_fields(
            hub=hub_url(target.base),
            topic=topic_url(target.base, target.rp),
            content_type=CONTENT_TYPE,
            body=body,
            secret=target.secrets[0] if target.secrets else b"",
            method=signature_method(target.signature),
        )
        return PushRequest("POST", fields, body)

    def verdict(self, answer: PushAnswer) -> AttemptVerdict:
        """Judge by the status alone: 2xx is success, 410 ends the subscription, redirects are failures."""
        return judged(answer)

    def consent_request(self, target: PushTarget, token: str, now: int) -> PushRequest:
        """Not called: endpoints of this mode have consented when their subscription is created."""
        raise AssertionError("the hub verifies intent before it creates a subscription")

    def consents(self, target: PushTarget, token: str, answer: PushAnswer) -> bool:
        """Not called, as `consent_request`."""
        return False
