"""Lineage of a log: the epochs that it continues with their offsets, and what their cursors denote now. Pure.

A log is continued in a new epoch where its end may have been lost: it was restored from a backup, or another server has
its data now. A cursor of an earlier epoch, up to where the log continues that epoch, denotes the same event as ever. The
events of one beyond were withdrawn: their offsets are, or will be, those of other events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eventing.core.events.cursors import Cursor

ROOT_CHARS = (
    8  # of the epoch in which a log began or was restored; those of other servers add as many of the server's id
)


@dataclass(frozen=True, slots=True)
class Rewound:
    """Events that a reader has been given and that were withdrawn: offsets of an epoch that ended, both ends included."""

    epoch: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Lineage:
    """Epochs of a log.

    Attributes:
        epoch: the present one, of cursors.
        ends: the last offset of each earlier epoch that the log continues.
    """

    epoch: str
    ends: Mapping[str, int]

    def continued(self, cursor: Cursor) -> tuple[Cursor, Rewound | None]:
        """Return the position in the present epoch that `cursor` denotes, and what was withdrawn of what its reader holds.

        A cursor of the present epoch, or of one that the log does not continue, is returned as it is. The vector is, too:
        of the own feed it may claim what was withdrawn.
        """
        end = self.ends.get(cursor.epoch)
        if end is None or cursor.epoch == self.epoch:
            return cursor, None
        if cursor.offset <= end:
            return Cursor(self.epoch, cursor.offset, cursor.vector), None
        return Cursor(self.epoch, end, cursor.vector), Rewound(cursor.epoch, end + 1, cursor.offset)

    def shared_with(self, ends: Mapping[str, int]) -> int | None:
        """Return the last offset up to which the log has the same events as one that continues the epochs `ends`; None where
        they have no epoch in common.

        Such a log was held by a server whose history is lost as a whole: its epoch is of no lineage.
        """
        return max((min(end, self.ends[epoch]) for epoch, end in ends.items() if epoch in self.ends), default=None)


def root_epoch(epoch: str) -> str:
    """Return the epoch of the own feed in a log whose cursors have this epoch: servers continue a log, not the feed."""
    return epoch[:ROOT_CHARS]
