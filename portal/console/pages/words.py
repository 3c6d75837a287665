"""Formatting of values on pages: sizes, durations, names, and the commands to copy."""

from __future__ import annotations

from eventing.conf import config
from eventing.core.events.ack_level import Ack
from eventing.rps.models import RendezvousPoint

UNITS_S = {"minutes": 60, "hours": 3600, "days": 86_400}


def size(count: int) -> str:
    """A number of bytes in binary units: `512 B`, `1.5 MiB`."""
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024 or unit == "GiB":
            break
    return f"{value:.1f}".removesuffix(".0") + f" {unit}"


def duration(seconds: int) -> str:
    """Return a duration in its largest fitting units: `1 day 12 hours`, `90 seconds`."""
    if seconds < 120:
        return _plural(seconds, "second")
    parts = []
    for name, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(_plural(count, name))
    return " ".join(parts[:2])


def in_units(seconds: int) -> tuple[int, str]:
    """Return a duration as a whole number of the largest fitting unit of UNITS_S; at least one minute."""
    for name, length in reversed(UNITS_S.items()):
        if seconds % length == 0 and seconds:
            return seconds // length, name
    return max(1, round(seconds / 60)), "minutes"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def label(rp: RendezvousPoint) -> str:
    """Return an RP's label: its name, else its title, else its id."""
    return rp.name or rp.title or rp.id


def ack_text(ack: Ack) -> str:
    """Return the meaning of an acknowledgement level."""
    if ack.all:
        return "on disk, and held by every replica"
    if ack.replicas:
        return f"on disk, and held by {_plural(ack.replicas, 'replica')}"
    return "on disk (stored)" if ack.stored else "in memory (accepted)"


def reference(rp: RendezvousPoint) -> str:
    """Return the shortest reference of an RP for commands and addresses: its name in this domain, else its id."""
    own = f"/{config().domain}/"
    return rp.name.removeprefix(own).strip("/") if rp.name and rp.name.startswith(own) else rp.id


def commands(reference: str) -> dict[str, str]:
    """Return terminal commands equivalent to the page, for the RP with this reference (`reference`)."""
    base = config().base_url
    events = f"{base}/api/v1/rps/{reference}"
    header = '-H "Authorization: Bearer $HERALD_TOKEN"'
    return {
        "token": f"export HERALD_URL={base} HERALD_TOKEN=$(herald token create)",
        "create": f"herald rp create {reference}",
        "subscribe": f"herald sub {reference} --from earliest",
        "publish": f"""herald pub {reference} '{{"hello": "world"}}'""",
        "pull": f"herald sub {reference} --from earliest --count 10",
        "curl_publish": f"""curl {events}/events {header} \\
  -H "Content-Type: application/json" -d '{{"hello": "world"}}'""",
        "curl_subscribe": f'curl -N "{events}/stream?after=earliest" {header}',
        "curl_pull": f'curl "{events}/events?after=earliest&limit=10" {header}',
    }


_BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def agent(header: str) -> str:
    """Return a readable User-Agent: `Firefox on Linux`; the start of the header for unknown browsers."""
    browser = next((name for mark, name in _BROWSERS if mark in header), "")
    system = next((name for mark, name in _SYSTEMS if mark in header), "")
    if not browser:
        return header[:40] or "unknown program"
    return f"{browser} on {system}" if system else browser
