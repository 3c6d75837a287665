"""Findings: whether measurements keep a rule, in numbers and one sentence. Pure;
eventing/operations/alarms/measurements.py measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple

from eventing.operations.alarms.evaluation import Finding
from eventing.operations.rules.alarms import Value
from eventing.rps.rules.watches import WatchRule

SOURCE_CHARS_SHOWN = 100


class LagMeasurement(NamedTuple):
    """The lag of a reader or a peer: events, and the time of the oldest (Unix seconds; None: not known).

    `sure`: False while the lag may be older than that time, for lack of measurements. `lost`: of the events, those
    trimmed from the history.
    """

    about: str
    events: int
    oldest_at: float | None
    sure: bool = True
    lost: int = 0


class Losing(NamedTuple):
    """A durable subscription with half its history unread, or with lost events.

    Attributes: events, lost: its lag, and how many of these events were trimmed from the history.
        events_max: its granted history, in events.
        loss_s: seconds until it loses the next event; None: not at the present rates.
        sure: False after a single measurement, when its reading rate is not known.
        was_lost: events lost at the previous measurement.
    """

    about: str
    events: int
    lost: int
    events_max: int
    loss_s: float | None
    sure: bool = True
    was_lost: int = 0


class EndpointMeasurement(NamedTuple):
    """An endpoint that fails, or is paused because it did.

    Attributes:
        about: id of its subscription.
        at: the RP in words.
        url: its address without the query.
        state: in which it is.
        reason: the last failure, or the reason of the pause, as a code.
        since: Unix seconds of the first failure in a row.
    """

    about: str
    at: str
    url: str
    state: str
    reason: str
    since: float


class LeaseMeasurement(NamedTuple):
    """A lease: `what` in words, `about` empty for the RP's own."""

    about: str
    what: str
    expires_at: float


def lag(rule: WatchRule, label: str, readers: Iterable[LagMeasurement], now: float) -> tuple[Finding, ...]:
    """Return findings about the lag of durable subscriptions, greatest first.

    Args:
        label: the RP in words, for the sentence.
        readers: the lags of the subscriptions.
        now: Unix seconds.
    """
    link = f"/subscriptions?rp={rule.rp}"
    return tuple(
        _behind(rule, one, now, ("events", "seconds"), f"The durable subscription {one.about} of {label}", link)
        for one in sorted(readers, key=lambda one: (-one.events, one.about))
    )


def loss(rule: WatchRule, label: str, readers: Iterable[Losing]) -> tuple[Finding, ...]:
    """Return findings about the loss of durable subscriptions: most lost events first, then the soonest to lose some."""
    link = f"/subscriptions?rp={rule.rp}" if rule.rp else "/subscriptions"
    worst = sorted(readers, key=lambda one: (-one.lost, inf if one.loss_s is None else one.loss_s, one.about))
    return tuple(_loss(rule, one, f"The durable subscription {one.about} of {label}", link) for one in worst)


def _loss(rule: WatchRule, one: Losing, who: str, link: str) -> Finding:
    within_s = rule.settings["within_s"]
    behind = f"{who} is {_events_behind(one.events, one.lost)}"
    values = [Value("events", one.events, one.events_max, "events")]
    if one.lost:
        detail = f"{behind}: they were trimmed from the history before they were read."
        return Finding(one.about, True, detail, (*values, Value("lost", one.lost, 0, "events")), link)
    if one.loss_s is None or one.loss_s > within_s:
        kept = f"The subscription reads on; {one.was_lost:,} earlier events were lost." if one.was_lost else ""
        return Finding(one.about, False if one.sure else None, kept=kept)
    soon = f"in about {span(one.loss_s)} at this rate" if one.loss_s >= 1 else "with the next published events"
    values.append(Value("left", round(one.loss_s), within_s, "s"))
    detail = f"{behind}, and loses events {soon}."
    return Finding(one.about, True if one.sure else None, detail, tuple(values), link)


def backlog(rule: WatchRule, label: str, peers: Iterable[LagMeasurement], now: float) -> tuple[Finding, ...]:
    """Return findings about the backlog of peers, greatest first; `label` is empty for all RPs together."""
    wanted = rule.settings.get("peer")
    where = f", of events of {label}," if label else ""
    return tuple(
        _behind(rule, one, now, ("events", "oldest_s"), f"The peer {one.about}{where}", f"/federation/{one.about}")
        for one in sorted(peers, key=lambda one: (-one.events, one.about))
        if wanted in (None, one.about)
    )


def _behind(rule: WatchRule, one: LagMeasurement, now: float, limits: tuple[str, str], who: str, link: str) -> Finding:
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


