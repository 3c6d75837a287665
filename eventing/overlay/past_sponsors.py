"""Records of sponsors that have left: a sponsorship holds by its sponsor's signature as of its time.

A domain that is in the directory stays when its sponsor's record expires. One that joins later must arrive at the same directory, so it
needs the key of a sponsor that no directory has any more: the sponsor's last record, which others remember. Such a record vouches for
those whom its domain sponsored until it expired, and for nothing else: it is not in the directory, not announced, not counted, and drawn
by nobody.

A sponsor that has left cannot bring in more than before: its numbers and days are bounded as ever, a sponsorship of a day after its last
record is refused, and quotas count the domains that it brought in for its own sponsors too (`DomainDirectory._ancestors`). It could have
granted the same sponsorships while it was there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from eventing.overlay.machine import Id

PAST_MAX = 1024  # bound: records of sponsors that have left, in memory; the first are asked for again
ANSWERED_MAX = 16  # bound: records of sponsors that have left in one answer; the others are asked for again
DAY_S = 86_400


class _OfDomain(Protocol):
    @property
    def domain(self) -> Id: ...

    @property
    def expires_s(self) -> float: ...


Record = TypeVar("Record", bound=_OfDomain)


class PastSponsors(dict[Id, Record]):
    """The records, by domain.

    Args:
        remembered: the last record of a domain from a storage that lasts longer; None if it has none.
    """

    def __init__(self, remembered: Callable[[Id], Record | None]) -> None:
        super().__init__()
        self._remembered = remembered

    def add(self, record: Record) -> None:
        """Remember a record that was verified."""
        self.pop(record.domain, None)
        self[record.domain] = record
        if len(self) > PAST_MAX:
            del self[next(iter(self))]

    def recall(self, domain: Id) -> Record | None:
        """Return the record of a domain, from storage if need be."""
        record = self.get(domain)
        if record is None:
            record = self._remembered(domain)
            if record is not None:
                self.add(record)
        return record


def vouches_on(expires_s: float, day: int) -> bool:
    """Return True if a sponsorship of a day was granted while its sponsor's record had not expired."""
    return day <= expires_s // DAY_S
