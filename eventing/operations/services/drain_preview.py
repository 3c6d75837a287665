"""Preview of a drain: its effect on everything that this domain has, and all that it cannot hand over."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from eventing.intakes.models import Intake
from eventing.operations.models import DomainDrain
from eventing.operations.selectors.draining import own_homes, readers_left
from eventing.operations.shapes import DrainForecast, DrainPreviewAnswer
from eventing.subscriptions.push.services.closing import endpoints_open
from eventing.subscriptions.push.services.endings import ANNOUNCED
from eventing.subscriptions.selectors.alone import alone_by_mode, shareable
from eventing.subscriptions.sharing.shared_subscriptions import delivering_here

HANDED_OVER, WAITS, ENDS, PAUSED = "handed-over", "waits", "ends", "paused"
_NOTICES = {
    "ws-eventing": "The sink is sent SubscriptionEnd with the status SourceShuttingDown.",
    "websub": "The callback is sent a denial.",
}


def drain_preview(*, closes: bool, now: datetime | None = None) -> DrainPreviewAnswer:
    """Return what a drain would do now. Raises redis.RedisError.

    Args:
        closes: whether the domain stops for good.
    """
    now = now or timezone.now()
    homes, modes = own_homes(DomainDrain(refusals={}), now), alone_by_mode(now)
    shared, pulled = shareable(now).count(), modes.pop("pull", 0)
    intakes = Intake.objects.filter(expires_at__gt=now).count()
    found = [
        DrainForecast("home", "", homes.left, HANDED_OVER, "A participant is asked to become the home."),
        DrainForecast("reader", "", readers_left(now).total(), HANDED_OVER, "Clients are pointed to other domains."),
        DrainForecast("delivery", "", delivering_here(now=now), HANDED_OVER, "Another holder delivers."),
        DrainForecast("subscription", "pull", shared, HANDED_OVER, "A peer at the rendezvous point holds it too."),
        DrainForecast(
            "home", "", homes.staying, ENDS if closes else WAITS, "No other domain holds a replica: invite one first."
        ),
        DrainForecast(
            "subscription",
            "pull",
            pulled - shared,
            ENDS if closes else WAITS,
            "No active peer that trusts this domain with `host` holds the rendezvous point.",
        ),
        *(_endpoints(mode, count, closes) for mode, count in modes.items()),
        DrainForecast(
            "intake", "", intakes, ENDS if closes else WAITS, "Senders are refused while this domain is down."
        ),
    ]
    return DrainPreviewAnswer(closes, [one for one in found if one.count])


def endpoints_left(*, closes: bool, now: datetime) -> int:
    """Return the endpoints that only this domain delivers to; of a domain that closes, those still to be notified."""
    if closes:
        return endpoints_open(now).count()
    return sum(count for mode, count in alone_by_mode(now).items() if mode != "pull")


def _endpoints(mode: str, count: int, closes: bool) -> DrainForecast:
    if not closes:
        why = "Deliveries wait while this domain is down: the endpoint's secrets are disclosed to no other."
        return DrainForecast("endpoint", mode, count, WAITS, why)
    if mode in ANNOUNCED:
        return DrainForecast("endpoint", mode, count, ENDS, _NOTICES[mode])
    why = "Paused at the end; the owner is warned at the subscription's `warn_url` if there is one."
    return DrainForecast("endpoint", mode, count, PAUSED, why)
