"""The own load as it is stated to others: anew only when it has changed, so that an idle domain costs nobody a row. Pure."""

from __future__ import annotations

from eventing.overlay.load_rows import AMOUNT_MAX, FIELDS, DomainLoad

CHANGE = 0.1
"""Share by which an amount must change to be stated anew."""
LEAST = {"busy_permille": 20, "bytes_per_s": 1000, "events_in_per_s": 1, "events_out_per_s": 1}
"""Amounts that vary without a cause, with the change that is not stated; of the others every change of CHANGE is."""


def steady(measured: DomainLoad, stated: DomainLoad | None) -> DomainLoad:
    """Return the load to state after a measurement: the one stated before, where little has changed."""
    bounded = DomainLoad(*(min(max(0, getattr(measured, field)), AMOUNT_MAX) for field in FIELDS))
    return bounded if stated is None or any(_changed(field, bounded, stated) for field in FIELDS) else stated


def _changed(field: str, measured: DomainLoad, stated: DomainLoad) -> bool:
    now, before = getattr(measured, field), getattr(stated, field)
    return bool(abs(now - before) > max(CHANGE * before, LEAST.get(field, 0)))
