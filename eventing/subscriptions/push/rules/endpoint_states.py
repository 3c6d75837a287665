"""The states of an endpoint, and what verdicts and its owner change about them. Pure.

    unverified -> active <-> throttled, failing -> paused -> unverified or active;  any -> gone

An endpoint is paused by its owner, or by the domain when the retry schedule is exhausted: nothing is skipped then, the
events wait in the log. It is gone after the answer 410, for good unless its owner states another address.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from eventing.subscriptions.push.rules.retries import RetrySchedule
from eventing.subscriptions.push.rules.verdicts import AttemptVerdict

REASON_CHARS_MAX = 100


class EndpointState(StrEnum):
    """State of an endpoint."""

    UNVERIFIED = "unverified"
    ACTIVE = "active"
    THROTTLED = "throttled"
    FAILING = "failing"
    PAUSED = "paused"
    GONE = "gone"


_S = EndpointState
FOLLOWING: dict[EndpointState, tuple[EndpointState, ...]] = {
    _S.UNVERIFIED: (_S.ACTIVE, _S.PAUSED, _S.GONE),
    _S.ACTIVE: (_S.THROTTLED, _S.FAILING, _S.PAUSED, _S.GONE, _S.UNVERIFIED),
    _S.THROTTLED: (_S.ACTIVE, _S.FAILING, _S.PAUSED, _S.GONE, _S.UNVERIFIED),
    _S.FAILING: (_S.ACTIVE, _S.THROTTLED, _S.PAUSED, _S.GONE, _S.UNVERIFIED),
    _S.PAUSED: (_S.ACTIVE, _S.UNVERIFIED, _S.GONE),
    _S.GONE: (_S.UNVERIFIED,),
}
"""The state graph: states that may follow each."""
RECEIVING = (_S.ACTIVE, _S.THROTTLED, _S.FAILING)
"""States in which events are sent."""
EXHAUSTED = "schedule-exhausted"
DEAD_LETTERS_FULL = "dead-letters-full"
BY_OWNER = "by-owner"
DOMAIN_CLOSES = "domain-closes"
"""Reason of the pause of an endpoint, or of the end of a subscription, as its domain closes."""


@dataclass(frozen=True, slots=True)
class EndpointStanding:
    """Standing of an endpoint.

    Attributes:
        failures: failed attempts in a row.
        failing_since: Unix seconds of the first of them; None without.
        next_at: Unix seconds before which nothing is sent; 0 for no wait.
        reason: of the last failure, or of the pause.
        verified: whether the endpoint has consented, so that a resumed one need not again.
    """

    state: EndpointState = EndpointState.UNVERIFIED
    failures: int = 0
    failing_since: float | None = None
    next_at: float = 0.0
    reason: str = ""
    verified: bool = False


def after_verdict(
    before: EndpointStanding,
    verdict: AttemptVerdict,
    reason: str,
    schedule: RetrySchedule,
    *,
    now: float,
    jitter: float,
    asked_s: float | None = None,
) -> EndpointStanding:
    """Return the standing after an attempt to an endpoint that was in one of RECEIVING, or is unverified.

    Args:
        reason: the attempt's outcome as a code.
        now: Unix seconds.
        jitter: from 0 to 1.
        asked_s: the answer's Retry-After, clamped; None for none.
    """
    if verdict is AttemptVerdict.DELIVERED:
        return EndpointStanding(EndpointState.ACTIVE, verified=True)
    if verdict is AttemptVerdict.GONE:
        return EndpointStanding(EndpointState.GONE, reason=reason, verified=False)
    failures = before.failures + 1
    pause = schedule.pause_s(failures, jitter, asked_s)
    failing = replace(
        before,
        failures=failures,
        failing_since=now if before.failing_since is None else before.failing_since,
        reason=reason[:REASON_CHARS_MAX],
    )
    if pause is None:
        return replace(
            failing, state=EndpointState.PAUSED, next_at=0.0, reason=f"{EXHAUSTED}: {reason}"[:REASON_CHARS_MAX]
        )
    if before.state is EndpointState.UNVERIFIED:
        state = EndpointState.UNVERIFIED
    else:
        state = EndpointState.THROTTLED if verdict is AttemptVerdict.THROTTLED else EndpointState.FAILING
    return replace(failing, state=state, next_at=now + pause)


def paused(before: EndpointStanding, reason: str) -> EndpointStanding:
    """Return the standing of an endpoint that is paused; one that is gone stays gone."""
    if before.state is EndpointState.GONE:
        return before
    return replace(before, state=EndpointState.PAUSED, next_at=0.0, reason=reason[:REASON_CHARS_MAX])


def resumed(before: EndpointStanding) -> EndpointStanding:
    """Return the standing of a paused or failing endpoint that is tried again at once, with the whole schedule ahead."""
    if before.state is EndpointState.GONE:
        return before
    state = EndpointState.ACTIVE if before.verified else EndpointState.UNVERIFIED
    return EndpointStanding(state, verified=before.verified)
