"""Navigation of the console: all pages in order. Pages without an address are not listed."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import NoReverseMatch, reverse

from eventing.core.container import memoized


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """`url_name` in the namespace portal; `icon` is a symbol of templates/portal/icons.html; `apart` begins a group;
    `under` are beginnings of the url names of pages that belong to it.
    """

    url_name: str
    text: str
    icon: str
    apart: bool = False
    administrators: bool = False
    under: tuple[str, ...] = ()


ENTRIES = (
    NavigationEntry("overview", "Overview", "overview"),
    NavigationEntry("start", "Start here", "start"),
    NavigationEntry("alarms", "Alarms", "alarms"),
    NavigationEntry("rp-list", "Rendezvous points", "rp", under=("rp",)),
    NavigationEntry("timescale", "Timescale", "timescale"),
    NavigationEntry("federation", "Federation", "federation", under=("federation", "peer")),
    NavigationEntry("overlay", "Overlay", "overlay", under=("overlay-domain",)),
    NavigationEntry("self-administration", "Self-administration", "planning"),
    NavigationEntry("sessions", "Sessions", "sessions", apart=True),
    NavigationEntry("subscriptions", "Subscriptions", "subscriptions", under=("subscription",)),
    NavigationEntry("deliveries", "Deliveries", "deliveries", under=("delivery",)),
    NavigationEntry("leases", "Leases", "leases"),
    NavigationEntry("keys", "Tokens and keys", "keys"),
    NavigationEntry("quotas", "Quotas", "quotas"),
    NavigationEntry("audit", "Audit", "audit", apart=True),
    NavigationEntry("reports", "Reports", "reports", under=("report",)),
    NavigationEntry("system", "System", "system"),
    NavigationEntry("user-list", "Users", "users", administrators=True, under=("user",)),
)


@dataclass(frozen=True, slots=True)
class NavigationLink:
    """An entry as one page shows it; `here`: "page" on it, "true" on a page under it, else empty."""

    address: str
    text: str
    icon: str
    apart: bool
    here: str


def links(url_name: str, *, administrator: bool) -> list[NavigationLink]:
    """Return the links of the page whose url name is `url_name` (without namespace; empty for none)."""
    return [
        NavigationLink(address, entry.text, entry.icon, entry.apart, _here(entry, url_name))
        for entry in ENTRIES
        if (administrator or not entry.administrators) and (address := address_of(entry.url_name))
    ]


def _here(entry: NavigationEntry, url_name: str) -> str:
    if url_name == entry.url_name:
        return "page"
    return "true" if any(url_name == start or url_name.startswith(f"{start}-") for start in entry.under) else ""


@memoized(maxsize=len(ENTRIES))
def address_of(url_name: str) -> str:
    """The address of a page of the console; empty where there is no such page."""
    try:
        return reverse(f"portal:{url_name}")
    except NoReverseMatch:
        return ""
