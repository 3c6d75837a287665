"""Findings: whether a rule is kept, from what was measured, in numbers and one sentence. Pure; eventing/operations/alarms/measurements.py measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple

from eventing.operations.alarms.evaluation import Finding
from eventing.operations.rules.alarms import Value
from eventing.rps.rules.watches import Rule

SOURCE_CHARS_SHOWN = 100


class Behind(NamedTuple):
    """How far a reader or a peer is behind: events, and since when the oldest of them waits (Unix s; None: not known).

    `sure`: False while that time may only seem so short because nobody has looked for long. `lost`: of the events, those
    that left the history.
    """

    about: str
    events: int
    oldest_at: float | None
    sure: bool = True
    lost: int = 0


class Losing(NamedTuple):
    """A durable subscription whose history is half full of what it has not read, or that has lost some of it.

    Attributes:
        events, lost: how far it is behind, and how many of these left the history.
        events_max: how many events it is granted.
        loss_s: when it loses the next one, seconds from now; None: not at the present rates.
        sure: False while it was looked at once only, so that nobody knows how fast it reads.
        was_lost: events that it had lost when it was looked at before.
    """

    about: str
    events: int
    lost: int
    events_max: int
    loss_s: float | None
    sure: bool = True
    was_lost: int = 0


class Lease(NamedTuple):
    """A lease: `what` in words, `about` empty for the RP's own."""

    about: str
    what: str
    expires_at: float


def lag(rule: Rule, label: str, readers: Iterable[Behind], now: float) -> tuple[Finding, ...]:
    """Durable subscriptions, those furthest behind first."""
    link = f"/subscriptions?rp={rule.rp}"
    return tuple(
        _behind(rule, one, now, ("events", "seconds"), f"The durable subscription {one.about} of {label}", link)
        for one in sorted(readers, key=lambda one: (-one.events, one.about))
    )


def loss(rule: Rule, label: str, readers: Iterable[Losing]) -> tuple[Finding, ...]:
    """Durable subscriptions, those that have lost most first, then those that lose soonest."""
    link = f"/subscriptions?rp={rule.rp}" if rule.rp else "/subscriptions"
    worst = sorted(readers, key=lambda one: (-one.lost, inf if one.loss_s is None else one.loss_s, one.about))
    return tuple(_loss(rule, one, f"The durable subscription {one.about} of {label}", link) for one in worst)


def _loss(rule: Rule, one: Losing, who: str, link: str) -> Finding:
    within_s = rule.settings["within_s"]
    behind = f"{who} is {_events_behind(one.events, one.lost)}"
    values = [Value("events", one.events, one.events_max, "events")]
    if one.lost:
        detail = f"{behind}: they left the history before it read them."
        return Finding(one.about, True, detail, (*values, Value("lost", one.lost, 0, "events")), link)
    if one.loss_s is None or one.loss_s > within_s:
        kept = f"It reads on; {one.was_lost:,} events before were lost to it." if one.was_lost else ""
        return Finding(one.about, False if one.sure else None, kept=kept)
    soon = f"in about {span(one.loss_s)} at this rate" if one.loss_s >= 1 else "with the next that are published"
    values.append(Value("left", round(one.loss_s), within_s, "s"))
    detail = f"{behind}, and loses events {soon}."
    return Finding(one.about, True if one.sure else None, detail, tuple(values), link)


def backlog(rule: Rule, label: str, peers: Iterable[Behind], now: float) -> tuple[Finding, ...]:
    """Peers, those with most waiting first; `label` is empty for all RPs together."""
    wanted = rule.settings.get("peer")
    where = f", of events of {label}," if label else ""
    return tuple(
        _behind(rule, one, now, ("events", "oldest_s"), f"The peer {one.about}{where}", f"/federation/{one.about}")
        for one in sorted(peers, key=lambda one: (-one.events, one.about))
        if wanted in (None, one.about)
    )


