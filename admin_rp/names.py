"""The export of names: every RP with its name, and the cursor of `domain.admin` from which to continue.

The cursor is read before the first row, so that a reader who continues from it misses nothing; the row's `version`
shows which events it already reflects. One run of rows is in memory at a time, however many there are.
"""

from __future__ import annotations

from typing import NamedTuple

from admin_rp.snapshots import cursor_of
from eventing.conf import config
from eventing.core.ids import DOMAIN_ADMIN
from eventing.rps.selectors.rendezvous_points import rps_after

RUN = 1000  # bound: RPs in memory of an export of names; the others are in the next run
"""Rows of one query and one piece of the answer, about 150 KiB."""


class NamedRp(NamedTuple):
    """One line of the export."""

    id: str
    name: str | None
    title: str
    home: str
    version: int


def names_begin() -> str:
    """Return the cursor from which to continue, to be read before the first run. Raises redis.RedisError."""
    return cursor_of(DOMAIN_ADMIN)


def names_run(after: str) -> list[NamedRp]:
    """Return up to RUN present RPs with ids after `after`, by id; none at the end."""
    own = config().domain
    return [NamedRp(row.id, row.name, row.title, row.home or own, row.version) for row in rps_after(after, RUN)]
