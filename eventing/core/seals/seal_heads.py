"""What a domain makes of its own seals when its two stores disagree: one of them may be older than the other. Pure.

SQL holds the newest seal of each own feed (replication/models/seal_head.py), written before the run leaves; the log, in Redis, holds
the seals it was given afterwards. Read SQL first, then the log: what the log lacks then was kept out of it by a crash, or
the log was put back from an older copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from eventing.core import merkle
from eventing.core.seals.seals import Seal

Verdict = Literal["equal", "ahead", "behind", "stale"]


def verdict(heads: Mapping[str, int], epoch: str, own: int, sealed: int) -> Verdict:
    """How the log stands to the heads in SQL.

    Args:
        heads: per epoch of this RP the last sequence sealed, the epochs in the order of their beginning.
        epoch, own, sealed: of the log: its epoch, its last own sequence, the last one that a seal in it covers.

    Returns `equal`; `ahead`: the log holds seals that SQL does not know (SQL was put back); `behind`: SQL knows a seal
    that the log lacks, and the log still reaches as far; `stale`: the log was put back, what it would number has been
    numbered before.
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
    """Whether the log still holds what was sealed: `events`, from the sequence `first` to the seal's last, are its last ones.

    At least one must be held, else nobody knows.
    """
    if not events or first < seal.first or first + len(events) - 1 != seal.last:
        return False
    return merkle.root(leaves) == seal.root and leaves.endswith(merkle.leaves(events))
