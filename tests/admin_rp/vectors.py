"""Vectors for interpreters of the catalogue's effects: made from the catalogue alone, the same bytes each time.

For each type, in each state that it is told for: onto the empty state, again, once more with every time and version later,
and then an older one; a few that show a rule at its edge. `tests/admin_rp/vectors.json` holds them for interpreters in other
languages (portal/web/test/state.test.js); test_vectors.py says when it is stale.

    .venv/bin/python manage.py shell -c "from tests.admin_rp.vectors import write; write()"
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from admin_rp.catalogue import CATALOGUE, EMPTY, exported
from admin_rp.state import apply
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import DOMAIN, OVERLAY, RP

FILE = Path(__file__).with_name("vectors.json")
KEYS = {"id", "name", "domain", "peer", "gateway", "origin", "carrier", "subscription", "home", "rp"}
"""Members whose value names a row: the same whatever the age of an event, so that a later one meets the row."""


def example(schema: Mapping[str, Any], age: int, name: str = "") -> Any:
    """A value of this schema; greater for a greater `age` where that can be."""
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    match kinds[0]:
        case "object":
            made = {member: example(one, age, member) for member, one in schema.get("properties", {}).items()}
            if isinstance(schema.get("additionalProperties"), Mapping):
                made |= {f"{name or 'key'}-{n}": example(schema["additionalProperties"], age) for n in range(2)}
            return made
        case "array":
            return [_row(example(schema["items"], age, name), n) for n in range(2)]
        case "integer":
            return 10 + age
        case "number":
            return 0.5 + age
        case "boolean":
            return age % 2 == 0
        case _ if "format" in schema:
            return f"2026-01-01T00:00:{10 + age:02d}.000000Z"
        case _:
            return f"{name}-é" if name in KEYS else f"{name} {age}"


def _row(item: Any, number: int) -> Any:
    """The items of a list name different rows."""
    if not isinstance(item, dict):
        return f"{item} {number}"
    return {member: f"{value}{number}" if member in KEYS else value for member, value in item.items()}


def event_of(kind: str, age: int, **data: Any) -> dict[str, Any]:
    """An event of a type."""
    made = {name: example(schema, age, name) for name, schema in CATALOGUE[kind].data.items()}
    return {
        "specversion": "1.0",
        "id": f"e{age}",
        "source": "/example.org",
        "type": kind,
        "time": f"2026-01-01T00:00:{10 + age:02d}.000000Z",
        "datacontenttype": "application/json",
        "data": {**made, **data},
    }


class Recorder:
    """Applies events one after the other and keeps what came of each."""

    def __init__(self) -> None:
        self.vectors: list[dict[str, Any]] = []

    def follow(self, name: str, which: str, told: list[dict[str, Any]], *, last: int = 100) -> None:
        """From the empty state; the last so many are kept."""
        state: Mapping[str, Any] = EMPTY[which]
        for number, event in enumerate(told, 1):
            after = apply(which, state, event)
            if number > len(told) - last:
                row = {"name": f"{name} {number}", "in": which, "before": state, "event": event, "after": after}
                self.vectors.append(row)
            state = after


def vectors() -> list[dict[str, Any]]:
    """All of them."""
    made = Recorder()
    for kind, what in CATALOGUE.items():
        for which in (DOMAIN, RP, OVERLAY):
            if which in what.where and what.effects:
                ages = (1, 1, 2, 0)
                made.follow(kind, which, [*_ground(kind, which), *(event_of(kind, age) for age in ages)])
    _edges(made)
    return made.vectors


MAKERS = {
    "rp": events.RP_CREATED,
    "recent_rps": events.RP_CREATED,
    "subscriptions": events.SUBSCRIPTION_CREATED,
    "replicas": events.REPLICA_ADDED,
    "load": events.LOAD_SAMPLED,
    "gateways": events.LOAD_SAMPLED,
    "peers": events.PEER_ACTIVE,
    "acquaintances": events.ACQUAINTANCE_BEGUN,
    "quarantines": events.ORIGIN_QUARANTINED,
    "alarms": events.ALARM_RAISED,
    "watches": events.WATCH_CHANGED,
    "domains": events.OVERLAY_MAP_CHANGED,
    "links": events.OVERLAY_MAP_CHANGED,
}
"""What makes the rows of a member of a state."""


def _ground(kind: str, which: str) -> list[dict[str, Any]]:
    """Events that make the rows which this type only changes, or removes."""
    needy = [
        effect["at"][0]
        for effect in CATALOGUE[kind].effects
        if effect.get("in", which) == which and (effect["op"] == "remove" or effect.get("if") == "present")
    ]
    if kind == events.OVERLAY_MAP_CLEARED:
        needy.append("domains")
    told = [event_of(one, 0) for one in dict.fromkeys(MAKERS[member] for member in needy) if one != kind]
    return [_matched(one, kind) for one in told]


def _matched(made: dict[str, Any], kind: str) -> dict[str, Any]:
    """Have the items of a list in `kind` name the row that `made` makes: the first of them is it."""
    if kind == events.SUBSCRIPTION_LAGGED:
        made["data"]["subscription"]["id"] = "subscription-é0"
    if kind == events.ENDPOINT_CHANGED:
        made["data"]["subscription"]["id"] = "subscription-é"
    if kind == events.PEER_DELIVERY:
        made["data"]["peer"]["name"] = "peer-é"
    if kind == events.PEERS_TRAFFIC:
        made["data"]["peer"]["name"] = "peer-é0"
    if kind == events.REPLICA_PROGRESSED:
        made["data"]["domain"] = "domain-é0"
    return made


def _edges(made: Recorder) -> None:
    created = [
        event_of(
            events.RP_CREATED,
            n % 50,
            rp={**example(CATALOGUE[events.RP_CREATED].data["rp"], n % 50), "id": f"rp-{n:02d}"},
        )
        for n in range(23)
    ]
    made.follow("only the latest stay", DOMAIN, created, last=1)
    lease = event_of(events.LEASE_RENEWED, 5, what="subscription", id="nobody")
    made.follow("a lease of what is not there", RP, [lease])
    made.follow("a type that nobody knows", DOMAIN, [{**lease, "type": "io.herald.unheard.of"}])
    sample = event_of(events.LOAD_SAMPLED, 3)
    del sample["data"]["counts"], sample["data"]["redis"]
    made.follow("a value that is missing does nothing", DOMAIN, [sample])
    renewed = event_of(events.LEASE_RENEWED, 5, what="subscription", id="id-é")
    made.follow("a lease that was renewed", RP, [event_of(events.SUBSCRIPTION_CREATED, 1), renewed])


def document() -> str:
    """The file: a vector in a line, so that a change shows."""
    lines = ",\n".join(json.dumps(one, sort_keys=True, separators=(",", ":")) for one in vectors())
    return f'{{"catalogue":{exported().decode()},\n"vectors":[\n{lines}\n]}}\n'


def write() -> None:
    """Bring the file up to date."""
    FILE.write_text(document())
