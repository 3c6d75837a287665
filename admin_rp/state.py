"""States of administrative RPs, and their changes by events, as the catalogue's effects define them. Pure.

    state = snapshot["state"]
    for event in events_after(snapshot["cursor"]):
        state = apply(DOMAIN, state, event)

A state is a JSON object and never changed in place: `apply` copies the path of a change and shares the rest. Events that
the state already reflects have no lasting effect: a snapshot is taken after its cursor was read, so the first events after
the cursor may be in it. portal/web/state.js does the same in the browser; both are tested with the same vectors
(tests/admin_rp/vectors.json).

An effect's members:

    op      put: replace the value at the path; merge: put the value's members into the object there, which is created
            if it is missing; remove
    at      the path: names, "$PATH" for a name in the event's data, [..] for several joined by spaces
    value   "$PATH": of the event's data ("$": all of it); "@NAME": an attribute of the event; objects of these; or a
            constant. If part of it is missing, there is no effect
    without members to leave out of the value
    in      the state that it applies to, "domain", "rp" or "overlay"; absent: domain and RP
    each    "$PATH" of a list: applied to each of its items, which "$each.PATH" reads
    when    members that the data must have with these values
    if      "present": only if the path has a value; "absent": only if it has none
    newer   path of a member of the value: a present value with a greater one stays
    most,by after a put, the object around it keeps this many members, those whose member `by` is greatest
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from admin_rp.catalogue import CATALOGUE
from eventing.outbox.kind import OVERLAY

State = Mapping[str, Any]
_MISSING: Any = object()


def apply(which: str, state: State, event: Mapping[str, Any]) -> State:
    """Return the state after `event`, a CloudEvent. Types outside the catalogue change nothing.

    Args:
        which: DOMAIN, RP or OVERLAY.
    """
    kind = CATALOGUE.get(event.get("type", ""))
    if kind is None:
        return state
    for effect in kind.effects:
        if effect.get("in", which if which != OVERLAY else None) == which:
            state = _done(effect, state, event)
    return state


def _done(effect: Mapping[str, Any], state: State, event: Mapping[str, Any]) -> State:
    data = event["data"]
    if any(_read(data, path.split(".")) != value for path, value in effect.get("when", {}).items()):
        return state
    if "each" not in effect:
        return _once(effect, state, event, data)
    found = _read(data, effect["each"][1:].split("."))
    for item in found if isinstance(found, list) else ():
        state = _once(effect, state, event, {**data, "each": item})
    return state


def _once(effect: Mapping[str, Any], state: State, event: Mapping[str, Any], data: Mapping[str, Any]) -> State:
    path = [name for segment in effect["at"] if (name := _segment(segment, data)) is not None]
    if len(path) < len(effect["at"]):
        return state
    held = _read(state, path)
    there = held is not _MISSING and held is not None
    if effect.get("if", "present" if there else "absent") != ("present" if there else "absent"):
        return state
    if effect["op"] == "remove":
        return _without(state, path) if held is not _MISSING else state
    value = _value(effect["value"], event, data)
    if value is _MISSING:
        return state
    if "without" in effect:
        value = {name: member for name, member in value.items() if name not in effect["without"]}
    if there and "newer" in effect and _older(effect["newer"].split("."), value, held):
        return state
    if effect["op"] == "merge" and there:
        value = {**held, **value}
    changed = _with(state, path, value)
    return _bounded(changed, path[:-1], effect["most"], effect["by"]) if "most" in effect else changed


def _segment(segment: Any, data: Mapping[str, Any]) -> str | None:
    """Return a name of a path; None if the data lacks it."""
    if isinstance(segment, list):
        parts = [_segment(part, data) for part in segment]
        return None if None in parts else " ".join(str(part) for part in parts)
    if not segment.startswith("$"):
        return str(segment)
    found = _read(data, segment[1:].split("."))
    return found if isinstance(found, str) else None


def _value(template: Any, event: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
    if isinstance(template, str) and template[:1] == "$":
        return data if template == "$" else _read(data, template[1:].split("."))
    if isinstance(template, str) and template[:1] == "@":
        return event.get(template[1:], _MISSING)
    if isinstance(template, Mapping):
        made = {name: _value(member, event, data) for name, member in template.items()}
        return _MISSING if any(member is _MISSING for member in made.values()) else made
    return template


def _read(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return _MISSING
        value = value[name]
    return value


def _older(path: Sequence[str], value: Any, held: Any) -> bool:
    """Return whether the held value is greater; numbers, and RFC 3339 times in UTC, compare directly."""
    mine, theirs = _read(value, path), _read(held, path)
    if mine is _MISSING or theirs is _MISSING or mine is None or theirs is None:
        return False
    return bool(theirs > mine)


def _with(state: State, path: Sequence[str], value: Any) -> State:
    """Return a copy with `value` at `path`; missing objects on the path are created."""
    name, *rest = path
    if not rest:
        return {**state, name: value}
    inner = state.get(name)
    return {**state, name: _with(inner if isinstance(inner, Mapping) else {}, rest, value)}


def _without(state: State, path: Sequence[str]) -> State:
    name, *rest = path
    if rest:
        return {**state, name: _without(state[name], rest)}
    return {member: value for member, value in state.items() if member != name}


def _bounded(state: State, path: Sequence[str], most: int, by: str) -> State:
    """Return a copy whose object at `path` has at most `most` members: those whose member `by` is greatest, then by
    name.
    """
    rows = _read(state, path)
    if len(rows) <= most:
        return state
    kept = sorted(rows, key=lambda name: (rows[name].get(by) or "", name))[-most:]
    return _with(state, path, {name: row for name, row in rows.items() if name in set(kept)})
