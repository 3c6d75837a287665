"""Quotas and rates: how far each limit of the domain is used, and which setting changes it (docs/limits.md)."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from eventing.conf import config
from portal.console.pages import words
from portal.console.pages.access import current_user, page, principal_of
from portal.console.pages.lists import rights_of


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of /api/v1/limits: what people call it, and the field of eventing/core/config.py that sets it, if one does."""

    name: str
    title: str
    setting: str

    @property
    def variable(self) -> str:
        """The environment variable; empty if nothing limits it."""
        return f"HERALD_{self.setting.upper()}" if self.setting else ""

    @property
    def value(self) -> int:
        """What is set: per second for a rate, 0 for no limit."""
        value: int = getattr(config(), self.setting) if self.setting else 0
        return value

    @property
    def shown(self) -> str:
        """It with its unit."""
        rate = self.setting.endswith("_per_s")
        text = words.size(self.value) if "bytes" in self.setting else f"{self.value:,}"
        return f"{text}/s" if rate else text


KEPT = (
    Limit("domain-history-bytes", "History reserved", "history_quota_bytes"),
    Limit("domain-rps", "Rendezvous points", "rps_max"),
    Limit("domain-subscriptions", "Durable subscriptions", ""),
    Limit("domain-sessions", "Connections", "sessions_max"),
)
"""What the domain keeps. Connections are counted by the gateways; HERALD_SESSIONS_MAX is of one."""

RATES = (
    Limit("domain-requests", "Requests", "domain_requests_per_s"),
    Limit("domain-publish-events", "Events published", "domain_events_per_s"),
    Limit("domain-publish-bytes", "Bytes published", "domain_bytes_per_s"),
    Limit("accepts", "New connections", "accepts_per_s"),
)
"""Rates of all together."""

EACH = (
    Limit("rps", "Rendezvous points created", "rps_per_principal"),
    Limit("history-bytes", "History they reserve", "history_bytes_per_principal"),
    Limit("subscriptions", "Durable subscriptions", "subscriptions_per_principal"),
    Limit("sessions", "Connections", "sessions_per_principal"),
    Limit("requests", "Requests", "requests_per_s"),
    Limit("publish-events", "Events published", "publish_events_per_s"),
    Limit("publish-bytes", "Bytes published", "publish_bytes_per_s"),
)
"""Of each principal; shown with the use of who looks."""

AT_EACH_RP = (
    Limit("rp-subscriptions", "Durable subscriptions", "subscriptions_per_rp_max"),
    Limit("rp-publish-events", "Events published", "rp_events_per_s"),
    Limit("rp-publish-bytes", "Bytes published", "rp_bytes_per_s"),
)
"""Of each rendezvous point; shown as they are set."""


@page
@require_GET
def quotas(request: HttpRequest) -> HttpResponse:
    """What is limited. The domain's use is for who oversees it."""
    rights = rights_of(principal_of(current_user(request)))
    groups = {"kept": KEPT, "rates": RATES, "each": EACH, "at_each_rp": AT_EACH_RP}
    context = {**rights, **groups, "gateways": config().gateways, "window_s": config().rate_window_s}
    return render(request, "portal/quotas.html", context)
