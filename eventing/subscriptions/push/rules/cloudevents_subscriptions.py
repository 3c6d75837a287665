"""Subscription objects of the CloudEvents Subscriptions API, and the options of an endpoint that they state. Pure.

`config.rp` states the rendezvous point, `config.from` where delivery begins. Herald does not filter: `source`, `types` and
`filters` are refused, as section 3.2.4 requires of a manager that does not support them.

An object is read, changed and written back as a whole, without the secrets, which are write-only: a member that returns
as it was shown stays as it is (`sink`, `protocolsettings`, `sinkcredential` without its secret); one that is left out has its
default again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eventing.core.errors import InvalidRequest
from eventing.subscriptions.push.rules.options import CLOUDEVENTS_HTTP, HIDDEN

PROTOCOL = "HTTP"
METHOD = "POST"
SETTINGS = (
    "headers", "format", "ordered", "in_flight", "batch", "secret", "signature", "max_attempts", "rate", "client_certificate",
    "client_key", "warn_url",
)  # fmt: skip
"""Members of `protocolsettings` besides `method`: `headers`, and extensions, which have the names of Herald's own options."""
_CREDENTIAL_SECRETS = ("secret", "accesstoken")


def deliver_of(stated: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options of the endpoint that a subscription object states.

    Args:
        before: the options as shown, of a subscription that is updated; None for a new one.

    Raises InvalidRequest.
    """
    _refuse_filters(stated)
    if stated["protocol"] != PROTOCOL:
        raise InvalidRequest(f"protocol is {PROTOCOL}, the only one of this subscription manager.")
    settings: Mapping[str, Any] = stated.get("protocolsettings") or {}
    if settings.get("method", METHOD) != METHOD:
        raise InvalidRequest(f"protocolsettings.method is {METHOD} (CloudEvents webhooks, section 2.1).")
    deliver: dict[str, Any] = {
        "mode": CLOUDEVENTS_HTTP,
        "url": stated["sink"],
        "credential": stated.get("sinkcredential"),
        **{name: settings.get(name) for name in SETTINGS},
    }
    if before is None:
        return deliver
    if (
        deliver["secret"] is None
        and before.get("signature") != "v1a"
        and deliver["signature"] == before.get("signature")
    ):
        del deliver["secret"]  # it signs on
    for name in ("url", "warn_url", "client_certificate"):
        if deliver[name] is not None and deliver[name] == before.get(name):
            del deliver[name]
    if "client_certificate" not in deliver:
        del deliver["client_key"]
    credential = deliver["credential"]
    if credential is not None and not any(name in credential for name in _CREDENTIAL_SECRETS):
        shown = before.get("credential") or {}
        if credential.get("credentialtype") != shown.get("type"):
            raise InvalidRequest("sinkcredential has no secret, and is not the one that the subscription has.")
        del deliver["credential"]
    return deliver


def settings_shown(deliver: Mapping[str, Any]) -> dict[str, Any]:
    """Return `protocolsettings` as answers show them: without secrets, values of headers as HIDDEN."""
    shown = {name: deliver[name] for name in SETTINGS if name in deliver and name != "headers"}
    return {"method": METHOD, "headers": dict.fromkeys(deliver.get("headers", ()), HIDDEN), **shown}


def _refuse_filters(stated: Mapping[str, Any]) -> None:
    for name in ("filters", "types", "source"):
        if stated.get(name):
            raise InvalidRequest(
                f"{name} is not supported: this subscription manager does not filter. Subscribe at a rendezvous point "
                "(config.rp) that has only the events you want."
            )
