"""Rates of requests that endpoints allow by the handshake of CloudEvents webhooks (section 4.2.2). Pure."""

from __future__ import annotations

RATE_MAX = 100_000  # bound: requests a minute that may be asked for; the request is refused
UNLIMITED = "*"
_DIGITS_MAX = 9


def allowed_rate(field: str) -> int | None:
    """Parse `WebHook-Allowed-Rate`: requests a minute; None for no bound. Raises ValueError for anything else."""
    text = field.strip()
    if text == UNLIMITED:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX and int(text) > 0):
        raise ValueError("neither a positive number of requests a minute, nor *")
    return int(text)


def effective_rate(asked: int | None, allowed: int | None) -> int | None:
    """Return the bound of requests a minute from the rate that the owner stated and the one that the endpoint allows."""
    return min((rate for rate in (asked, allowed) if rate is not None), default=None)


def pause_s(rate: int | None) -> float:
    """Return the seconds between the begins of two requests at a rate a minute; 0 without a bound.

    Requests are spaced evenly, so that no window of a minute has more than the rate.
    """
    return 60.0 / rate if rate else 0.0