def endpoint(rule: WatchRule, failing: Iterable[EndpointMeasurement], now: float) -> tuple[Finding, ...]:
    """Return findings about endpoints, those that have failed for longest first."""
    most, found = rule.settings["failing_s"], []
    for one in sorted(failing, key=lambda one: (one.since, one.about)):
        failing_s = max(0.0, now - one.since)
        detail = (
            f"The endpoint {one.url} of the durable subscription {one.about} of {one.at} is {one.state} ({one.reason}), and "
            f"has accepted nothing for {span(failing_s)}; {span(most)} are allowed."
        )
        values = (Value("failing", round(failing_s), most, "s"),)
        link = f"/subscriptions?rp={rule.rp}" if rule.rp else "/subscriptions"
        found.append(Finding(one.about, failing_s > most, detail, values, link, one.since))
    return tuple(found)


def lease_gap(rule: WatchRule, label: str, leases: Iterable[LeaseMeasurement], now: float) -> tuple[Finding, ...]:
    """Return findings about leases, the soonest to expire first."""
    least = rule.settings["s"]
    found = []
    for one in sorted(leases, key=lambda one: (one.expires_at, one.about)):
        left_s = max(0.0, one.expires_at - now)
        what = f"The lease of {one.what}{f' of {label}' if one.about else ''}"
        detail = f"{what} expires in {span(left_s)} and is not renewed; at least {span(least)} must be left."
        values = (Value("left", round(left_s), least, "s"),)
        found.append(Finding(one.about, left_s < least, detail, values, f"/rps/{rule.rp}"))
    return tuple(found)


def silence(
    rule: WatchRule, label: str, last_at: float | None, now: float, *, sure: bool = True
) -> tuple[Finding, ...]:
    """Return the finding about an RP's silence.

    Args:
        last_at: time of the last event, or since when there is none, Unix seconds; None: not known.
        sure: False if the silence may be longer.
    """
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


def reliability(
    rule: WatchRule, label: str, target: float, missed: Mapping[str, str], since: float, now: float
) -> tuple[Finding, ...]:
    """Return findings about the participants that a target reliability is missed at.

    Args:
        missed: by participant, why, with the best that can be had; empty while the target is met, or not enough is known.
        since: Unix seconds from which on it was missed.
    """
    most = rule.settings["missed_s"]
    late_s = max(0.0, now - since)
    if not missed or late_s <= most:
        return (Finding("", False),)
    value = Value("missed", round(late_s), most, "s")
    return tuple(
        Finding(
            domain,
            True,
            f"Events of {label} do not reach {domain} with the target reliability {target:g}: {why}.",
            (value,),
            f"/rps/{rule.rp}",
        )
        for domain, why in sorted(missed.items())
    )


def audience(rule: WatchRule, label: str, present: Mapping[str, int]) -> tuple[Finding, ...]:
    """Return findings about the number of readings by label."""
    name, least, count = rule.settings["label"], rule.settings["at_least"], present.get(rule.settings["label"], 0)
    if count >= least:
        return (Finding(name, False),)
    effect = "publishes are refused" if rule.settings["publishing"] == "refuse" else "events are accepted all the same"
    detail = f"The audience {name} of {label} has {count} of at least {least} {_plural(least, 'reader')}; {effect}."
    return (Finding(name, True, detail, (Value(name, count, least, "readers"),), f"/rps/{rule.rp}"),)


def history_quota(rule: WatchRule, reserved_bytes: int, quota_bytes: int) -> tuple[Finding, ...]:
    """Return the finding about the history that is reserved."""
    percent, most = 100 * reserved_bytes / max(1, quota_bytes), rule.settings["percent"]
    if percent <= most:
        return (Finding("", False),)
    detail = f"The histories have reserved {percent:.1f} % of the domain's quota; {most} % are allowed."
    return (Finding("", True, detail, (Value("reserved", round(percent, 1), most, "%"),), "/quotas"),)


def process_lag(rule: WatchRule, gateways: Mapping[str, float]) -> tuple[Finding, ...]:
    """Return findings about the event loop of each gateway, milliseconds late, the latest first."""
    most, found = rule.settings["ms"], []
    for gateway, late_ms in sorted(gateways.items(), key=lambda pair: (-pair[1], pair[0])):
        detail = f"The event loop of gateway {gateway} was {late_ms:g} ms late; {most} ms are allowed."
        found.append(Finding(gateway, late_ms > most, detail, (Value("late", late_ms, most, "ms"),), "/system"))
    return tuple(found)


def span(seconds: float) -> str:
    """Return a duration for people: 45 s, 3 min, 2.5 h, 4 days."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86_400:
        return f"{seconds / 3600:.3g} h"
    return f"{seconds / 86_400:.3g} days"


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
