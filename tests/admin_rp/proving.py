"""The proof that every administrative event owes: real state before + event = real state after.

    with Proof(rp.id) as proof:
        rendezvous_point_update(...)
    assert proof.types == ["rp.changed"]

Both states are snapshots that the server makes from SQL and Redis; the events are what services wrote to the administrative
logs in between; `admin_rp.state.apply` has to lead from the one to the other. What only samples tell is compared where one
was among the events (TOLD_BY): in between it moves without an event, and its next sample tells it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from jsonschema import Draft202012Validator, FormatChecker

from admin_rp.catalogue import CATALOGUE
from admin_rp.snapshots import Snapshot, domain_snapshot, overlay_snapshot, rp_snapshot
from admin_rp.state import apply
from eventing.core.events.cursors import Cursor
from eventing.core.ids import DOMAIN_ADMIN, OVERLAY_ADMIN, admin_id
from eventing.log import control
from eventing.outbox import administrative_events as events
from eventing.outbox.kind import DOMAIN, OVERLAY, RP

CHECKED: set[str] = set()
"""Types that have been proved in this process."""

HISTORY = {events.HISTORY_TRIMMED, events.EPOCH_RENEWED, events.LOAD_SAMPLED}


def validate(event: Mapping[str, Any], at: str) -> None:
    """An event is as the catalogue says, and where it says."""
    kind = CATALOGUE[event["type"]]
    Draft202012Validator(kind.schema, format_checker=FormatChecker()).validate(event["data"])
    assert {DOMAIN_ADMIN: DOMAIN, OVERLAY_ADMIN: OVERLAY}.get(at, RP) in kind.where, f"{event['type']} at {at}"
    assert event["datacontenttype"] == "application/json"


def events_after(at: str, cursor: str) -> list[dict[str, Any]]:
    """What an administrative log holds after a cursor, which must be of its epoch."""
    place = Cursor.parse(cursor)
    run = control.read(at, place.offset + 1, 1000, 1 << 22)
    assert run.state.epoch == place.epoch
    assert run.first == place.offset + 1 or not run.events, "nothing was trimmed away"
    found = [json.loads(body) for body in run.events]
    for event in found:
        validate(event, at)
    return found


def followed(which: str, before: Snapshot, told: list[dict[str, Any]]) -> Mapping[str, Any]:
    """The state of a snapshot after events; that they change nothing in place, and nothing when the last ones come again."""
    untouched = copy.deepcopy(before["state"])
    state: Mapping[str, Any] = before["state"]
    for event in told:
        state = apply(which, state, event)
    assert before["state"] == untouched
    again = state
    for event in told[-3:]:
        again = apply(which, again, event)
    assert again == state, "events that are known already change nothing"
    return state


def same(which: str, followed_to: Mapping[str, Any], real: Mapping[str, Any], kinds: set[str]) -> None:
    """The followed state is the real one; `kinds` are the types among the events."""
    mine, theirs = _comparable(followed_to, kinds), _comparable(real, kinds)
    if which == DOMAIN:
        # After a deletion an older RP comes into the real list; whoever followed may have fewer, and no others.
        recent, all_recent = mine.pop("recent_rps"), theirs.pop("recent_rps")
        assert recent.items() <= all_recent.items()
        if events.RP_DELETED not in kinds:
            assert recent == all_recent
    assert mine == theirs


def _comparable(state: Mapping[str, Any], kinds: set[str]) -> dict[str, Any]:
    """Without what no event among `kinds` told, and without the times at which something was looked at."""
    made = copy.deepcopy(dict(state))
    made.pop("redis", None)
    if "counts" in made and events.LOAD_SAMPLED not in kinds:
        made["counts"] = {name: made["counts"][name] for name in ("rps", "subscriptions")}
    for peer in made.get("peers", {}).values():
        peer["lease"].pop("expires_at")  # contact renews it, which is no event
    if made.get("history"):
        made["history"] = {**made["history"], "at": None} if kinds & HISTORY else None
    for row in made.get("subscriptions", {}).values():
        row["lag"] = {**row["lag"], "at": None} if events.SUBSCRIPTION_LAGGED in kinds else None
    for row in made.get("replicas", {}).values():
        row["progress"] = {**row["progress"], "at": None} if events.REPLICA_PROGRESSED in kinds else None
    return made


class Proof:
    """Proves everything that happens within the block, at the domain and at these RPs.

    Attributes:
        types: after the block, the types that were told, without the common prefix, in order, each event once.
        told: the events by log.
    """

    def __init__(self, *rps: str) -> None:
        self._places = {
            DOMAIN_ADMIN: (DOMAIN, ""),
            OVERLAY_ADMIN: (OVERLAY, ""),
            **{admin_id(rp): (RP, rp) for rp in rps},
        }
        self._before: dict[str, Snapshot] = {}
        self.types: list[str] = []
        self.told: dict[str, list[dict[str, Any]]] = {}

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.end()

    def begin(self) -> None:
        """The states before."""
        self._before = {at: self._snapshot(at) for at in self._places}

    def end(self) -> None:
        """The states after, and the events between."""
        ids: set[str] = set()
        for at, (which, _) in self._places.items():
            told = self.told[at] = events_after(at, self._before[at]["cursor"])
            state = followed(which, self._before[at], told)
            same(which, state, self._snapshot(at)["state"], {event["type"] for event in told})
            CHECKED.update(event["type"] for event in told)
            self.types += [event["type"].removeprefix("io.herald.") for event in told if event["id"] not in ids]
            ids |= {event["id"] for event in told}

    def _snapshot(self, at: str) -> Snapshot:
        which, rp = self._places[at]
        made = {DOMAIN: domain_snapshot, OVERLAY: overlay_snapshot}[which]() if not rp else rp_snapshot(rp)
        return json.loads(json.dumps(made))  # as it crosses the wire
