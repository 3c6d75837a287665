"""The handshake of CloudEvents webhooks against abuse (HTTP 1.1 Web Hooks for Event Delivery 1.0.2, section 4).

OPTIONS to the exact URL, with `WebHook-Request-Origin`, and `WebHook-Request-Rate` if the owner stated a rate. Consent is the
field `WebHook-Allowed-Origin` with this domain's name or `*`, whatever the status is; where a rate was asked for, also
`WebHook-Allowed-Rate`. A rate that is allowed bounds all further requests.

`WebHook-Request-Callback` is not sent (decision 83).
"""

from __future__ import annotations

from eventing.subscriptions.push.modes import PushRequest, PushTarget
from eventing.subscriptions.push.rules.request_rates import UNLIMITED, allowed_rate
from eventing.subscriptions.push.rules.verdicts import PushAnswer

ORIGIN, RATE = "webhook-allowed-origin", "webhook-allowed-rate"


def handshake_request(target: PushTarget) -> PushRequest:
    """Make the request for permission."""
    rate = (("WebHook-Request-Rate", str(target.rate)),) if target.rate else ()
    fields = (*target.headers, ("WebHook-Request-Origin", target.origin), *rate)
    return PushRequest("OPTIONS", fields, reads=(ORIGIN, RATE, "retry-after"))


def handshake_allows(target: PushTarget, answer: PushAnswer) -> bool:
    """Return True if the answer permits requests of this domain."""
    origin = answer.header(ORIGIN).strip().lower()
    if answer.failure or origin not in (target.origin.lower(), UNLIMITED):
        return False
    field = answer.header(RATE)
    if not field:
        return target.rate is None
    try:
        allowed_rate(field)
    except ValueError:
        return False
    return True


def handshake_rate(answer: PushAnswer) -> int | None:
    """Return the requests a minute that a permission allows; None for no bound."""
    field = answer.header(RATE)
    return allowed_rate(field) if field else None
