"""Directory: signed records of all domains of the federation. The directory states which domains exist, not
which to trust or which are alive.

Every domain issues one record of itself, newly every REFRESH_S, and each domain holds the newest record of every other. Records spread in
two ways: what is new is announced on the links by domain and version, and asked for once; and once a minute two domains compare their
directories (`fingerprints`) and send each other what differs, so that nothing that an announcement missed stays missing.

A record is admitted with a *sponsorship*: a signed, numbered statement by a domain that is admitted already. The numbers make the quota
of a sponsor checkable by everybody: two newcomers with one number are proof against the sponsor. So a burst of false domains costs a
sponsor its standing, and is no larger than its quota.

Versions are monotone against all evidence: an older record is ignored from any sender, a domain that receives a newer version of itself
issues a newer one still, and two different records of one version are proof of equivocation, which is stored and sent on at once
(`convictions`). Announcements and comparisons carry a hash of each record's content, so that two sides to which a domain shows different
records notice at their first contact. A record leaves by its expiry only; no message of others removes it.

The order in which statements arrive decides nothing that lasts: of two contradictory ones all domains hold the same one in the end.

Measurements behind the numbers: docs/decisions/0057.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from eventing.overlay import fingerprints
from eventing.overlay.answer_allowance import AnswerAllowance
from eventing.overlay.convictions import PROOFS_RELAYED, Convictions
from eventing.overlay.directory_messages import (
    ANNOUNCE_DUE,
    COMPARE_DUE,
    EXPIRE_DUE,
    REFRESH_DUE,
    AnnounceDue,
    Compare,
    CompareDue,
    DomainAdmitted,
    DomainExpired,
    Equivocated,
    Equivocation,
    ExpireDue,
    News,
    RangeEntries,
    Records,
    RefreshDue,
    Refused,
    SponsorRemembered,
    Want,
)
from eventing.overlay.directory_records import (
    AHEAD_S,
    ANCESTORS_MAX,
    DAY_S,
    EXPIRY_S,
    QUOTA_PER_DAY,
    REFRESH_S,
    DomainRecord,
    Sponsorship,
)
from eventing.overlay.directory_table import DirectoryTable
from eventing.overlay.fingerprints import Fingerprints, Range
from eventing.overlay.machine import Chance, Fired, Id, MessageReceived, SendMessage, SetTimer
from eventing.overlay.past_sponsors import ANSWERED_MAX, PastSponsors, vouches_on

COMPARE_S = 60.0
"""Between two comparisons, each with a domain drawn at random."""
ANNOUNCE_S = 1.0
"""Interval in which news are gathered into one announcement."""
ANNOUNCE_LINKS = 6
"""Links that news are announced on, drawn each time: e**-6 of the domains get a record by a comparison only, and half of the bytes of
an announcement on all of 12 links are saved."""
WANT_S = 3.0
"""A requested record that does not arrive is requested again after this, from another domain that announces it."""
ASKED_MAX = 8  # bound: peers remembered that were asked for a record in vain; the first are asked again
WANTED_MAX = 4096  # bound: records requested at once; the oldest requests are forgotten and left to comparisons
RELAY_WINDOW_S = 240.0
# bound: records of one domain announced per RELAY_WINDOW_S; newer ones are held and left to comparisons
RELAYS_MAX = 4
RECORDS_MAX = 64  # bound: records of one message; the others are in the next message
ORPHANS_MAX = 1024  # bound: records that wait for their sponsor's; the oldest are dropped and left to comparisons
RANGES_MAX = 256  # bound: ranges of one comparison; the others are compared next time
LISTED_MAX = 512  # bound: entries listed in one answer; the others are compared next time

Outputs = list[Any]


class DomainDirectory:
    """The directory of one domain.

    Args:
        me: its id.
        table: shared by all directories of the process.
        issue: makes the own record: (version, now) -> signed record.
        genuine: whether a record's signatures are those of its key and of its sponsor's; called after all cheap checks.
        founders: domains that need no sponsor.
        started_s: wall clock, in seconds since 1970, at time 0 of `now`.
        remembered: the last record of a domain that has left, from a storage; None if it has none.

    Attributes:
        count: records held.
        past: records of sponsors that have left.
        convictions: proofs against domains that signed contradictory statements.
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
        remembered: Callable[[Id], DomainRecord | None] = lambda domain: None,
    ) -> None:
        self.me = me
        self.count = 0
        self.past: PastSponsors[DomainRecord] = PastSponsors(remembered)
        self._table = table
        self._issue = issue
        self._genuine = genuine
        self._founders = founders
        self._founders_sorted = sorted(founders)
        self._started_s = started_s
        self._versions = array("I")  # by number; 0: not held
        self._held = array("I")  # the first `count` are the numbers of the records that are held
        self._sums = Fingerprints()
        self._shares = False  # these three are another directory's as well, until either of both changes
        self._fresh: dict[int, Id] = {}  # numbers to announce, with the peer that each came from
        self._announcing = False
        self._relays = bytearray()  # by number, announcements within this window
        self._window = 0
        self._wanted: dict[Id, tuple[float, tuple[Id, ...]]] = {}  # by domain, until when, and the peers asked in vain
        self._orphans: dict[Id, tuple[Id, DomainRecord]] = {}  # by domain, with the peer that sent each
        self._variants: dict[int, DomainRecord] = {}  # by number, held records that are not the table's of that version
        self._brought: dict[int, int] = {}  # by number, exact counts where the table's count is beyond the quota
        self._allowance = AnswerAllowance()
        self.convictions: Convictions[Equivocation] = Convictions()

    # What others read

    def record(self, domain: Id) -> DomainRecord | None:
        """The newest record of a domain."""
        number = self._table.number.get(domain)
        version = self._version(number) if number is not None else 0
        if number is None or not version:
            return None
        if self._variants and number in self._variants:
            return self._variants[number]
        return self._table.records[number].get(version)

    def version(self, domain: Id) -> int:
        """The version of the record that is held of a domain; 0: none."""
        number = self._table.number.get(domain)
        return self._version(number) if number is not None else 0

    def all_records(self) -> Iterator[DomainRecord]:
        """All records held."""
        for number in self._held[: self.count]:
            record = self.record(self._table.domains[number])
            if record is not None:
                yield record

    def sizes(self) -> dict[str, int]:
        """Entries of each memory that others can make grow."""
        return {
            "orphans": len(self._orphans),
            "wanted": len(self._wanted),
            "convictions": len(self.convictions),
            "fresh": len(self._fresh),
            "variants": len(self._variants),
            "past": len(self.past),
        }

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

    def domains(self) -> Iterator[Id]:
        """All domains with a record, in no order that means anything."""
        return (self._table.domains[self._held[at]] for at in range(self.count))

    def group_share(self, record: DomainRecord) -> float:
        """The share that a sponsor and the domains that it sponsored have in the directory; at most, as some may have expired."""
        sponsor = record.domain if record.sponsorship is None else record.sponsorship.sponsor
        number = self._table.number.get(sponsor)
        return 0.0 if number is None or not self.count else (1 + self._table.sponsors[number]) / self.count

    def fingerprint(self) -> int:
        """The sum over all records: equal directories have equal sums."""
        return self._sums[0]

    def beacon(self) -> int:
        """64 bits that nobody can foresee before a founder signs its newest record; 0 if no founder's record is held."""
        for founder in self._founders_sorted:
            number = self._table.number.get(founder)
            if number is not None and self._version(number):
                return self._hash(number)
        return 0

    def key_hash(self, domain: Id) -> int:
        """64 well-mixed bits of a domain's name, the same at every domain."""
        return self._table.key_hash(domain)

    def share(self, seed: int, limit: int) -> list[Id]:
        """The domains in the share of limit / 2^64 that a seed draws (`fingerprints.is_in_share`)."""
        table = self._table
        numbers = fingerprints.share_of(seed, table.key_hashes, self._held[: self.count], limit)
        return [table.domains[one] for one in numbers]

    # Inputs

    def begin(self, now: float, chance: Chance) -> Outputs:
        """Start the timers, and issue the own record unless a fresh one is held: a restart alone is no news."""
        own = self.record(self.me)
        age_s = self._wall_s(now) - own.issued_s if own is not None else REFRESH_S
        fresh = 0.0 <= age_s < REFRESH_S
        out: Outputs = [
            SetTimer(REFRESH_DUE, (REFRESH_S - age_s if fresh else REFRESH_S) * (0.9 + 0.1 * chance.random())),
            SetTimer(COMPARE_DUE, COMPARE_S * chance.random()),
            SetTimer(EXPIRE_DUE, EXPIRY_S / 10 * (0.5 + chance.random())),
        ]
        if not fresh:
            self._renew(now, 0, out)
        return out

    def copy_records(self, of: DomainDirectory) -> None:
        """Hold what another directory over the same table holds: after a restart, or in a world that begins with full directories.

        Both share the memory until one of them changes: ten thousand full directories would take more than a gigabyte.
        """
        if of._table is not self._table:
            raise ValueError("the directories are over different tables")
        self.count = of.count
        self._versions, self._held, self._sums = of._versions, of._held, of._sums
        self._shares = of._shares = True
        self._relays = bytearray()
        self._variants = dict(of._variants)
        self._brought = dict(of._brought)

    def _unshare(self) -> None:
        """Have what is held for this directory alone, before it changes."""
        self._shares = False
        self._versions, self._held, self._sums = self._versions[:], self._held[:], self._sums.copy()

    def fill(self, records: Iterable[DomainRecord]) -> None:
        """Hold records without checks or announcements: those of a restart from disk."""
        out: Outputs = []
        for record in records:
            self._store(record, self.me, out)
        self._fresh.clear()
        self._announcing = False

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
                self._announce(now, list(links), chance, out)
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
        """Ask for what is newer, and for what contradicts a record that is held."""
        wanted = []
        numbers, versions, count = self._table.number, self._versions, len(self._versions)
        for entry in message.versions[:LISTED_MAX]:
            domain, version, _ = entry
            number = numbers.get(domain, count)
            held = versions[number] if number < count else 0
            if version > held or (held and version == held and self._contradicts(entry, number)):
                wanted.append(domain)
        if wanted:
            self._want(peer, wanted, now, out)

    def _contradicts(self, entry: tuple[Id, int, int], number: int) -> bool:
        """Return whether the record held of the same version has another content, and no proof of that is held."""
        return entry[2] != self._hash(number) and entry[0] not in self.convictions

    def _want(self, peer: Id, domains: Iterable[Id], now: float, out: Outputs) -> None:
        """Request records, each of one peer at a time, and of no peer again that was asked for it in vain."""
        wanted, requested = [], self._wanted
        for domain in domains:
            until, asked = requested.get(domain, (0.0, ()))
            if now >= until and peer not in asked:
                requested.pop(domain, None)
                requested[domain] = (now + WANT_S, (*asked[-ASKED_MAX:], peer))
                wanted.append(domain)
                if len(requested) > WANTED_MAX:
                    del requested[next(iter(requested))]
        for first in range(0, len(wanted), LISTED_MAX):
            out.append(SendMessage(peer, Want(tuple(wanted[first : first + LISTED_MAX]))))

    def _received(self, peer: Id, message: Records, now: float, out: Outputs) -> None:
        past, wall_s = [], self._wall_s(now)
        excused = {one.sponsorship.sponsor for one in message.records[:RECORDS_MAX] if one.sponsorship is not None}
        for record in message.records[:RECORDS_MAX]:
            asked = self._wanted.pop(record.domain, (0.0, ()))[1]
            if peer in asked:
                excused.add(record.domain)
            if record.expires_s <= wall_s and self.record(record.domain) is None:
                past.append(record)
            else:
                self._take(peer, record, now, out)
        for record in past:
            self._take_past(peer, record, out, excused=record.domain in excused)
        self._adopt(peer, now, out)

    def _adopt(self, peer: Id, now: float, out: Outputs) -> None:
        """Take the records whose sponsors are known by now, and ask the peer for sponsors that are not."""
        if not self._orphans:
            return
        found = True
        while found:
            found = False
            for domain, (sender, record) in list(self._orphans.items()):
                if record.sponsorship is not None and self._voucher(record.sponsorship.sponsor) is not None:
                    del self._orphans[domain]
                    if record.expires_s <= self._wall_s(now):
                        self._take_past(sender, record, out, wanted=True)
                    else:
                        self._take(sender, record, now, out)
                    found = True
        sponsors = {
            record.sponsorship.sponsor for _, record in self._orphans.values() if record.sponsorship is not None
        }
        self._want(peer, sorted(sponsors - self._orphans.keys()), now, out)

    def _take(self, peer: Id, record: DomainRecord, now: float, out: Outputs) -> None:
        """Hold a record that is newer, admitted and genuine: cheap checks first."""
        known = self.record(record.domain)
        if known is not None and record.version <= known.version:
            if record.version == known.version and record != known and self._genuine(record):
                self._contradicted(peer, known, record, now, out)
            return
        why = self._problem(record, known, self._wall_s(now))
        if why:
            out.append(Refused(peer, record.domain, why, record))
            return
        if record.domain == self.me:
            if self._genuine(record):
                self._renew(now, record.version, out)
            return
        given = record.sponsorship
        if known is None and given is not None and self._recall(given.sponsor) is None:
            self._orphan(peer, record)
            return
        if known is None and given is not None:
            why = self._beyond_quota(record.domain, given, now)
        if not why and not self._genuine(record):
            why = "signature"
        if why:
            out.append(Refused(peer, record.domain, why, record))
        elif known is not None or self._admits(peer, record, out):
            self._store(record, peer, out)

    def _orphan(self, peer: Id, record: DomainRecord) -> None:
        """Have a record wait for its sponsor's."""
        self._orphans.pop(record.domain, None)
        self._orphans[record.domain] = (peer, record)
        if len(self._orphans) > ORPHANS_MAX:
            del self._orphans[next(iter(self._orphans))]

    def _take_past(
        self, peer: Id, record: DomainRecord, out: Outputs, *, wanted: bool = False, excused: bool = False
    ) -> None:
        """Remember the last record of a sponsor that has left, if others wait for it and it was admitted itself.

        Args:
            wanted: others are known to wait for it.
            excused: the peer was asked for it, or sent it with those whom it sponsored; it is not refused where nobody waits any more.
        """
        awaited = (one.sponsorship for _, one in self._orphans.values())
        if not wanted and not any(one is not None and one.sponsor == record.domain for one in awaited):
            if not excused:
                out.append(Refused(peer, record.domain, "expired", record))
            return
        given = record.sponsorship
        why = self._problem(record, None, record.issued_s)
        if not why and given is not None and self._recall(given.sponsor) is None:
            self._orphan(peer, record)
            return
        if not why and not self._vouched(given):
            why = "false sponsorship"
        if not why and not self._genuine(record):
            why = "signature"
        if why:
            out.append(Refused(peer, record.domain, why, record))
            return
        self.past.add(record)
        out.append(SponsorRemembered(record))

    def _voucher(self, domain: Id) -> DomainRecord | None:
        """Return the record of a domain as a sponsor: also the last one of a domain that has left."""
        return self.record(domain) or self.past.get(domain)

    def _recall(self, domain: Id) -> DomainRecord | None:
        """Return what `_voucher` does, from storage if need be, with the sponsors above it."""
        found = record = self.record(domain) or self.past.recall(domain)
        for _ in range(ANCESTORS_MAX):
            if record is None or record.sponsorship is None:
                break
            sponsor = record.sponsorship.sponsor
            record = None if self._voucher(sponsor) is not None else self.past.recall(sponsor)
        return found

    def _vouched(self, given: Sponsorship | None) -> bool:
        """Return False for a sponsorship of a day after the last record of its sponsor, who has left."""
        past = None if given is None or self.record(given.sponsor) is not None else self.past.get(given.sponsor)
        return past is None or given is None or vouches_on(past.expires_s, given.day)

    def _contradicted(self, peer: Id, known: DomainRecord, record: DomainRecord, now: float, out: Outputs) -> None:
        """Two records of one version: convict their domain, and hold the one that all others will hold, too."""
        self._convict(peer, record.domain, Equivocation(known, record), out)
        if record.domain == self.me:
            self._renew(now, record.version, out)
        elif self._table.hash_of(record) < self._table.hash_of(known) and not self._problem(
            record, known, self._wall_s(now)
        ):
            self._store(record, peer, out)

    def _problem(self, record: DomainRecord, known: DomainRecord | None, wall_s: float) -> str:
        """Return the reason to refuse a record, in two words; empty if there is none."""
        if not record.issued_s <= wall_s + AHEAD_S or record.version > wall_s + AHEAD_S:  # NaN is refused, too
            return "ahead of time"
        if not wall_s < record.expires_s <= record.issued_s + EXPIRY_S or record.version <= 0:
            return "expired"
        sponsorship = record.sponsorship
        if known is not None and sponsorship != known.sponsorship and record.domain != self.me:
            return "other sponsorship"  # a domain keeps its place among the sponsors while it is in the directory
        if sponsorship is None:
            return "" if record.domain in self._founders else "no sponsor"
        if sponsorship.newcomer != record.domain or not 0 <= sponsorship.number < QUOTA_PER_DAY:
            return "false sponsorship"
        if not 0 <= sponsorship.day <= (wall_s + AHEAD_S) // DAY_S:
            return "false sponsorship"
        return ""

    def _beyond_quota(self, newcomer: Id, given: Sponsorship, now: float) -> str:
        """Return the reason to refuse a newcomer because of its sponsors; empty if there is none.

        A domain and all that it brought in bring in QUOTA_PER_DAY domains for each day since it was admitted itself, so that sponsoring
        one's own false domains, or dating sponsorships back, gains nothing. Founders have no bound.
        """
        sponsor = self._voucher(given.sponsor)
        if sponsor is not None and sponsor.sponsorship is not None and given.day < sponsor.sponsorship.day:
            return "false sponsorship"
        if not self._vouched(given):
            return "false sponsorship"
        if self.past:  # counts of the table are of domains with a number
            list(self._ancestors(given))
        before = self._table.number.get(newcomer)
        if not self._table.crowded and (before is None or not self._table.brought[before]):
            return ""
        today = int(self._wall_s(now) // DAY_S)
        for number, since in self._ancestors(given):
            limit = QUOTA_PER_DAY * (today - since + 1)
            if self._table.brought[number] >= limit and self._brought_by(number) >= limit:
                return "quota"
            if self._table.domains[number] == newcomer:
                return "circle"
        return ""

    def _ancestors(self, given: Sponsorship | None) -> Iterator[tuple[int, int]]:
        """The sponsors from the nearest up to a founder's newcomer, as numbers, each with the day of its own admission."""
        for _ in range(ANCESTORS_MAX):
            sponsor = self._voucher(given.sponsor) if given is not None else None
            if sponsor is None:
                return
            past = sponsor.domain in self.past
            number = self._table.number_past(sponsor) if past else self._table.number[sponsor.domain]
            if sponsor.sponsorship is None:
                return
            given = sponsor.sponsorship
            yield number, given.day

    def _brought_by(self, number: int) -> int:
        """The domains held that a domain, and those that it admitted, and so on, brought in."""
        if number not in self._brought:
            records = (self.record(self._table.domains[one]) for one in self._held[: self.count])
            self._brought[number] = sum(
                1
                for record in records
                if record is not None and any(one == number for one, _ in self._ancestors(record.sponsorship))
            )
        return self._brought[number]

    def _count(self, record: DomainRecord, change: int) -> None:
        """Keep the exact counts."""
        if self._brought:
            for number, _ in self._ancestors(record.sponsorship):
                if number in self._brought:
                    self._brought[number] += change

    def _admits(self, peer: Id, record: DomainRecord, out: Outputs) -> bool:
        """Return whether a newcomer is held: its sponsorship's number is used for the first time, or others gave precedence to it."""
        given = record.sponsorship
        if given is None:
            return True
        users = self._table.sponsored.get((given.sponsor, given.day, given.number), ())
        other = next((number for number in users if self._version(number)), None)
        if other is None or self._table.domains[other] == record.domain:
            return True
        domain = self._table.domains[other]
        known = self.record(domain)
        if known is None or known.sponsorship is None:
            return True
        self._convict(peer, given.sponsor, Equivocation(known, record), out)
        if self._table.key_hash(record.domain) > self._table.key_hash(domain) or domain == self.me:
            return False
        self._discard(other, out)
        return True

    def _convict(self, peer: Id, domain: Id, proof: Equivocation, out: Outputs) -> None:
        if self.convictions.add(domain, proof, peer):
            out.append(Equivocated(domain, proof))
            self._announce_soon(out)

    def _proved(self, peer: Id, proof: Equivocation, now: float, out: Outputs) -> None:
        """Take in a proof that a peer sent on."""
        domain = accused(proof)
        if domain is None or domain in self.convictions or self.record(domain) is None:
            return
        for record in (proof.one, proof.other):
            if not self._genuine(record):
                out.append(Refused(peer, domain, "signature", record))
                return
        self._convict(peer, domain, proof, out)
        for record in (proof.one, proof.other):
            self._take(peer, record, now, out)

    def _entry(self, number: int) -> tuple[Id, int, int]:
        """Return the entry of a held record in announcements and comparisons."""
        if self._variants and number in self._variants:
            return self._table.domains[number], self._versions[number], self._hash(number)
        return self._table.entries[number][self._versions[number]]

    def _hash(self, number: int) -> int:
        """The hash of the record held; 0 if none is."""
        version = self._version(number)
        if self._variants and number in self._variants:
            return self._table.hash_of(self._variants[number])
        return self._table.hashes[number][version] if version else 0

    def _store(self, record: DomainRecord, peer: Id, out: Outputs) -> None:
        if self._shares:
            self._unshare()
        table = self._table
        number, version = table.hold(record), record.version
        lacking = number + 1 - len(self._versions)
        if lacking > 0:
            self._versions.extend([0] * lacking)
        held, before = self._versions[number], self._hash(number)
        self._versions[number] = version
        after = table.hashes[number][version]
        first = table.records[number][version]
        if first is not record and first != record:
            self._variants[number] = record
            after = self._hash(number)
        elif self._variants:
            self._variants.pop(number, None)
        self.past.pop(record.domain, None)
        self._sums.change(table.leaf[number], before, after)
        if not held:
            if self.count < len(self._held):
                self._held[self.count] = number
            else:
                self._held.append(number)
            self.count += 1
            self._count(record, 1)
            out.append(DomainAdmitted(record.domain))
        self._fresh[number] = peer
        self._announce_soon(out)

    def _announce_soon(self, out: Outputs) -> None:
        if not self._announcing:
            self._announcing = True
            out.append(SetTimer(ANNOUNCE_DUE, ANNOUNCE_S))

    def _discard(self, number: int, out: Outputs, at: int | None = None) -> None:
        """Hold a domain no more. `at`: its place among the held, if known."""
        if self._shares:
            self._unshare()
        domain = self._table.domains[number]
        record = self.record(domain)
        if record is not None:
            self._count(record, -1)
            if self._table.sponsors[number]:
                self.past.add(record)
        self._sums.change(self._table.leaf[number], self._hash(number), 0)
        self._versions[number] = 0
        self._variants.pop(number, None)
        self._brought.pop(number, None)
        self.count -= 1
        self._held[self._held.index(number) if at is None else at] = self._held[self.count]
        self._fresh.pop(number, None)
        self.convictions.discard(domain)
        out.append(DomainExpired(domain))

    def _expire(self, now: float, out: Outputs) -> None:
        wall_s, table = self._wall_s(now), self._table
        for at in range(self.count - 1, -1, -1):
            number = self._held[at]
            record = self._variants.get(number) if self._variants else None
            if record is None:
                record = table.records[number][self._versions[number]]
            if record.expires_s <= wall_s:
                self._discard(number, out, at)
        for domain in [one for one, (until, _) in self._wanted.items() if until + WANT_S <= now]:
            del self._wanted[domain]
        for domain in [one for one, (_, record) in self._orphans.items() if record.expires_s <= wall_s]:
            del self._orphans[domain]
        table.forget(wall_s)

    def _announce(self, now: float, links: Sequence[Id], chance: Chance, out: Outputs) -> None:
        self._announcing = False
        fresh, self._fresh = self._fresh, {}
        window = int(now / RELAY_WINDOW_S)
        if window != self._window or len(self._relays) < len(self._versions):
            same = self._relays if window == self._window else b""
            self._window, self._relays = window, bytearray(same) + bytes(len(self._versions) - len(same))
        news = []
        for number, by in fresh.items():
            if self._relays[number] < RELAYS_MAX:
                self._relays[number] += 1
                news.append((by, self._entry(number)))
        proofs = self.convictions.relay()
        for peer in links if len(links) <= ANNOUNCE_LINKS else chance.sample(links, ANNOUNCE_LINKS):
            versions = [entry for by, entry in news if by != peer]
            for first in range(0, len(versions), LISTED_MAX):
                out.append(SendMessage(peer, News(tuple(versions[first : first + LISTED_MAX]))))
        for peer in links:
            out.extend(SendMessage(peer, proof) for by, proof in proofs if by != peer)
        if len(proofs) == PROOFS_RELAYED:
            self._announce_soon(out)

    # Comparison

    def _compared(self, peer: Id, message: Compare, now: float, out: Outputs) -> None:
        """Answer ranges that differ: with the fingerprints of their branches, or with their entries where these are few."""
        finer: list[tuple[Range, int]] = []
        listed: list[Range] = []
        entries: list[tuple[Id, int, int]] = []
        ranges = message.ranges[:RANGES_MAX]
        first = self._sums[0] % max(1, len(ranges))  # each comparison begins elsewhere, as its end may be left out
        for of in fingerprints.differing(self._sums, ranges[first:] + ranges[:first]):
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

    def _entries(self, of: Range) -> list[tuple[Id, int, int]]:
        table = self._table
        numbers = [number for leaf in fingerprints.leaves(of) for number in table.leaves[leaf]]
        return [self._entry(number) for number in numbers if self._version(number)]

    def _listed(self, peer: Id, message: RangeEntries, now: float, out: Outputs) -> None:
        theirs = {domain: (version, content) for domain, version, content in message.versions[:LISTED_MAX]}
        newer = []
        for of in dict.fromkeys(message.ranges[:RANGES_MAX]):
            if not fingerprints.is_leaf(of):
                continue
            for domain, version, content in self._entries(of):
                stated = theirs.get(domain, (0, 0))
                if version > stated[0] or (version == stated[0] and content != stated[1]):
                    newer.append(self.record(domain))
        wanted = []
        for domain, (version, content) in theirs.items():
            number = self._table.number.get(domain)
            held = self._version(number) if number is not None else 0
            if version > held or (version == held and number is not None and content != self._hash(number)):
                wanted.append(domain)
        self._send([record for record in newer if record is not None], peer, now, out)
        if wanted:
            out.append(SendMessage(peer, Want(tuple(wanted))))

    def _asked(self, peer: Id, message: Want, now: float, out: Outputs) -> None:
        domains = message.domains[:LISTED_MAX]
        found = [record for domain in domains if (record := self.record(domain)) is not None]
        left = (
            [domain for domain in domains if self.record(domain) is None][:ANSWERED_MAX]
            if len(found) < len(domains)
            else []
        )
        found += [record for domain in left if (record := self.past.recall(domain)) is not None]
        self._send(found, peer, now, out)

    def _send(self, records: list[DomainRecord], peer: Id, now: float, out: Outputs) -> None:
        """Send records, as many as the peer may have, and the proofs against their domains after them."""
        records = records[: self._allowance.take(peer, len(records), self.count, now)]
        for first in range(0, len(records), RECORDS_MAX):
            out.append(SendMessage(peer, Records(tuple(records[first : first + RECORDS_MAX]))))
        if self.convictions:
            proofs = (self.convictions.against(record.domain) for record in records)
            out.extend(SendMessage(peer, proof) for proof in proofs if proof is not None)


def accused(proof: Equivocation) -> Id | None:
    """The domain that signed both of two contradictory statements; None if they are none."""
    one, other = proof.one, proof.other
    if one.domain == other.domain:
        return one.domain if one.version == other.version and one != other else None
    first, second = one.sponsorship, other.sponsorship
    if first is None or second is None or first.newcomer != one.domain or second.newcomer != other.domain:
        return None
    if (first.sponsor, first.day, first.number) != (second.sponsor, second.day, second.number):
        return None
    return first.sponsor


_HANDLERS: dict[type, Any] = {
    News: DomainDirectory._news,
    Records: DomainDirectory._received,
    Compare: DomainDirectory._compared,
    RangeEntries: DomainDirectory._listed,
    Want: DomainDirectory._asked,
    Equivocation: DomainDirectory._proved,
}
MESSAGES = frozenset(_HANDLERS)
TIMERS = frozenset({RefreshDue, CompareDue, AnnounceDue, ExpireDue})
