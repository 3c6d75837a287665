"""Quantiles of the Beta distribution, without SciPy.

The regularised incomplete beta function by its continued fraction (Lentz's method; Press et al., "Numerical Recipes", 3rd edition,
section 6.4), and its inverse by bisection.
"""

from __future__ import annotations

from math import exp, lgamma, log, log1p

_TINY = 1e-300
_ROUNDS_MAX = (
    10_000  # bound: terms of the continued fraction, whose number grows with the square root of the parameters
)
_BISECTIONS = 60
"""Halvings of [0, 1]: 2**-60 is below the precision of the function."""


def beta_cdf(a: float, b: float, x: float) -> float:
    """Return the probability that a Beta(a, b) variable is at most x, to about 1e-13."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1.0 - x) / b


def beta_quantile(a: float, b: float, probability: float) -> float:
    """Return the x of which `beta_cdf` is a probability between 0 and 1."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if beta_cdf(a, b, middle) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1.0 / _apart(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _ROUNDS_MAX):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _apart(1.0 + term * d)
            c = _apart(1.0 + term / c)
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def _apart(value: float) -> float:
    """Keep a divisor away from zero."""
    return value if abs(value) > _TINY else _TINY
