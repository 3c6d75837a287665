"""Reconciliation of a domain's own seals between its two stores, of which one may be older than the other. Pure.

SQL holds the newest seal of each own feed (replication/models.py), written before the run leaves; the log, in
Redis, receives the seals afterwards. SQL is read first, then the log: a seal that is missing in the log was then lost
in a crash, or the log was restored from an older copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from eventing.core import merkle
from eventing.core.seals.seals import Seal

Verdict = Literal["equal", "ahead", "behind", "stale"]


def verdict(heads: Mapping[str, int], epoch: str, own: int, sealed: int) -> Verdict:
    """Compare the log with the heads in SQL.

    Args:
        heads: per epoch of this RP the last sealed sequence, epochs in order of their beginning.
        epoch, own, sealed: of the log: its epoch, its last own sequence, the last one that a seal in the log covers.

    Returns `equal`; `ahead`: the log holds seals that are missing in SQL (SQL was restored); `behind`: the log lacks a
    seal of SQL, and still reaches as far; `stale`: the log was restored, and its next numbers have been used before.
    """
    if epoch not in heads:
        return "ahead" if sealed else "equal"
    last = heads[epoch]
    if epoch != list(heads)[-1] or own < last:
        return "stale"
    if sealed == last:
        return "equal"
    return "ahead" if sealed > last else "behind"


def same_events(seal: Seal, leaves: bytes, first: int, events: list[bytes]) -> bool:
    """Return True if the log still holds the sealed events: `events`, from the sequence `first` to the seal's last, are
    its last ones.

    At least one event must be held for a decision.
    """
    if not events or first < seal.first or first + len(events) - 1 != seal.last:
        return False
    return merkle.root(leaves) == seal.root and leaves.endswith(merkle.leaves(events))
