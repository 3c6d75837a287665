"""Numbers for people: bytes and rates in units, quantiles of measurements."""

from __future__ import annotations

from collections.abc import Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: float) -> str:
    """Return bytes in the unit that leaves up to four digits."""
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:,.0f} {_UNITS[unit]}" if unit == 0 or count >= 100 else f"{count:.1f} {_UNITS[unit]}"


def rate(per_s: float) -> str:
    """Return a rate of events: whole from 10 a second on."""
    return f"{per_s:,.0f}" if per_s >= 10 or per_s == int(per_s) else f"{per_s:.1f}"


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value that this share of the ordered values does not exceed."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
