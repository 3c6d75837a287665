"""The console's navigation: every page that it may list, in order. A page whose address does not exist is not listed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from django.urls import NoReverseMatch, reverse


@dataclass(frozen=True, slots=True)
class Entry:
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
    Entry("overview", "Overview", "overview", under=("start",)),
    Entry("alarms", "Alarms", "alarms"),
    Entry("rp-list", "Rendezvous points", "rp", under=("rp",)),
    Entry("timescale", "Timescale", "timescale"),
    Entry("federation", "Federation", "federation", under=("federation", "peer")),
    Entry("subscriptions", "Subscriptions", "subscriptions", apart=True, under=("subscription",)),
    Entry("leases", "Leases", "leases"),
    Entry("keys", "Tokens and keys", "keys"),
    Entry("quotas", "Quotas", "quotas"),
    Entry("audit", "Audit", "audit", apart=True),
    Entry("reports", "Reports", "reports", under=("report",)),
    Entry("system", "System", "system"),
    Entry("user-list", "Users", "users", administrators=True, under=("user",)),
)


@dataclass(frozen=True, slots=True)
class Link:
    """An entry as one page shows it; `here`: "page" on it, "true" on a page under it, else empty."""

    address: str
    text: str
    icon: str
    apart: bool
    here: str


def links(url_name: str, *, administrator: bool) -> list[Link]:
    """What to list on the page whose url name is `url_name` (without namespace; empty for none)."""
    return [
        Link(address, entry.text, entry.icon, entry.apart, _here(entry, url_name))
        for entry in ENTRIES
        if (administrator or not entry.administrators) and (address := address_of(entry.url_name))
    ]


def _here(entry: Entry, url_name: str) -> str:
    if url_name == entry.url_name:
        return "page"
    return "true" if any(url_name == start or url_name.startswith(f"{start}-") for start in entry.under) else ""


@lru_cache(maxsize=len(ENTRIES))
def address_of(url_name: str) -> str:
    """The address of a page of the console; empty where there is no such page."""
    try:
        return reverse(f"portal:{url_name}")
    except NoReverseMatch:
        return ""
