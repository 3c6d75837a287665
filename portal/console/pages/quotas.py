"""Page of quotas and rates: use of each limit, and the setting that changes it (docs/limits.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from eventing.access.rules.tokens import IDENTITY_CHARS_MAX
from eventing.conf import config
from eventing.operations.selectors.holdings import Held, held_by, largest_holders
from portal.console.pages import words
from portal.console.pages.access import current_user, page, principal_of
from portal.console.pages.lists import rights_of


@dataclass(frozen=True, slots=True)
class QuotaLimit:
    """A limit of /api/v1/limits: its title, and the field of eventing/core/config.py that sets it, if any."""

    name: str
    title: str
    setting: str

    @property
    def variable(self) -> str:
        """Environment variable of the limit; empty without a limit."""
        return f"HERALD_{self.setting.upper()}" if self.setting else ""

    @property
    def value(self) -> int:
        """Value of the setting: per second for a rate, 0 for no limit."""
        value: int = getattr(config(), self.setting) if self.setting else 0
        return value

    @property
    def shown(self) -> str:
        """Value with its unit."""
        rate = self.setting.endswith("_per_s")
        text = words.size(self.value) if "bytes" in self.setting else f"{self.value:,}"
        return f"{text}/s" if rate else text


KEPT = (
    QuotaLimit("domain-history-bytes", "History reserved", "history_quota_bytes"),
    QuotaLimit("domain-rps", "Rendezvous points", "rps_max"),
    QuotaLimit("domain-subscriptions", "Durable subscriptions", ""),
    QuotaLimit("domain-sessions", "Connections", "sessions_max"),
)
"""Objects of the domain. Connections are counted by the gateways; HERALD_SESSIONS_MAX applies to each gateway."""

RATES = (
    QuotaLimit("domain-requests", "Requests", "domain_requests_per_s"),
    QuotaLimit("domain-publish-events", "Events published", "domain_events_per_s"),
    QuotaLimit("domain-publish-bytes", "Bytes published", "domain_bytes_per_s"),
    QuotaLimit("accepts", "New connections", "accepts_per_s"),
)
"""Rates of all together."""

EACH = (
    QuotaLimit("rps", "Rendezvous points created", "rps_per_principal"),
    QuotaLimit("history-bytes", "History they reserve", "history_bytes_per_principal"),
    QuotaLimit("subscriptions", "Durable subscriptions", "subscriptions_per_principal"),
    QuotaLimit("sessions", "Connections", "sessions_per_principal"),
    QuotaLimit("requests", "Requests", "requests_per_s"),
    QuotaLimit("publish-events", "Events published", "publish_events_per_s"),
    QuotaLimit("publish-bytes", "Bytes published", "publish_bytes_per_s"),
)
"""Of each principal; shown with the use of who looks."""

AT_EACH_RP = (
    QuotaLimit("rp-subscriptions", "Durable subscriptions", "subscriptions_per_rp_max"),
    QuotaLimit("rp-publish-events", "Events published", "rp_events_per_s"),
    QuotaLimit("rp-publish-bytes", "Bytes published", "rp_bytes_per_s"),
)
"""Of each rendezvous point; shown as they are set."""

HOLDERS_EACH = 10
"""Principals that are shown of those with most RPs, most history and most subscriptions."""


@page
@require_GET
def quotas(request: HttpRequest) -> HttpResponse:
    """Show limits. The domain's use, and that of other principals, `?principal=` among them, is shown to viewers, operators
    and administrators."""
    rights = rights_of(principal_of(current_user(request)))
    groups: dict[str, Any] = {"kept": KEPT, "rates": RATES, "each": EACH, "at_each_rp": AT_EACH_RP}
    if rights["live"]:
        groups |= _holders(request.GET.get("principal", "").strip()[:IDENTITY_CHARS_MAX])
    context = {**rights, **groups, "gateways": config().gateways, "window_s": config().rate_window_s}
    return render(request, "portal/quotas.html", context)


def _holders(asked: str) -> dict[str, Any]:
    found = {asked: held_by(asked)} if asked else largest_holders(HOLDERS_EACH)
    return {"asked": asked, "holders": [_holder(name, held) for name, held in found.items()]}


def _holder(name: str, held: Held) -> dict[str, Any]:
    quota = config()
    parts = (
        (held.rps, quota.rps_per_principal),
        (held.history_bytes, quota.history_bytes_per_principal),
        (held.subscriptions, quota.subscriptions_per_principal),
    )
    fullest = max((used / most for used, most in parts if most), default=0.0)
    return {"name": name, "held": held, "history": words.size(held.history_bytes), "fullest": _percent(fullest)}


def _percent(share: float) -> str:
    return "< 1\u202f%" if 0 < share < 0.01 else f"{100 * share:.0f}\u202f%"
