"""Estimates of a link, from what was sent over it: delivery, delay, and whether its probes can be believed.

Delivery is a Beta posterior over counts that decay with a half-life, from a uniform prior. Plans use its 5 % lower bound, so a link of which
little is known counts as poor: 0.05 without any observation, 0.95 after 58 deliveries without a loss, 0.999 after 2,995. Delay and
jitter are moving averages as in RFC 6298.
"""

from __future__ import annotations

from math import exp, floor, inf, log, log10, sqrt

import msgspec

from eventing.overlay.routing.incomplete_beta import beta_quantile

HALF_LIFE_S = 86_400.0
"""Of an observation: one day, so that a daily rhythm is averaged."""
LOWER_BOUND = 0.05
"""Probability that a link is worse than what is planned with."""
COUNT_MAX = 1e9  # bound: deliveries or losses of one observation; more count as this many
DELAY_S_MAX = 10.0  # bound: seconds of a delay; longer ones are not counted, as clocks that were set make them
DELAY_GAIN, JITTER_GAIN = 1 / 8, 1 / 4
"""Of the moving averages (RFC 6298, section 2)."""
DOUBT_SIGMAS = 3.0
"""Standard deviations below the plan at which what receivers got contradicts the links' probes."""
STEPS_PER_DECADE = 10
"""Of the probability of a loss, in rows of the map."""


class LinkEstimate(msgspec.Struct, frozen=True):
    """Observations of one link in one direction.

    Attributes:
        delivered, lost: decayed counts.
        delay_s, jitter_s: moving averages; negative as long as no delay was observed.
        at: time of the last observation, in seconds of any clock that is never set back.
    """

    delivered: float = 0.0
    lost: float = 0.0
    delay_s: float = -1.0
    jitter_s: float = -1.0
    at: float = -inf

    @property
    def mean(self) -> float:
        """Return the expected delivery."""
        return (self.delivered + 1.0) / (self.delivered + self.lost + 2.0)

    @property
    def planned(self) -> float:
        """Return the delivery to plan with: the link is worse with a probability of 5 %."""
        return beta_quantile(self.delivered + 1.0, self.lost + 1.0, LOWER_BOUND)


def decayed(estimate: LinkEstimate, now: float) -> LinkEstimate:
    """Return an estimate as of now: with time, what is known of a link falls back to the prior. A clock set back changes nothing."""
    if not estimate.at < now < inf:
        return estimate
    share = exp(-log(2.0) * (now - estimate.at) / HALF_LIFE_S) if estimate.at > -inf else 0.0
    return msgspec.structs.replace(estimate, delivered=estimate.delivered * share, lost=estimate.lost * share, at=now)


def observed(
    estimate: LinkEstimate, now: float, *, delivered: float = 0.0, lost: float = 0.0, delay_s: float | None = None
) -> LinkEstimate:
    """Add observations.

    Args:
        delivered, lost: runs or probes that were acknowledged, and that were not in time; numbers below 0 and NaN count as 0.
        delay_s: of one that was acknowledged; not counted outside 0 to DELAY_S_MAX.
    """
    estimate = decayed(estimate, now)
    delay, jitter = estimate.delay_s, estimate.jitter_s
    if delay_s is not None and 0.0 <= delay_s <= DELAY_S_MAX:
        if delay < 0.0:
            delay, jitter = delay_s, delay_s / 2.0
        else:
            jitter += JITTER_GAIN * (abs(delay_s - delay) - jitter)
            delay += DELAY_GAIN * (delay_s - delay)
    return msgspec.structs.replace(
        estimate,
        delivered=estimate.delivered + _count(delivered),
        lost=estimate.lost + _count(lost),
        delay_s=delay,
        jitter_s=jitter,
    )


def stepped(probability: float) -> float:
    """Round a probability down to a step of its loss, so that domains with slightly different estimates make the same plan."""
    loss = max(1.0 - probability, 1e-9)
    steps = floor(-log10(loss) * STEPS_PER_DECADE + 1e-9)  # 0.99 itself is a step
    return 0.0 if steps <= 0 else 1.0 - 10.0 ** (-steps / STEPS_PER_DECADE)


def contradicts_plan(planned: float, arrived: int, sent: int) -> bool:
    """Return True if receivers got so much less than planned that the estimates of the links are to be distrusted.

    Receivers' signed version vectors are the truth from end to end. A link that answers probes and drops data is rated well
    by its probes; it shows in what arrives.

    Args:
        planned: reliability of the plan.
        arrived: runs that reached the receiver within the stated time, of `sent` runs.
    """
    if sent <= 0 or not 0.0 <= planned <= 1.0:
        return False
    sigma = sqrt(max(planned * (1.0 - planned), 1.0 / sent) / sent)
    return arrived / sent < planned - DOUBT_SIGMAS * sigma


def _count(value: float) -> float:
    return min(value, COUNT_MAX) if value > 0.0 else 0.0
