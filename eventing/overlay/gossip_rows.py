"""State of one gossip object at one domain: rows by contributor, their digest, what others lack of them, and the merge of others' rows.

A row is accepted when its owner may contribute, it is newer, within its lease, and signed by its owner: cheap checks first. Rows leave by
their expiry only. Of contributors that have left, the last versions are remembered, so that a row that others still hold is not
requested again and again (Phoenix Tracker #135: endless transfers of what had expired on one side).

The digest is a sum of hashes over *settled* rows: per contributor its newest row of before the last full minute but two. Rows on their way
differ between domains at all times, and would make every comparison find differences; settled rows are equal unless one was lost.
Domains whose clocks differ by less than a minute use the same boundary nearly always; at other times a comparison finds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from eventing.overlay import fingerprints
from eventing.overlay.fingerprints import Range
from eventing.overlay.gossip_object import (
    LEASE_S_MAX,
    GossipObject,
    Offer,
    RowChange,
    Rows,
    SignedRow,
    merge_rows,
    rows_tag,
)
from eventing.overlay.machine import Id

AHEAD_S = 300.0  # bound: seconds that a row's version may be ahead of the own clock; the row is refused
SETTLE_STEP_S = 60
SETTLE_S = 120
"""Rows reach 10,000 domains in 11 rounds of 3 messages (model), 88 s; the others are found by comparison."""
# bound: contributors that have left, remembered; the oldest may be requested once more (chitchat: 500)
DEPARTED_MAX = 500
# bound: versions of one contributor that have not settled; the newest but one is left out of the digest
PENDING_MAX = 6
_MASK = (1 << 64) - 1


class Merged(Enum):
    """Results of merging a row."""

    NEWER = "newer"
    KNOWN = "known"
    CONFLICT = "conflict"
    NOT_A_CONTRIBUTOR = "not a contributor"
    TOO_MANY_ROWS = "too many rows"
    TOO_LARGE = "too large"
    AHEAD_OF_TIME = "ahead of time"
    EXPIRED = "expired"
    INVALID = "invalid payload"
    SIGNATURE = "signature"


class RowSet:
    """Rows of one object.

    Args:
        definition: the object.
        key_hash: 64 well-mixed bits of a domain's name.
        known: whether the directory has a domain.
        genuine: whether a row of an object is signed by its owner; called after all cheap checks.

    Attributes:
        rows: the newest row of each contributor whose rows do not contradict each other.
        conflicts: two contradictory rows of each contributor that signed such, as evidence.
    """

    def __init__(
        self,
        definition: GossipObject,
        key_hash: Callable[[Id], int],
        known: Callable[[Id], bool],
        genuine: Callable[[str, SignedRow], bool],
    ) -> None:
        self.definition = definition
        self.rows: dict[Id, SignedRow] = {}
        self.conflicts: dict[Id, tuple[SignedRow, SignedRow]] = {}
        self._changes: dict[Id, RowChange] = {}
        self._departed: dict[Id, int] = {}
        self._key_hash = key_hash
        self._known = known
        self._genuine = genuine
        self._tags: dict[Id, int] = {}
        self._settled: dict[Id, int] = {}
        self._pending: dict[Id, list[tuple[int, int]]] = {}
        self._boundary = 0
        self._sum = 0
        self._expiry_s = LEASE_S_MAX + 2**40
        self._watches: list[dict[Id, None]] = []

    def watch(self) -> dict[Id, None]:
        """Return a memory of the contributors whose rows change from now on, and of all present ones; the caller empties it."""
        self._watches.append(dict.fromkeys((*self.rows, *self.conflicts)))
        return self._watches[-1]

    # Merge

    def held(self, owner: Id) -> Rows:
        """Return what is held of a contributor."""
        row = self.rows.get(owner)
        return (row,) if row is not None else self.conflicts.get(owner, ())

    def merge(self, row: SignedRow, now: float, wall_s: float) -> Merged:
        """Merge a row that another domain sent."""
        held = self.held(row.owner)
        if held and (row.version < held[0].version or row in held):
            return Merged.KNOWN
        refused = self._problem(row, held, now, wall_s)
        if refused is not None:
            return refused
        merged = merge_rows(held, (row,))
        if merged == held:
            return Merged.KNOWN
        self.hold(merged)
        return Merged.NEWER if len(merged) == 1 else Merged.CONFLICT

    def merge_change(self, given: RowChange, now: float, wall_s: float) -> Merged | None:
        """Merge a row that was sent as a change; None if the row that it applies to is not held: the whole row is needed."""
        before = self.rows.get(given.owner)
        if before is not None and before.version >= given.version:
            return Merged.KNOWN
        if before is None or before.version != given.base:
            return None
        payload = self.definition.apply(before.payload, given.change)
        if payload is None or len(payload) > self.definition.payload_bytes_max:
            return Merged.INVALID
        merged = self.merge(
            SignedRow(given.owner, given.version, given.expires_s, payload, given.signature), now, wall_s
        )
        if merged is Merged.NEWER:
            self._changes[given.owner] = given
        return merged

    def hold(self, rows: Rows) -> None:
        """Hold checked rows of one contributor: an own one, or a merged one."""
        owner, version = rows[0].owner, rows[0].version
        for watch in self._watches:
            watch[owner] = None
        before = self.rows.pop(owner, None)
        self.conflicts.pop(owner, None)
        self._changes.pop(owner, None)
        if len(rows) == 1:
            self.rows[owner] = rows[0]
            if before is not None:
                change = self.definition.change(before.payload, rows[0].payload)
                if change is not None:
                    one = rows[0]
                    self._changes[owner] = RowChange(
                        owner, before.version, version, one.expires_s, change, one.signature
                    )
        else:
            self.conflicts[owner] = (rows[0], rows[1])
        self._expiry_s = min(self._expiry_s, *(row.expires_s for row in rows))
        tag = self._tags[owner] = rows_tag(rows)
        entry = fingerprints.entry_hash(self._key_hash(owner) ^ tag, version)
        if version < self._boundary:
            self._settle(owner, entry)
            self._pending.pop(owner, None)
        else:
            pending = self._pending.setdefault(owner, [])
            if (pending and pending[-1][0] == version) or len(pending) == PENDING_MAX:
                pending.pop()
            pending.append((version, entry))

    def _problem(self, row: SignedRow, held: Rows, now: float, wall_s: float) -> Merged | None:
        """Return why a row is refused; None if it is not."""
        ours = self.definition
        if len(row.payload) > ours.payload_bytes_max:
            return Merged.TOO_LARGE
        if row.version > wall_s + AHEAD_S or row.expires_s > wall_s + AHEAD_S + LEASE_S_MAX:
            return Merged.AHEAD_OF_TIME
        if row.expires_s <= wall_s:
            return Merged.EXPIRED
        if not held:
            if not self._contributes(row.owner, now):
                return Merged.NOT_A_CONTRIBUTOR
            if len(self.rows) + len(self.conflicts) >= ours.rows_max:
                return Merged.TOO_MANY_ROWS
        if not ours.valid(row.owner, row.payload):
            return Merged.INVALID
        return None if self._genuine(ours.name, row) else Merged.SIGNATURE

    def _contributes(self, owner: Id, now: float) -> bool:
        return self._known(owner) and self.definition.may_contribute(owner, now)

    # Digest

    def digest(self, wall_s: float) -> int:
        """Return the sum over all settled rows: equal at domains that hold the same."""
        boundary = int(wall_s) // SETTLE_STEP_S * SETTLE_STEP_S - SETTLE_S
        if boundary > self._boundary:
            self._boundary = boundary
            for owner, pending in list(self._pending.items()):
                settled = [entry for version, entry in pending if version < boundary]
                if settled:
                    self._settle(owner, settled[-1])
                    self._pending[owner] = pending[len(settled) :]
                    if not self._pending[owner]:
                        del self._pending[owner]
        return self._sum

    def sums_of(self, ranges: Iterable[Range]) -> dict[Range, int]:
        """Compute the sums of ranges. By a look at all rows: comparisons are few, and a tree per object would take more memory."""
        sums = dict.fromkeys(ranges, 0)
        if 0 in sums:
            sums[0] = self._sum
        for owner, entry in self._settled.items() if sums.keys() - {0} else ():
            for of in fingerprints.around(fingerprints.leaf_of(self._key_hash(owner))):
                if of in sums:
                    sums[of] = sums[of] + entry & _MASK
        return sums

    def owners_of(self, ranges: Iterable[Range]) -> dict[Range, list[Id]]:
        """Return the contributors of ranges."""
        owners: dict[Range, list[Id]] = {of: [] for of in ranges}
        held = (*self.rows, *self.conflicts) if owners else ()
        if 0 in owners:
            owners[0] += held
        if owners.keys() - {0}:
            for owner in held:
                for of in fingerprints.around(fingerprints.leaf_of(self._key_hash(owner))):
                    if of in owners:
                        owners[of].append(owner)
        return owners

    def _settle(self, owner: Id, entry: int) -> None:
        self._sum = self._sum + entry - self._settled.pop(owner, 0) & _MASK
        if entry:
            self._settled[owner] = entry

    # Delta

    def offer(self, owner: Id) -> Offer:
        """Make the offer of what is held of a contributor."""
        return owner, self.held(owner)[0].version, self._tags[owner]

    def lacks(self, owner: Id, version: int, tag: int) -> bool:
        """Return True if an offered row is newer than what is held, or contradicts it."""
        held = self.held(owner)
        if not held:
            return version > self._departed.get(owner, 0)
        return version > held[0].version or (version == held[0].version and tag != self._tags[owner])

    def accepts(self, owner: Id, version: int, now: float, wall_s: float) -> bool:
        """Return True if a row of a contributor could be merged: cheap checks before it is requested."""
        full = len(self.rows) + len(self.conflicts) >= self.definition.rows_max
        return version <= wall_s + AHEAD_S and (bool(self.held(owner)) or (not full and self._contributes(owner, now)))

    def delta(self, owner: Id, have: int) -> list[SignedRow | RowChange]:
        """Return what a domain needs that holds the version `have` of a contributor's row (0: none, or the whole row is wanted)."""
        held = self.held(owner)
        change = self._changes.get(owner)
        if change is not None and change.base == have:
            return [change]
        return list(held) if held and held[0].version >= have else []

    # Leases

    def expire(self, wall_s: float) -> list[Id]:
        """Remove rows whose lease has ended; return their contributors."""
        if wall_s < self._expiry_s:
            return []
        gone: list[Id] = []
        for owner in (*self.rows, *self.conflicts):
            held = self.held(owner)
            if max(row.expires_s for row in held) <= wall_s:
                gone.append(owner)
                for watch in self._watches:
                    watch[owner] = None
                self.rows.pop(owner, None)
                self.conflicts.pop(owner, None)
                self._changes.pop(owner, None)
                del self._tags[owner]
                self._pending.pop(owner, None)
                self._settle(owner, 0)
                self._departed.pop(owner, None)
                self._departed[owner] = held[0].version
                if len(self._departed) > DEPARTED_MAX:
                    del self._departed[next(iter(self._departed))]
        left = (row.expires_s for owner in (*self.rows, *self.conflicts) for row in self.held(owner))
        self._expiry_s = min(left, default=LEASE_S_MAX + 2**40)
        return gone
