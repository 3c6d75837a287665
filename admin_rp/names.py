"""The export of names: every RP with its name, and the place of `domain.admin` from which to go on.

The place is read before the first row, so that whoever follows from it misses nothing: what an event tells that a row
has already, the row's `version` shows. A run of rows is in memory at a time, however many there are.
"""

from __future__ import annotations

from typing import NamedTuple

from django.utils import timezone

from admin_rp.snapshots import cursor_of
from eventing.conf import config
from eventing.core.ids import DOMAIN_ADMIN
from eventing.rps.models import RendezvousPoint

RUN = 1000
"""Rows of one query and one piece of the answer, about 150 KiB."""


class NamedRp(NamedTuple):
    """One line of the export."""

    id: str
    name: str | None
    title: str
    home: str
    version: int


def names_begin() -> str:
    """The cursor to go on from, to be read before the first run. Raises redis.RedisError."""
    return cursor_of(DOMAIN_ADMIN)


def names_run(after: str) -> list[NamedRp]:
    """The RPs that are there now with ids after `after`, by id: at most RUN; none when all were given."""
    rows = RendezvousPoint.objects.filter(id__gt=after, expires_at__gt=timezone.now()).order_by("id")
    own = config().domain
    return [
        NamedRp(rp, name, title, home or own, version)
        for rp, name, title, home, version in rows.values_list("id", "name", "title", "home", "version")[:RUN]
    ]
