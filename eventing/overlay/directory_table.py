"""Table of domains by dense number, with their records: one for all directories of a process."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from hashlib import blake2b

import msgspec

from eventing.overlay import fingerprints
from eventing.overlay.directory_records import ANCESTORS_MAX, DAY_S, EXPIRY_S, QUOTA_PER_DAY, DomainRecord
from eventing.overlay.machine import Id


class DirectoryTable:
    """Domains by dense number, with their records: one for all directories of a process, so that a simulation of ten thousand
    directories holds each record once and each directory only an array of versions.
    """

    def __init__(self, key_hash: Callable[[Id], int]) -> None:
        self.number: dict[Id, int] = {}
        self.domains: list[Id] = []
        self.leaves: list[list[int]] = [[] for _ in range(1 << fingerprints.LEAF_BITS)]
        self.records: list[dict[int, DomainRecord]] = []
        self.hashes: list[dict[int, int]] = []
        self.entries: list[dict[int, tuple[Id, int, int]]] = []
        """By number and version, (domain, version, hash): the entry of a record in announcements and comparisons."""
        self.leaf = array("I")
        self.key_hashes = array("Q")
        """By number, 64 well-mixed bits of the domain's name."""
        self.sponsored: dict[tuple[Id, int, int], list[int]] = {}
        self.brought = array("I")
        """By number, domains that were ever admitted by this one, by those, and so on, in any directory of the table."""
        self.sponsors = array("I")
        """By number, domains that were ever admitted by this one itself."""
        self.crowded = False
        """True once some domain has brought in so many that directories have to count for themselves."""
        self._key_hash = key_hash
        self._forgotten_s = 0.0

    def hash_of(self, record: DomainRecord) -> int:
        """64 bits over a record's domain, version and content."""
        content = int.from_bytes(blake2b(msgspec.msgpack.encode(record), digest_size=8).digest(), "big")
        return fingerprints.entry_hash(self._key_hash(record.domain) ^ content, record.version)

    def key_hash(self, domain: Id) -> int:
        """64 well-mixed bits of a domain's name. Of two newcomers with one number that with fewer is held; all directories agree."""
        return self._key_hash(domain)

    def hold(self, record: DomainRecord) -> int:
        """Hold a record; the number of its domain."""
        number = self.number.get(record.domain)
        if number is None:
            number = self.number[record.domain] = len(self.domains)
            self.domains.append(record.domain)
            key_hash = self._key_hash(record.domain)
            self.key_hashes.append(key_hash)
            self.leaf.append(fingerprints.leaf_of(key_hash))
            self.leaves[self.leaf[number]].append(number)
            self.records.append({})
            self.hashes.append({})
            self.entries.append({})
            self.brought.append(0)
            self.sponsors.append(0)
            self._count(record)
        if record.version not in self.records[number]:
            self.records[number][record.version] = record
            content = self.hashes[number][record.version] = self.hash_of(record)
            self.entries[number][record.version] = (record.domain, record.version, content)
            given = record.sponsorship
            if given is not None:
                users = self.sponsored.setdefault((given.sponsor, given.day, given.number), [])
                if number not in users:
                    users.append(number)
        return number

    def number_past(self, record: DomainRecord) -> int:
        """Return the number of a sponsor that has left, so that what it brought in is counted."""
        return DirectoryTable.hold(self, record)

    def forget(self, wall_s: float) -> None:
        """Discard versions that expired so long ago that no directory holds them."""
        if wall_s - self._forgotten_s < EXPIRY_S / 10:
            return
        self._forgotten_s = wall_s
        for records, hashes, entries in zip(self.records, self.hashes, self.entries, strict=True):
            for version in [one for one, record in records.items() if record.expires_s < wall_s - EXPIRY_S]:
                del records[version], hashes[version], entries[version]

    def _count(self, record: DomainRecord) -> None:
        given = record.sponsorship
        sponsor = self.number.get(given.sponsor) if given is not None else None
        if sponsor is not None:
            self.sponsors[sponsor] += 1
        for _ in range(ANCESTORS_MAX):
            number = self.number.get(given.sponsor) if given is not None else None
            if number is None or not self.records[number]:
                return
            self.brought[number] += 1
            given = next(iter(self.records[number].values())).sponsorship
            if given is not None:
                limit = QUOTA_PER_DAY * (record.issued_s // DAY_S - given.day + 1)
                self.crowded = self.crowded or self.brought[number] >= limit
