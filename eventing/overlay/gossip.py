"""Gossip: many objects, each a small state of the whole federation or of a zone, spread in bounded messages that they share.

Every ROUND_S a domain sends FAN_OUT others one message each, which lives in the exchanges and beats that pass anyway: for each object the
digest of what is held, and offers of rows that are new here. Rows that the receiver lacks are requested and sent at once. A row is
offered OFFERS times by each domain that has received it (rumor mongering with a counter, without feedback; Demers et al., section 1.4:
with feedback 1 domain in 60 missed a row). Where digests differ, the two sides compare ranges, one object at a time and once a round, until they
have found the rows that differ. Nobody concludes from equal digests that others have converged: rounds never stop
(swift-distributed-actors#699).

Life of a row: its owner contributes (`Contribute`) -> signed, offered, requested, sent, merged -> refreshed by its owner before its lease
ends -> when the owner leaves or stays silent, it expires at every domain by its own date. Nobody can remove the row of another.

A row that contradicts another of the same version proves that its owner signed both. Both are kept and sent on as evidence, neither counts,
and `RowsConflict` reports it once.

Bytes: the refresh period grows with the number of contributors (`GossipObject.refresh_period_s`), so that the cost of an object stays
within what its definition states, whatever the size of the federation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from eventing.overlay import fingerprints
from eventing.overlay.byte_budget import ByteBudget
from eventing.overlay.fingerprints import Range
from eventing.overlay.gossip_messages import WANTS_MAX, GossipMessage, GossipPart, Outgoing, offer_bytes, packed
from eventing.overlay.gossip_object import LEASE_REFRESHES, GossipObject, GossipScope, RowChange, SignedRow, row_bytes
from eventing.overlay.gossip_rows import Merged, RowSet
from eventing.overlay.machine import Chance, Fired, Id, MessageReceived, SendMessage, SetTimer

ROUND_S = 8.0
"""The period of beats (`liveness.BEAT_S`), so that live messages need no exchange of their own."""
FAN_OUT = 3
"""Messages a round (chitchat: 3 live peers). Model: all of 10,000 domains in 11 rounds; 24 with 1, 14 with 2."""
OFFERS = 8
"""By each domain of each new row, to links in turn. With 12 links each, a domain of 7 links is missed by all once in 3^7 rows; it finds
the row by comparison. (With 6 offers once in 2^7.)"""
DRAWN_ROUNDS = 8
"""Every so many rounds one partner is drawn from the directory, about once a minute: links alone may be those of liars."""
WANT_S = 3.0
"""A requested row that does not arrive is requested again after this, of the next domain that offers it (as in the directory)."""
LIST_MAX = 16
"""Contributors of a range that are listed; larger ranges are divided."""
LISTED_MAX = 128  # bound: contributors listed in one answer; the others are compared in a later round
ANSWERS_MAX = 8  # bound: answers to one peer in a round; further messages are read, but not answered
TOO_SOON = 0.5
"""Share of the least time between two rows before which a newer row is held but not offered: relayed within the limit (lightning#5239)."""
FORMAT = 1


class Contribute(msgspec.Struct, frozen=True):
    """Command: contribute to an object, from now on. The row is signed at once, or when the last one is old enough.

    Attributes:
        renew: sign a row of this time, though the last one states the same.
    """

    object: str
    payload: bytes
    renew: bool = False


class Withdraw(msgspec.Struct, frozen=True):
    """Command: contribute no longer; the row leaves with its lease."""

    object: str


class RoundDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: send to some others."""


class RowsConflict(msgspec.Struct, frozen=True, gc=False):
    """Event: proof that a domain signed two different rows of one version."""

    object: str
    owner: Id
    rows: tuple[SignedRow, SignedRow]


class RowRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: a peer sent a row that it should have refused itself."""

    peer: Id
    object: str
    owner: Id
    why: str


class ContributorDeparted(msgspec.Struct, frozen=True, gc=False):
    """Event: the lease of a contributor's row has ended."""

    object: str
    owner: Id


class GossipPartners(Protocol):
    """The domains to gossip with."""

    def links(self) -> Sequence[Id]:
        """Peers of the links."""

    def draw(self, scope: GossipScope, chance: Chance) -> Id | None:
        """A domain drawn from the directory, of the own zone for GossipScope.ZONE; None if there is none."""

    def in_zone(self, peer: Id) -> bool:
        """Return True if a domain is in the own zone."""


ROUND_DUE = RoundDue()
Outputs = list[Any]
_REFUSED = frozenset({Merged.INVALID, Merged.SIGNATURE, Merged.TOO_LARGE, Merged.AHEAD_OF_TIME})
"""Refusals for faults that the sender could have found. Contributors that only one side knows, and leases that end meanwhile, are nobody's fault."""


class Gossip:
    """All gossip objects of one domain.

    Args:
        me: its id.
        definitions: the objects; names are unique.
        issue: makes an own row: (object, version, expires_s, payload) -> signed row.
        genuine: whether a row of an object is signed by its owner.
        known: whether the directory has a domain.
        key_hash: 64 well-mixed bits of a domain's name.
        started_s: wall clock, in seconds since 1970, at time 0 of `now`.

    Attributes:
        sets: rows by the name of their object.
    """

    def __init__(
        self,
        me: Id,
        definitions: Sequence[GossipObject],
        *,
        issue: Callable[[str, int, int, bytes], SignedRow],
        genuine: Callable[[str, SignedRow], bool],
        known: Callable[[Id], bool],
        key_hash: Callable[[Id], int],
        started_s: float = 0.0,
    ) -> None:
        self.me = me
        self.sets = {one.name: RowSet(one, key_hash, known, genuine) for one in definitions}
        self._issue = issue
        self._genuine = genuine
        self._started_s = started_s
        self._own: dict[str, bytes] = {}
        self._own_at: dict[str, tuple[float, float]] = {}  # when the own row was signed last, and its refresh period
        self._renewed: dict[str, None] = {}
        self._urgent: list[tuple[str, Id, Id]] = []
        self._fresh: dict[str, dict[Id, tuple[int, Id]]] = {one.name: {} for one in definitions}
        self._wanted: dict[tuple[str, Id], float] = {}
        self._budgets = {one.name: ByteBudget(one) for one in definitions}
        self._compared_at: dict[str, float] = {}
        self._answers: dict[Id, int] = {}
        self._rounds = 0
        self._turn = 0

    def begin(self, chance: Chance) -> Outputs:
        """Start the timer, at a random phase."""
        return [SetTimer(ROUND_DUE, ROUND_S * chance.random())]

    def handle(self, given: Any, now: float, chance: Chance, partners: GossipPartners) -> Outputs:
        """Take in a message, a timer or a command."""
        out: Outputs = []
        kind = type(given)
        if kind is MessageReceived and type(given.message) is GossipMessage:
            self._received(given.peer, given.message, now, chance, partners, out)
        elif kind is Fired and type(given.timer) is RoundDue:
            out.append(SetTimer(ROUND_DUE, ROUND_S * (0.95 + 0.1 * chance.random())))
            self._round(now, chance, partners, out)
        elif kind is Contribute and given.object in self.sets:
            self._own[given.object] = given.payload
            if given.renew:
                self._renewed[given.object] = None
            self._refresh(given.object, now)
        elif kind is Withdraw:
            self._own.pop(given.object, None)
        if self._urgent:
            self._offer_urgent(partners, out)
        return out

    def message_for(self, peer: Id, now: float, in_zone: bool) -> GossipMessage:
        """Make the message of a round for one peer: digests, and offers of what is new."""
        outgoing = []
        for name, of in self.sets.items():
            if in_zone or of.definition.scope is GossipScope.FEDERATION:
                one = Outgoing(of.definition)
                one.ranges = [(0, of.digest(self._wall_s(now)))]
                for owner, (_, source) in self._fresh[name].items():
                    if source != peer:
                        one.offers.append(of.offer(owner))
                outgoing.append(one)
        self._turn += 1
        message = packed(outgoing, self._turn)
        for part in message.parts:
            for offer in part.offers:
                self._offered(part.object, offer[0])
        return message

    # Storage

    def dump(self) -> dict[str, Any]:
        """Return the state as plain data."""
        rows = {name: [msgspec.structs.astuple(row) for row in of.rows.values()] for name, of in self.sets.items()}
        conflicts = {
            name: [tuple(msgspec.structs.astuple(row) for row in pair) for pair in of.conflicts.values()]
            for name, of in self.sets.items()
        }
        return {"format": FORMAT, "own": dict(self._own), "rows": rows, "conflicts": conflicts}

    def load(self, state: dict[str, Any]) -> None:
        """Take up a dumped state; rows of objects that exist no longer are left out, and another format is ignored."""
        if state.get("format") != FORMAT:
            return
        self._own = {name: payload for name, payload in state["own"].items() if name in self.sets}
        for name, of in self.sets.items():
            held = [(row,) for row in state["rows"].get(name, ())] + list(state["conflicts"].get(name, ()))
            for rows in held:
                of.hold(tuple(SignedRow(*row) for row in rows))

    # Rounds

    def _wall_s(self, now: float) -> float:
        return self._started_s + now

    def _round(self, now: float, chance: Chance, partners: GossipPartners, out: Outputs) -> None:
        self._rounds += 1
        self._answers.clear()
        self._wanted = {key: until for key, until in self._wanted.items() if until > now}
        for name, of in self.sets.items():
            for owner in of.expire(self._wall_s(now)):
                self._fresh[name].pop(owner, None)
                out.append(ContributorDeparted(name, owner))
            self._refresh(name, now)
        for peer in self._partners(chance, partners):
            out.append(SendMessage(peer, self.message_for(peer, now, partners.in_zone(peer))))

    def _partners(self, chance: Chance, partners: GossipPartners) -> list[Id]:
        links = partners.links()
        first = self._rounds * FAN_OUT
        chosen = dict.fromkeys(links[(first + at) % len(links)] for at in range(min(FAN_OUT, len(links))))
        drawn = [GossipScope.FEDERATION] if not chosen or self._rounds % DRAWN_ROUNDS == 0 else []
        if any(of.definition.scope is GossipScope.ZONE for of in self.sets.values()):
            drawn += [GossipScope.ZONE] * (FAN_OUT - sum(map(partners.in_zone, chosen)))
        for scope in drawn:
            peer = partners.draw(scope, chance)
            if peer is not None and peer != self.me:
                chosen[peer] = None
        return list(chosen)

    def _offered(self, name: str, owner: Id) -> None:
        """Count an offer of a new row; after OFFERS it is new no longer."""
        fresh = self._fresh[name]
        left, source = fresh.get(owner, (0, None))
        if left > 1:
            fresh[owner] = (left - 1, source)
        else:
            fresh.pop(owner, None)

    # Own rows

    def _refresh(self, name: str, now: float) -> None:
        """Sign the own row anew when it is due."""
        of = self.sets[name]
        payload = self._own.get(name)
        if payload is None or not of.definition.may_contribute(self.me, now):
            return
        held, signed = of.rows.get(self.me), self._own_at.get(name)
        if signed is not None:
            at, period_s = signed
            same = held is not None and held.payload == payload and name not in self._renewed
            if now < at + (period_s if same or of.definition.change_s is None else of.definition.spacing_s):
                return
        self._sign(name, payload, 0, now)

    def _sign(self, name: str, payload: bytes, above: int, now: float) -> None:
        """Sign a row that is newer than all known rows of this domain."""
        of = self.sets[name]
        self._renewed.pop(name, None)
        held = of.held(self.me)
        version = max(int(self._wall_s(now)), above + 1, held[0].version + 1 if held else 0)
        offer = offer_bytes((self.me, version, 0))
        size = row_bytes(held[0]) if held else of.definition.payload_bytes_max
        period_s = of.definition.refresh_period_s(len(of.rows), size + OFFERS * offer)
        expires_s = int(self._wall_s(now) + LEASE_REFRESHES * period_s)
        of.hold((self._issue(name, version, expires_s, payload),))
        self._own_at[name] = (now, period_s)
        self._is_new(of, self.me, self.me)

    def _is_new(self, of: RowSet, owner: Id, source: Id) -> None:
        """Offer a row from now on; an urgent one on all links at once."""
        self._fresh[of.definition.name][owner] = (OFFERS, source)
        if of.definition.urgent:
            self._urgent.append((of.definition.name, owner, source))

    def _offer_urgent(self, partners: GossipPartners, out: Outputs) -> None:
        urgent, self._urgent = self._urgent, []
        for peer in partners.links():
            found: dict[str, Outgoing] = {}
            for name, owner, source in urgent:
                of = self.sets[name]
                if source != peer and of.held(owner):
                    found.setdefault(name, Outgoing(of.definition)).offers.append(of.offer(owner))
            if found:
                out.append(SendMessage(peer, packed(list(found.values()), self._turn)))

    # Messages

    def _received(
        self,
        peer: Id,
        message: GossipMessage,
        now: float,
        chance: Chance,
        partners: GossipPartners,
        out: Outputs,
    ) -> None:
        answers = []
        in_zone = partners.in_zone(peer)
        for part in message.parts:
            of = self.sets.get(part.object)
            if of is None or (of.definition.scope is GossipScope.ZONE and not in_zone):
                continue
            answer = Outgoing(of.definition)
            self._take(peer, of, part, now, answer, out)
            self._want(of, part, now, answer)
            for owner, have in part.wants:
                answer.rows += of.delta(owner, have)
            self._compare(of, part, now, chance, answer)
            answers.append(answer)
        if any(answers) and self._answers.get(peer, 0) < ANSWERS_MAX:
            self._answers[peer] = self._answers.get(peer, 0) + 1
            self._turn += 1
            out.append(SendMessage(peer, packed(answers, self._turn)))

    def _take(self, peer: Id, of: RowSet, part: GossipPart, now: float, answer: Outgoing, out: Outputs) -> None:
        """Merge rows and changes of rows."""
        wall_s, name, budget = self._wall_s(now), part.object, self._budgets[part.object]
        rows: list[SignedRow | RowChange] = [*part.rows, *part.changes]
        for row in rows:
            if self._wanted.pop((name, row.owner), None) is None and budget.left(now) <= 0:
                continue
            budget.take(row_bytes(row))
            before = of.held(row.owner)
            if isinstance(row, SignedRow):
                if row.owner == self.me:
                    self._mine(of, row, now)
                    continue
                merged: Merged | None = of.merge(row, now, wall_s)
            else:
                merged = None if row.owner == self.me else of.merge_change(row, now, wall_s)
            if merged is None:
                answer.wants.append((row.owner, 0))
            elif merged is Merged.NEWER:
                if not before or row.version - before[0].version >= TOO_SOON * of.definition.spacing_s:
                    self._is_new(of, row.owner, peer)
            elif merged is Merged.CONFLICT:
                self._is_new(of, row.owner, peer)
                if len(before) < 2 or row.version > before[0].version:
                    out.append(RowsConflict(name, row.owner, of.conflicts[row.owner]))
            elif merged in _REFUSED:
                out.append(RowRefused(peer, name, row.owner, merged.value))

    def _mine(self, of: RowSet, row: SignedRow, now: float) -> None:
        """Answer a newer or contradictory row of this domain, from before a restart, with a newer one still."""
        held, name = of.held(self.me), of.definition.name
        payload = self._own.get(name)
        newer = not held or row.version > held[0].version or (row.version == held[0].version and row != held[0])
        if payload is not None and newer and self._genuine(name, row):
            self._sign(name, payload, row.version, now)

    def _want(self, of: RowSet, part: GossipPart, now: float, answer: Outgoing) -> None:
        """Request what is offered and lacking, once; first of contributors whose rows are oldest, so that those that sign ever new rows
        wait for the others."""
        name, wall_s = part.object, self._wall_s(now)
        lacking = []
        for owner, version, tag in part.offers:
            if (
                of.lacks(owner, version, tag)
                and now >= self._wanted.get((name, owner), 0.0)
                and of.accepts(owner, version, now, wall_s)
            ):
                held = of.held(owner)
                lacking.append((held[0].version if held and owner in of.rows else 0, owner))
        left, size = self._budgets[name].left(now), of.definition.payload_bytes_max // 2
        for have, owner in sorted(lacking, key=lambda one: one[0])[:WANTS_MAX]:
            if left <= 0:
                break
            left -= size
            self._wanted[name, owner] = now + WANT_S
            answer.wants.append((owner, have))

    def _compare(self, of: RowSet, part: GossipPart, now: float, chance: Chance, answer: Outgoing) -> None:
        """Answer ranges that differ, with the sums of their branches or a list; offer what a list lacks."""
        theirs = {owner: (version, tag) for owner, version, tag in part.offers}
        for owners in of.owners_of(part.listed).values():
            for offer in map(of.offer, owners):
                version, tag = theirs.get(offer[0], (0, 0))
                newer = offer[1] > version or (offer[1] == version and offer[2] != tag)
                if newer and len(answer.offers) < LISTED_MAX:
                    answer.offers.append(offer)
        if not part.ranges:
            return
        ours = of.digest(self._wall_s(now))
        if part.ranges == ((0, ours),) or not self._may_compare(part, now):
            return
        sums = of.sums_of(one for one, _ in part.ranges)
        differing = {one: their_sum for one, their_sum in part.ranges if sums[one] != their_sum}
        found = of.owners_of(differing)
        divided: list[Range] = []
        listed = 0
        for one in chance.sample(list(differing), len(differing)):
            entries = [of.offer(owner) for owner in found[one]]
            if differing[one] == 0 and entries:
                answer.offers += entries[: max(0, LISTED_MAX - listed)]
                listed += len(entries)
            elif (len(entries) <= LIST_MAX or not fingerprints.branches(one)) and listed + len(entries) <= LISTED_MAX:
                answer.lists.append((one, entries))
                listed += len(entries)
            elif len(divided) < 2 * fingerprints.BRANCHING:
                divided += fingerprints.branches(one)
        answer.ranges += sorted(of.sums_of(divided).items()) if divided else []

    def _may_compare(self, part: GossipPart, now: float) -> bool:
        """Return True if ranges are to be compared: those of an answer always, of the beginning of an exchange once a round."""
        if part.ranges[0][0] != 0:
            return True
        if now < self._compared_at.get(part.object, 0.0):
            return False
        self._compared_at[part.object] = now + ROUND_S
        return True


MESSAGES = frozenset({GossipMessage})
TIMERS = frozenset({RoundDue})
