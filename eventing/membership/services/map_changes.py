"""Reporting of changes of the map at `overlay.admin`, within the transaction that makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eventing.core.ids import OVERLAY_ADMIN
from eventing.membership.map_shapes import MapDomain
from eventing.membership.models import OverlayLink
from eventing.membership.selectors.map_rows import map_link
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox

ROWS_MAX = 100  # bound: rows of each kind in an event of the map; the others are in the next event


def map_report(outbox: Outbox, before: Mapping[str, MapDomain], after: Mapping[str, MapDomain]) -> None:
    """Report what changed of some domains, given what the map showed of them before and after."""
    changed = [one for name, one in after.items() if before.get(name) != one]
    _report(outbox, domains=changed, left=[name for name in before if name not in after])


def map_links_report(outbox: Outbox, rows: Iterable[OverlayLink]) -> None:
    """Report links, each as its row is now."""
    rows = list(rows)
    _report(outbox, links=[map_link(row) for row in rows if row.up], ended=[row.peer for row in rows if not row.up])


def map_clear(outbox: Outbox) -> None:
    """Report that the map is empty."""
    outbox.event(events.OVERLAY_MAP_CLEARED, OVERLAY_ADMIN, {})


def _report(outbox: Outbox, **rows: Sequence[Any]) -> None:
    """Report rows of each kind, in as many events as they need."""
    most = max(len(of) for of in rows.values())
    for begin in range(0, most, ROWS_MAX):
        part = {name: list(of[begin : begin + ROWS_MAX]) for name, of in rows.items()}
        data = {"domains": [], "left": [], "links": [], "ended": [], **part}
        outbox.event(events.OVERLAY_MAP_CHANGED, OVERLAY_ADMIN, data)
