"""Directory: signed records of all domains of the federation. The directory states which domains exist, not
which to trust or which are alive.

Every domain issues one record of itself, newly every REFRESH_S, and each domain holds the newest record of every other. Records spread in
two ways: what is new is announced on the links by domain and version, and asked for once; and once a minute two domains compare their
directories (`fingerprints`) and send each other what differs, so that nothing that an announcement missed stays missing.

A record is admitted with a *sponsorship*: a signed, numbered statement by a domain that is admitted already. The numbers make the quota
of a sponsor checkable by everybody: two newcomers with one number are proof against the sponsor. So a burst of false domains costs a
sponsor its standing, and is no larger than its quota.

Versions are monotone against all evidence: an older record is ignored whoever sends it, a domain that hears a newer version of itself
issues a newer one still, and two different records of one version are proof of equivocation, which is stored and sent on at once. A record
leaves by its expiry only; nothing that others say removes it.

Measurements behind the numbers: docs/decisions/0057.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from eventing.overlay import fingerprints
from eventing.overlay.fingerprints import Fingerprints, Range
from eventing.overlay.machine import Chance, Fired, Id, MessageReceived, SendMessage, SetTimer

REFRESH_S = 1800.0
"""Between two records of a domain: 1.8 kB/s with 10,000 domains; the period is what costs, not the number."""
EXPIRY_S = 3 * REFRESH_S
AHEAD_S = 300.0  # bound: seconds that a record may be ahead of the own clock; the record is refused
QUOTA_PER_DAY = 8  # bound: sponsorships of a domain per day; further numbers are refused
COMPARE_S = 60.0
"""Between two comparisons, each with a domain drawn at random."""
ANNOUNCE_S = 1.0
"""Interval in which news are gathered into one announcement."""
WANT_S = 3.0
"""A requested record that does not arrive is requested again after this, from the next domain that announces it."""
RELAY_WINDOW_S = 240.0
# bound: records of one domain announced per RELAY_WINDOW_S; newer ones are held and left to comparisons
RELAYS_MAX = 4
RECORDS_MAX = 64  # bound: records of one message; the others are in the next message
ORPHANS_MAX = 1024  # bound: records that wait for their sponsor's; the oldest are dropped and left to comparisons
RANGES_MAX = 256  # bound: ranges of one comparison; the others are compared next time
LISTED_MAX = 512  # bound: entries listed in one answer; the others are compared next time


class Sponsorship(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A domain's statement that another may be admitted.

    Attributes:
        sponsor: the domain that states it.
        newcomer: the domain that it admits.
        day: days since 1970 by the sponsor's clock.
        number: 0 to QUOTA_PER_DAY - 1, each once a day.
    """

    sponsor: Id
    newcomer: Id
    day: int
    number: int


class DomainRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The statement of a domain about itself.

    Attributes:
        domain: its id.
        version: greater than that of every earlier record: seconds of its clock since 1970.
        issued_s, expires_s: seconds since 1970.
        key: fingerprint of its keys.
        url: where it is reached; empty if it only calls out.
        zone: where it is, by its own word; for choosing near and unlike peers.
        operator: who runs it, by its own word; domains of one operator share a risk.
        capacity: class from 0 (a small device) to 3; claims are clamped to it.
        sponsorship: by which it was admitted; None for a founder.
        signature: over all that, by `key`, and over the sponsorship by the sponsor.
    """

    domain: Id
    version: int
    issued_s: float
    expires_s: float
    key: str = ""
    url: str = ""
    zone: str = ""
    operator: str = ""
    capacity: int = 1
    sponsorship: Sponsorship | None = None
    signature: bytes = b""


# Messages


class News(msgspec.Struct, frozen=True, array_like=True, tag="news", gc=False):
    """Announcement of new records, as (domain, version)."""

    versions: tuple[tuple[Id, int], ...]


class Records(msgspec.Struct, frozen=True, array_like=True, tag="records", gc=False):
    """Records that were asked for, or that a comparison shows to be lacking."""

    records: tuple[DomainRecord, ...]


class Compare(msgspec.Struct, frozen=True, array_like=True, tag="compare", gc=False):
    """Fingerprints of ranges; the receiver answers those that differ."""

    ranges: tuple[tuple[Range, int], ...]


class RangeEntries(msgspec.Struct, frozen=True, array_like=True, tag="list", gc=False):
    """All (domain, version) of these ranges; the receiver sends what is newer there, and asks for what is newer here."""

    ranges: tuple[Range, ...]
    versions: tuple[tuple[Id, int], ...]


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


class Equivocated(msgspec.Struct, frozen=True, gc=False):
    """Event: proof that a domain signed contradictory statements."""

    domain: Id
    proof: Equivocation


class Refused(msgspec.Struct, frozen=True, gc=False):
    """Event: a record of a peer was refused, which the peer could have refused as well."""

    peer: Id
    domain: Id
    why: str


REFRESH_DUE = RefreshDue()
COMPARE_DUE = CompareDue()
ANNOUNCE_DUE = AnnounceDue()
EXPIRE_DUE = ExpireDue()
Outputs = list[Any]


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
        self.leaf = array("I")
        self.sponsored: dict[tuple[Id, int, int], list[int]] = {}
        self._key_hash = key_hash

    def hold(self, record: DomainRecord) -> int:
        """Hold a record; the number of its domain."""
        number = self.number.get(record.domain)
        key_hash = self._key_hash(record.domain)
        if number is None:
            number = self.number[record.domain] = len(self.domains)
            self.domains.append(record.domain)
            self.leaf.append(fingerprints.leaf_of(key_hash))
            self.leaves[self.leaf[number]].append(number)
            self.records.append({})
            self.hashes.append({})
        if record.version not in self.records[number]:
            self.records[number][record.version] = record
            self.hashes[number][record.version] = fingerprints.entry_hash(key_hash, record.version)
            given = record.sponsorship
            if given is not None:
                users = self.sponsored.setdefault((given.sponsor, given.day, given.number), [])
                if number not in users:
                    users.append(number)
        return number


class DomainDirectory:
    """The directory of one domain.

    Args:
        me: its id.
        table: shared by all directories of the process.
        issue: makes the own record: (version, now) -> signed record.
        genuine: whether a record's signatures are those of its key and of its sponsor's; called after all cheap checks.
        founders: domains that need no sponsor.
        started_s: wall clock, in seconds since 1970, at time 0 of `now`.

    Attributes:
        count: records held.
    """

    def __init__(
        self,
        me: Id,
        table: DirectoryTable,
        *,
        issue: Callable[[int, float], DomainRecord],
        genuine: Callable[[DomainRecord], bool],
        founders: frozenset[Id],
        started_s: float = 0.0,
    ) -> None:
        self.me = me
        self.count = 0
        self._table = table
        self._issue = issue
        self._genuine = genuine
        self._founders = founders
        self._started_s = started_s
        self._versions = array("I")  # by number; 0: not held
        self._held = array("I")  # the first `count` are the numbers of the records that are held
        self._sums = Fingerprints()
        self._fresh: dict[int, Id] = {}  # numbers to announce, with the peer that each came from
        self._announcing = False
        self._relays = bytearray()  # by number, announcements within this window
        self._window = 0
        self._wanted_at: dict[Id, float] = {}
        self._orphans: dict[Id, tuple[Id, DomainRecord]] = {}  # by domain, with the peer that sent each
        self._convicted: set[tuple[Id, int]] = set()

    # What others read

    def record(self, domain: Id) -> DomainRecord | None:
        """The newest record of a domain."""
        number = self._table.number.get(domain)
        version = self._version(number) if number is not None else 0
        return self._table.records[number].get(version) if number is not None and version else None

    def draw(self, chance: Chance) -> Id | None:
        """A domain drawn evenly from all but this one; None if there is none.

        The directory has each domain once, so no sender of records can make a draw of its own domains likelier than their share.
        """
        for _ in range(8):
            if self.count > 1:
                domain = self._table.domains[self._held[chance.randrange(self.count)]]
                if domain != self.me:
                    return domain
        return None

    def fingerprint(self) -> int:
        """The sum over all records: equal directories have equal sums."""
        return self._sums[0]

    # Inputs

    def begin(self, now: float, chance: Chance) -> Outputs:
        """Issue the own record and start the timers."""
        out: Outputs = [
            SetTimer(REFRESH_DUE, REFRESH_S * (0.9 + 0.1 * chance.random())),
            SetTimer(COMPARE_DUE, COMPARE_S * chance.random()),
            SetTimer(EXPIRE_DUE, EXPIRY_S / 10 * (0.5 + chance.random())),
        ]
        self._renew(now, 0, out)
        return out

    def handle(self, given: Any, now: float, chance: Chance, links: Iterable[Id]) -> Outputs:
        """Take in an input.

        Args:
            links: peers that what is new is pushed to.
        """
        out: Outputs = []
        if type(given) is MessageReceived:
            _HANDLERS[type(given.message)](self, given.peer, given.message, now, out)
        elif type(given) is Fired:
            kind = type(given.timer)
            if kind is AnnounceDue:
                self._announce(now, links, out)
            elif kind is CompareDue:
                out.append(SetTimer(COMPARE_DUE, COMPARE_S * (0.9 + 0.2 * chance.random())))
                self.compare(self.draw(chance), out)
            elif kind is RefreshDue:
                out.append(SetTimer(REFRESH_DUE, REFRESH_S * (0.95 + 0.1 * chance.random())))
                self._renew(now, 0, out)
            elif kind is ExpireDue:
                out.append(SetTimer(EXPIRE_DUE, EXPIRY_S / 10 * (0.95 + 0.1 * chance.random())))
                self._expire(now, out)
        return out

    def compare(self, peer: Id | None, out: Outputs) -> None:
        """Begin a comparison with a peer: at each new link, so that a newcomer waits for no timer, and every COMPARE_S."""
        if peer is not None:
            out.append(SendMessage(peer, Compare(((0, self._sums[0]),))))

    # Records

    def _version(self, number: int) -> int:
        return self._versions[number] if number < len(self._versions) else 0

    def _wall_s(self, now: float) -> float:
        return self._started_s + now

    def _renew(self, now: float, above: int, out: Outputs) -> None:
        """Issue a record that is newer than all known records of this domain."""
        number = self._table.number.get(self.me)
        held = self._version(number) if number is not None else 0
        record = self._issue(max(int(self._wall_s(now)), held + 1, above + 1), self._wall_s(now))
        self._store(record, self.me, out)

    def _news(self, peer: Id, message: News, now: float, out: Outputs) -> None:
        """Ask for what is newer, once."""
        wanted = []
        for domain, version in message.versions[:LISTED_MAX]:
            number = self._table.number.get(domain)
            if (number is None or version > self._version(number)) and now >= self._wanted_at.get(domain, 0.0):
                self._wanted_at[domain] = now + WANT_S
                wanted.append(domain)
        if wanted:
            out.append(SendMessage(peer, Want(tuple(wanted))))

    def _received(self, peer: Id, message: Records, now: float, out: Outputs) -> None:
        for record in message.records[:RECORDS_MAX]:
            self._wanted_at.pop(record.domain, None)
            self._take(peer, record, now, out)
        self._adopt(peer, now, out)

    def _adopt(self, peer: Id, now: float, out: Outputs) -> None:
        """Take the records whose sponsors are known by now, and ask the peer for sponsors that are not."""
        found = True
        while found:
            found = False
            for domain, (sender, record) in list(self._orphans.items()):
                if record.sponsorship is not None and self.record(record.sponsorship.sponsor) is not None:
                    del self._orphans[domain]
                    self._take(sender, record, now, out)
                    found = True
        sponsors = {
            record.sponsorship.sponsor for _, record in self._orphans.values() if record.sponsorship is not None
        }
        wanted = [one for one in sorted(sponsors - self._orphans.keys()) if now >= self._wanted_at.get(one, 0.0)]
        if wanted:
            self._wanted_at.update(dict.fromkeys(wanted, now + WANT_S))
            out.append(SendMessage(peer, Want(tuple(wanted[:LISTED_MAX]))))

    def _take(self, peer: Id, record: DomainRecord, now: float, out: Outputs) -> None:
        """Hold a record that is newer, admitted and genuine: cheap checks first."""
        number = self._table.number.get(record.domain)
        held = self._version(number) if number is not None else 0
        if record.version < held:
            return
        if record.version == held:
            known = self._table.records[number].get(held) if number is not None else None
            if known is not None and known != record and self._genuine(record):
                self._convict(record.domain, held, Equivocation(known, record), out)
            return
        wall_s = self._wall_s(now)
        why = self._problem(record, wall_s)
        if why:
            out.append(Refused(peer, record.domain, why))
            return
        if record.sponsorship is not None and self.record(record.sponsorship.sponsor) is None:
            self._orphans.pop(record.domain, None)
            self._orphans[record.domain] = (peer, record)
            if len(self._orphans) > ORPHANS_MAX:
                del self._orphans[next(iter(self._orphans))]
            return
        if record.domain == self.me:
            if self._genuine(record):
                self._renew(now, record.version, out)
            return
        if not self._genuine(record):
            out.append(Refused(peer, record.domain, "signature"))
            return
        if held == 0 and not self._admits(record, out):
            return
        self._store(record, peer, out)

    def _problem(self, record: DomainRecord, wall_s: float) -> str:
        """Return the reason to refuse a record, in two words; empty if there is none."""
        if not record.issued_s <= wall_s + AHEAD_S or record.version > wall_s + AHEAD_S:  # NaN is refused, too
            return "ahead of time"
        if not wall_s < record.expires_s <= record.issued_s + EXPIRY_S:
            return "expired"
        sponsorship = record.sponsorship
        if sponsorship is None:
            return "" if record.domain in self._founders else "no sponsor"
        if sponsorship.newcomer != record.domain or not 0 <= sponsorship.number < QUOTA_PER_DAY:
            return "false sponsorship"
        return ""

    def _admits(self, record: DomainRecord, out: Outputs) -> bool:
        """Return whether the number of the sponsorship is used for the first time."""
        given = record.sponsorship
        if given is None:
            return True
        users = self._table.sponsored.get((given.sponsor, given.day, given.number), ())
        other = next((number for number in users if self._version(number)), None)
        if other is None or self._table.domains[other] == record.domain:
            return True
        proof = Equivocation(self._table.records[other][self._versions[other]], record)
        self._convict(given.sponsor, given.day * QUOTA_PER_DAY + given.number, proof, out)
        return False

    def _convict(self, domain: Id, place: int, proof: Equivocation, out: Outputs) -> None:
        if (domain, place) not in self._convicted:
            self._convicted.add((domain, place))
            out.append(Equivocated(domain, proof))

    def _store(self, record: DomainRecord, peer: Id, out: Outputs) -> None:
        table = self._table
        number = table.hold(record)
        lacking = number + 1 - len(self._versions)
        if lacking > 0:
            self._versions.extend([0] * lacking)
            self._relays.extend(bytes(lacking))
        held = self._versions[number]
        hashes = table.hashes[number]
        self._sums.change(table.leaf[number], hashes[held] if held else 0, hashes[record.version])
        self._versions[number] = record.version
        if not held:
            if self.count < len(self._held):
                self._held[self.count] = number
            else:
                self._held.append(number)
            self.count += 1
            out.append(DomainAdmitted(record.domain))
        self._fresh[number] = peer
        if not self._announcing:
            self._announcing = True
            out.append(SetTimer(ANNOUNCE_DUE, ANNOUNCE_S))

    def _expire(self, now: float, out: Outputs) -> None:
        wall_s, table = self._wall_s(now), self._table
        for at in range(self.count - 1, -1, -1):
            number = self._held[at]
            version = self._versions[number]
            if table.records[number][version].expires_s <= wall_s:
                self._sums.change(table.leaf[number], table.hashes[number][version], 0)
                self._versions[number] = 0
                self.count -= 1
                self._held[at] = self._held[self.count]
                self._fresh.pop(number, None)
                out.append(DomainExpired(table.domains[number]))
        self._wanted_at = {domain: until for domain, until in self._wanted_at.items() if until > now}

    def _announce(self, now: float, links: Iterable[Id], out: Outputs) -> None:
        self._announcing = False
        fresh, self._fresh = self._fresh, {}
        window = int(now / RELAY_WINDOW_S)
        if window != self._window:
            self._window, self._relays = window, bytearray(len(self._relays))
        news = []
        for number, by in fresh.items():
            if self._relays[number] < RELAYS_MAX:
                self._relays[number] += 1
                news.append((by, (self._table.domains[number], self._versions[number])))
        for peer in links:
            versions = [entry for by, entry in news if by != peer]
            for first in range(0, len(versions), LISTED_MAX):
                out.append(SendMessage(peer, News(tuple(versions[first : first + LISTED_MAX]))))

    # Comparison

    def _compared(self, peer: Id, message: Compare, now: float, out: Outputs) -> None:
        """Answer ranges that differ: with the fingerprints of their branches, or with their entries where these are few."""
        finer: list[tuple[Range, int]] = []
        listed: list[Range] = []
        entries: list[tuple[Id, int]] = []
        for of in fingerprints.differing(self._sums, message.ranges[:RANGES_MAX]):
            below = fingerprints.branches(of)
            if below and len(finer) + len(below) <= RANGES_MAX:
                finer += [(branch, self._sums[branch]) for branch in below]
            elif not below and len(entries) < LISTED_MAX:
                listed.append(of)
                entries += self._entries(of)
        if finer:
            out.append(SendMessage(peer, Compare(tuple(finer))))
        if listed:
            out.append(SendMessage(peer, RangeEntries(tuple(listed), tuple(entries))))

    def _entries(self, of: Range) -> list[tuple[Id, int]]:
        table = self._table
        numbers = [number for leaf in fingerprints.leaves(of) for number in table.leaves[leaf]]
        return [(table.domains[number], self._version(number)) for number in numbers if self._version(number)]

    def _listed(self, peer: Id, message: RangeEntries, now: float, out: Outputs) -> None:
        theirs = dict(message.versions[:LISTED_MAX])
        newer = [
            self.record(domain)
            for of in message.ranges[:RANGES_MAX]
            for domain, version in self._entries(of)
            if version > theirs.get(domain, 0)
        ]
        wanted = []
        for domain, version in theirs.items():
            number = self._table.number.get(domain)
            if number is None or version > self._version(number):
                wanted.append(domain)
        self._send([record for record in newer if record is not None], peer, out)
        if wanted:
            out.append(SendMessage(peer, Want(tuple(wanted))))

    def _wanted(self, peer: Id, message: Want, now: float, out: Outputs) -> None:
        found = (self.record(domain) for domain in message.domains[:LISTED_MAX])
        self._send([record for record in found if record is not None], peer, out)

    def _send(self, records: list[DomainRecord], peer: Id, out: Outputs) -> None:
        for first in range(0, len(records), RECORDS_MAX):
            out.append(SendMessage(peer, Records(tuple(records[first : first + RECORDS_MAX]))))


_HANDLERS: dict[type, Any] = {
    News: DomainDirectory._news,
    Records: DomainDirectory._received,
    Compare: DomainDirectory._compared,
    RangeEntries: DomainDirectory._listed,
    Want: DomainDirectory._wanted,
}
MESSAGES = frozenset(_HANDLERS)
TIMERS = frozenset({RefreshDue, CompareDue, AnnounceDue, ExpireDue})
