"""Administrative events of the map, at `overlay.admin`: domains and links of the overlay as they change, and samples of figures.

`domain.admin` has the events that explain (events.py); here is what a program needs that keeps the map.
"""

from __future__ import annotations

from eventing.core.shapes import closed_schema
from eventing.membership.map_shapes import MapDomain, MapFigures, MapLink
from eventing.membership.services.map_changes import ROWS_MAX
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import ON_OVERLAY, OVERLAY, EventKind, items, text

_DOMAIN = closed_schema(MapDomain)
_LINK = closed_schema(MapLink)
_FIGURES = closed_schema(MapFigures)["properties"]

KINDS: dict[str, EventKind] = {
    events.OVERLAY_MAP_CHANGED: EventKind(
        "Domains appeared on the map of the overlay, left it or changed what they state, or links of this domain were made or ended.",
        ON_OVERLAY,
        {
            "domains": items(_DOMAIN, "domains that appeared or changed, as they are now", most=ROWS_MAX),
            "left": items(text("a domain's name"), "domains whose records expired", most=ROWS_MAX),
            "links": items(_LINK, "links that stand now", most=ROWS_MAX),
            "ended": items(text("the other domain"), "links that ended", most=ROWS_MAX),
        },
        effects=(
            {"in": OVERLAY, "op": "put", "at": ["domains", "$each.name"], "value": "$each", "each": "$domains"},
            {"in": OVERLAY, "op": "remove", "at": ["domains", "$each"], "each": "$left"},
            {"in": OVERLAY, "op": "put", "at": ["links", "$each.peer"], "value": "$each", "each": "$links"},
            {"in": OVERLAY, "op": "remove", "at": ["links", "$each"], "each": "$ended"},
        ),
    ),
    events.OVERLAY_MAP_CLEARED: EventKind(
        "This domain left the overlay: the map is empty.",
        ON_OVERLAY,
        {},
        effects=(
            {"in": OVERLAY, "op": "put", "at": ["domains"], "value": {}},
            {"in": OVERLAY, "op": "put", "at": ["links"], "value": {}},
            {"in": OVERLAY, "op": "put", "at": ["figures"], "value": None},
        ),
    ),
    events.OVERLAY_SAMPLED: EventKind(
        "Figures of the overlay, once a minute while this domain takes part in one.",
        ON_OVERLAY,
        _FIGURES,
        effects=({"in": OVERLAY, "op": "put", "at": ["figures"], "value": "$", "newer": "at"},),
    ),
}