def _behind(rule: Rule, one: Behind, now: float, limits: tuple[str, str], who: str, link: str) -> Finding:
    values, words = [], []
    events_max, age_max = (rule.settings.get(name) for name in limits)
    age_s = 0.0 if one.oldest_at is None else max(0.0, now - one.oldest_at)
    if events_max is not None and one.events > events_max:
        values.append(Value("events", one.events, events_max, "events"))
        words.append(f"{_events_behind(one.events, one.lost)}, {events_max:,} are allowed")
    if age_max is not None and age_s > age_max:
        values.append(Value("oldest", round(age_s), age_max, "s"))
        words.append(f"behind for {span(age_s)}, {span(age_max)} are allowed")
    if not words:
        unsure = age_max is not None and one.events and not one.sure
        return Finding(one.about, None if unsure else False)
    return Finding(one.about, True, f"{who} is {'; it is '.join(words)}.", tuple(values), link, None)


def _events_behind(events: int, lost: int) -> str:
    return f"{events:,} events behind{f', {lost:,} of them lost' if lost else ''}"


def lease_gap(rule: Rule, label: str, leases: Iterable[Lease], now: float) -> tuple[Finding, ...]:
    """Leases, the soonest to end first."""
    least = rule.settings["s"]
    found = []
    for one in sorted(leases, key=lambda one: (one.expires_at, one.about)):
        left_s = max(0.0, one.expires_at - now)
        what = f"The lease of {one.what}{f' of {label}' if one.about else ''}"
        detail = f"{what} ends in {span(left_s)} and is not renewed; {span(least)} are to be left."
        values = (Value("left", round(left_s), least, "s"),)
        found.append(Finding(one.about, left_s < least, detail, values, f"/rps/{rule.rp}"))
    return tuple(found)


def silence(rule: Rule, label: str, last_at: float | None, now: float, *, sure: bool = True) -> tuple[Finding, ...]:
    """The last event, or since when there is none (Unix s; None: nothing is known); not `sure`: the silence may be longer."""
    most, source = rule.settings["s"], rule.settings.get("source")
    if last_at is None:
        return (Finding("", None),)
    silent_s = max(0.0, now - last_at)
    if silent_s <= most:
        return (Finding("", False if sure else None),)
    who = (
        f"The source {source[:SOURCE_CHARS_SHOWN]} has published nothing to {label}"
        if source
        else f"Nothing was published to {label}"
    )
    detail = f"{who} for {span(silent_s)}; {span(most)} are allowed."
    return (Finding("", True, detail, (Value("silent", round(silent_s), most, "s"),), f"/rps/{rule.rp}", last_at),)


def audience(rule: Rule, label: str, present: Mapping[str, int]) -> tuple[Finding, ...]:
    """How many readings there are by label."""
    name, least, count = rule.settings["label"], rule.settings["at_least"], present.get(rule.settings["label"], 0)
    if count >= least:
        return (Finding(name, False),)
    effect = "publishes are refused" if rule.settings["publishing"] == "refuse" else "events are taken all the same"
    detail = f"The audience {name} of {label} has {count} of at least {least} {_plural(least, 'reader')}; {effect}."
    return (Finding(name, True, detail, (Value(name, count, least, "readers"),), f"/rps/{rule.rp}"),)


def history_quota(rule: Rule, reserved_bytes: int, quota_bytes: int) -> tuple[Finding, ...]:
    """What the histories have reserved."""
    percent, most = 100 * reserved_bytes / max(1, quota_bytes), rule.settings["percent"]
    if percent <= most:
        return (Finding("", False),)
    detail = f"The histories have reserved {percent:.1f} % of the domain's quota; {most} % are allowed."
    return (Finding("", True, detail, (Value("reserved", round(percent, 1), most, "%"),), "/quotas"),)


def process_lag(rule: Rule, gateways: Mapping[str, float]) -> tuple[Finding, ...]:
    """How many milliseconds late the loop of each gateway was, the latest first."""
    most, found = rule.settings["ms"], []
    for gateway, late_ms in sorted(gateways.items(), key=lambda pair: (-pair[1], pair[0])):
        detail = f"The event loop of gateway {gateway} was {late_ms:g} ms late; {most} ms are allowed."
        found.append(Finding(gateway, late_ms > most, detail, (Value("late", late_ms, most, "ms"),), "/system"))
    return tuple(found)


def span(seconds: float) -> str:
    """A duration for people: 45 s, 3 min, 2.5 h, 4 days."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86_400:
        return f"{seconds / 3600:.3g} h"
    return f"{seconds / 86_400:.3g} days"


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
