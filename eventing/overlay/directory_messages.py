"""Messages, timers and events of directory.py."""

from __future__ import annotations

import msgspec

from eventing.overlay.directory_records import DomainRecord
from eventing.overlay.fingerprints import Range
from eventing.overlay.machine import Id

# Messages


class News(msgspec.Struct, frozen=True, array_like=True, tag="news", gc=False):
    """Announcement of new records, as (domain, version, hash)."""

    versions: tuple[tuple[Id, int, int], ...]


class Records(msgspec.Struct, frozen=True, array_like=True, tag="records", gc=False):
    """Records that were asked for, or that a comparison shows to be lacking."""

    records: tuple[DomainRecord, ...]


class Compare(msgspec.Struct, frozen=True, array_like=True, tag="compare", gc=False):
    """Fingerprints of ranges; the receiver answers those that differ."""

    ranges: tuple[tuple[Range, int], ...]


class RangeEntries(msgspec.Struct, frozen=True, array_like=True, tag="list", gc=False):
    """All (domain, version, hash) of these ranges; the receiver sends what is newer there, and asks for what is newer here."""

    ranges: tuple[Range, ...]
    versions: tuple[tuple[Id, int, int], ...]


class Want(msgspec.Struct, frozen=True, array_like=True, tag="want", gc=False):
    """A request for records."""

    domains: tuple[Id, ...]


class Equivocation(msgspec.Struct, frozen=True, array_like=True, tag="conflict", gc=False):
    """Two records of one version, or two sponsorships of one number: proof against the signer of both."""

    one: DomainRecord
    other: DomainRecord


# Timers and events


class RefreshDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: issue a new record."""


class CompareDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: compare with a domain."""


class AnnounceDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: announce what is new."""


class ExpireDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: discard records that have expired."""


class DomainAdmitted(msgspec.Struct, frozen=True, gc=False):
    """Event: a domain is in the directory."""

    domain: Id


class DomainExpired(msgspec.Struct, frozen=True, gc=False):
    """Event: a domain's record has expired."""

    domain: Id


class SponsorRemembered(msgspec.Struct, frozen=True, gc=False):
    """Event: the last record of a sponsor that has left was verified, and is to be remembered beside the directory."""

    record: DomainRecord


class Equivocated(msgspec.Struct, frozen=True, gc=False):
    """Event: proof that a domain signed contradictory statements."""

    domain: Id
    proof: Equivocation


class Refused(msgspec.Struct, frozen=True, gc=False):
    """Event: a record of a peer was refused. The peer may hold it in good faith: clocks, founders and the order of arrival differ.

    Attributes:
        why: the reason, in two words.
        record: the record.
    """

    peer: Id
    domain: Id
    why: str
    record: DomainRecord


REFRESH_DUE = RefreshDue()
COMPARE_DUE = CompareDue()
ANNOUNCE_DUE = AnnounceDue()
EXPIRE_DUE = ExpireDue()
