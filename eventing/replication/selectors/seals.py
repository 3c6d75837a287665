"""Reads of the own feeds' seal heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from eventing.replication.models import SealHead
from eventing.sql.remembered import remembered

RPS_AT_ONCE = 500  # of one query


def epoch_heads(rps: Sequence[str]) -> tuple[dict[str, dict[str, int]], dict[tuple[str, str], bytes]]:
    """Return per RP and epoch the last sealed sequence, the epochs of an RP in order; and by RP and epoch the digest of
    that seal.
    """
    return _epoch_heads(tuple(rps))


@remembered
def _epoch_heads(rps: tuple[str, ...]) -> tuple[dict[str, dict[str, int]], dict[tuple[str, str], bytes]]:
    found: dict[str, dict[str, int]] = {}
    digests: dict[tuple[str, str], bytes] = {}
    rows = SealHead.objects.filter(rp__among=rps).order_by("id").values_list("rp", "epoch", "last", "digest")
    for rp, epoch, last, digest in rows:
        found.setdefault(rp, {})[epoch] = last
        digests[rp, epoch] = bytes(digest)
    return found, digests


def sealed_until(rps: Sequence[str]) -> dict[tuple[str, str], tuple[int, datetime]]:
    """Return by RP and epoch the last sealed sequence, and its time."""
    rows = SealHead.objects.filter(rp__in=rps).values_list("rp", "epoch", "last", "sealed_at")
    return {(rp, epoch): (last, sealed_at) for rp, epoch, last, sealed_at in rows}


def sealed_rps() -> Iterator[str]:
    """Yield all RPs with any seal, by id."""
    after = ""
    while True:
        rows = SealHead.objects.filter(rp__gt=after).order_by("rp").values_list("rp", flat=True).distinct()
        rps = list(rows[:RPS_AT_ONCE])
        if not rps:
            return
        yield from rps
        after = rps[-1]


def seal_heads(rp: str) -> list[SealHead]:
    """Return all heads of one RP, the oldest epoch first."""
    return list(SealHead.objects.filter(rp=rp).order_by("id"))
