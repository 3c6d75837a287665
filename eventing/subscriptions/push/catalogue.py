"""The delivery modes by name."""

from __future__ import annotations

from collections.abc import Mapping

from eventing.subscriptions.push.cloudevents_http.mode import CloudEventsHttpMode
from eventing.subscriptions.push.modes import PushMode
from eventing.subscriptions.push.webhook.mode import WebhookMode
from eventing.subscriptions.push.websub.mode import WebSubMode
from eventing.subscriptions.push.ws_eventing.mode import WsEventingMode
from eventing.subscriptions.push.ws_eventing.sinks import MODE as WS_EVENTING

MODES: Mapping[str, PushMode] = {
    "webhook": WebhookMode(),
    "cloudevents-http": CloudEventsHttpMode(),
    WS_EVENTING: WsEventingMode(),
    "websub": WebSubMode(),
}
