"""Formats of webhooks that an intake understands: how each is signed, and whether a secret is needed. Pure.

| format | signed by |
|---|---|
| github | `X-Hub-Signature-256`: HMAC-SHA256 of the body |
| stripe | `Stripe-Signature`: `t=`, `v1=` HMAC-SHA256 of TIME.BODY |
| standard-webhooks | `webhook-signature`: `v1` HMAC-SHA256 or `v1a` Ed25519 of ID.TIME.BODY |
| grafana | `X-Grafana-Alerting-Signature`: HMAC-SHA256 of the body, or of TIME:BODY with a header for the time |
| websub | `X-Hub-Signature`: METHOD=HMAC of the body, if the subscription has a secret |
| alertmanager, cloudevents, plain | nothing: the secret, if there is one, is expected in `Authorization` (Basic or Bearer) |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

GITHUB, STRIPE, STANDARD = "github", "stripe", "standard-webhooks"
GRAFANA, ALERTMANAGER, CLOUDEVENTS, PLAIN = "grafana", "alertmanager", "cloudevents", "plain"
WEBSUB = "websub"

HOOKS = "/hooks/"
"""Path of an intake's address, before the token."""

SECRET_CHARS_MIN = 16  # bound: characters of a secret; a shorter secret is refused
SECRET_CHARS_MAX = 512  # bound: characters of a secret; a longer secret is refused
HEADER_CHARS_MAX = 64  # bound: characters of the name of a header; a longer name is refused


@dataclass(frozen=True, slots=True)
class WebhookFormat:
    """A format.

    Attributes:
        secret_needed: whether an intake of this format must have a secret.
        timed: whether the name of a header with the signature's time may be stated.
        about: the format in a phrase, for documents and help.
    """

    name: str
    secret_needed: bool
    about: str
    timed: bool = False


FORMATS: Mapping[str, WebhookFormat] = MappingProxyType(
    {
        one.name: one
        for one in (
            WebhookFormat(PLAIN, False, "any body, wrapped as data"),
            WebhookFormat(CLOUDEVENTS, False, "CloudEvents over HTTP: binary, structured or batch"),
            WebhookFormat(STANDARD, True, "Standard Webhooks, signed with v1 or v1a"),
            WebhookFormat(GITHUB, True, "webhooks of GitHub"),
            WebhookFormat(STRIPE, True, "webhooks of Stripe"),
            WebhookFormat(GRAFANA, False, "notifications of Grafana Alerting", timed=True),
            WebhookFormat(ALERTMANAGER, False, "notifications of Prometheus Alertmanager"),
            WebhookFormat(WEBSUB, False, "content of the WebSub topic that `source` names, distributed by its hub"),
        )
    }
)
NAMES = tuple(FORMATS)
