"""Scores: how well a link served a region (RPs with the same participants), by own observation only; and what follows from it.

Scores are local and never sent. Each is kept per region and peer, and decays with a half-life of HALF_LIFE_S. Every deed has a weight and
a bound (WEIGHTS); the sum lies between FLOOR and GOOD_MAX. Laws:

- Good deeds are worth GOOD_MAX at most, and every kind of fault alone outweighs them by far. Under other weights, peers forward nothing on
  a topic for ever and keep a positive score (CVE-2022-47547, arXiv 2311.08859).
- A good score in one region pays for nothing in another: what concerns the link as a whole follows from its worst region.
- A peer answers only for what it could have done better: deeds that a sender cannot know to be wrong have no weight here
  (tari-ootle#2367: a partition made by oneself).
- A deficit of deliveries is measured against the version vectors of the other links of the region, never against a constant rate; and only
  by what this domain holds itself by now, so that claims of events that do not exist count for nothing.
- A full send queue is a deficit of this domain first: when many queues are full, nobody is scored; a single one counts only after
  QUEUE_PATIENCE_S.
- Every score has an effect, every effect is an output with its reason, and a test fails if nothing reads it (lambdaclass/ethlambda#589: both
  reactions to a full queue existed, and nothing called them).

Effects, by the score of the region: eager links become lazy (`Demoted`), the peer is not chosen (`NotChosen`), the link is dropped with a
back-off (`Condemned`). A peer whose score has recovered is given its place back (`Pardoned`). Approved peers (anchors) are not dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

from eventing.core.events.vectors import Vector
from eventing.overlay.machine import Chance, Fired, Id, SetTimer

GOOD_MAX = 1.0
FLOOR = -10.0
HALF_LIFE_S = 600.0
"""Of every deed (gossipsub decays by 0.9 a second at short terms; Filecoin keeps scores for 6 h; guess between)."""
LOOK_S = 30.0
"""Between two looks at effects."""
DEMOTED_AT, NOT_CHOSEN_AT, CONDEMNED_AT = -1.0, -3.0, -6.0
"""Scores below which an effect begins (guess; of the -10 possible)."""
PARDON = 0.5
"""Share of a threshold to which a score must recover until its effect ends."""
BACK_OFF_S = 60.0
"""Of a condemned link, doubled each time (gossipsub: 60 s)."""
BACK_OFF_S_MAX = 3600.0  # bound: seconds that a condemned peer gets no link; it may have one again
QUEUE_PATIENCE_S = 60.0
OWN_QUEUES = 0.5
"""Share of links with a full queue above which this domain is the slow one."""
LINKS_MIN = 3
"""Links of a region needed for a comparison of vectors: the median of fewer is one peer's word."""
SCORED_MAX = 4096  # bound: pairs of region and peer that are scored; the one with the oldest deed is forgotten
FORMAT = 1


class Deed(Enum):
    """Kinds of behaviour of a peer on a link."""

    FIRST = "delivered an event first"
    INVALID = "sent what it could have found invalid"
    BROKEN_PROMISE = "did not send what it announced and was asked for"
    SILENT = "did not send, as an eager link, what it held"
    FLAPPING = "grafted again within the back-off"
    DEFICIT = "lacks events that the other links delivered"
    SLOW = "did not take what was sent"


class Weight(msgspec.Struct, frozen=True):
    """Weight of a deed, how many are free (decaying as well), and the most that deeds of the kind amount to."""

    each: float
    most: float
    free: float = 0.0


WEIGHTS: dict[Deed, Weight] = {
    Deed.FIRST: Weight(0.02, GOOD_MAX),
    Deed.INVALID: Weight(-2.5, -10.0),
    Deed.BROKEN_PROMISE: Weight(-0.5, -8.0, 2.0),
    Deed.SILENT: Weight(-0.5, -8.0, 2.0),
    Deed.FLAPPING: Weight(-0.5, -8.0, 3.0),
    Deed.DEFICIT: Weight(-1.0, -8.0, 1.0),
    Deed.SLOW: Weight(-1.0, -8.0),
}
"""Guesses, under the laws above. DEFICIT counts shares: 1 for a look at which the peer lacked all that was new."""


# Inputs


class Noted(msgspec.Struct, frozen=True, gc=False):
    """Input: a peer did something."""

    region: str
    peer: Id
    deed: Deed
    count: int = 1


class VectorsShown(msgspec.Struct, frozen=True, gc=False):
    """Input: what the links of a region hold, as their peers state; once a LOOK_S.

    Attributes:
        ours: own vector.
        theirs: of each link that is eager in the region.
        others: of the region's other links.
    """

    region: str
    ours: Vector
    theirs: Mapping[Id, Vector]
    others: Mapping[Id, Vector] = {}


class QueuesFull(msgspec.Struct, frozen=True, gc=False):
    """Input: links whose send queue is full now, each with the region of what waits; and the number of all links."""

    full: tuple[tuple[str, Id], ...]
    links: int


# Effects


class Demoted(msgspec.Struct, frozen=True, gc=False):
    """Effect: eager links of the region with the peer become lazy."""

    region: str
    peer: Id
    score: float
    reason: str


class NotChosen(msgspec.Struct, frozen=True, gc=False):
    """Effect: the peer is not chosen in the region, for links, grafts and replicas."""

    region: str
    peer: Id
    score: float
    reason: str


class Condemned(msgspec.Struct, frozen=True, gc=False):
    """Effect: the link is dropped as quarantine, and the peer gets none for a time."""

    region: str
    peer: Id
    score: float
    reason: str
    back_off_s: float


class Pardoned(msgspec.Struct, frozen=True, gc=False):
    """Effect: an effect has ended; `of` names it."""

    region: str
    peer: Id
    score: float
    of: str


class OwnQueuesFull(msgspec.Struct, frozen=True, gc=False):
    """Effect: so many queues are full that this domain sends more than it can; no peer is scored for it."""

    full: int
    links: int


class ScoresDue(msgspec.Struct, frozen=True, gc=False):
    """Timer: look at scores."""


SCORES_DUE = ScoresDue()
Outputs = list[Any]
EFFECTS = (Demoted, NotChosen, Condemned, Pardoned, OwnQueuesFull)
LEVELS: tuple[tuple[float, type[Any]], ...] = (
    (DEMOTED_AT, Demoted),
    (NOT_CHOSEN_AT, NotChosen),
    (CONDEMNED_AT, Condemned),
)


class LinkAccount(msgspec.Struct, gc=False):
    """Deeds of one peer in one region.

    Attributes:
        deeds: decayed counts, as of `at`.
        in_force: names of effects.
        times: how often the link was condemned.
    """

    at: float
    deeds: dict[str, float] = {}
    in_force: tuple[str, ...] = ()
    times: int = 0

    def decay(self, now: float) -> None:
        """Bring the counts to a time."""
        factor = 0.5 ** (max(0.0, now - self.at) / HALF_LIFE_S)
        self.deeds = {deed: count * factor for deed, count in self.deeds.items() if count * factor > 0.01}
        self.at = now

    def part(self, deed: Deed) -> float:
        """Return what one kind of deed adds to the score."""
        weight = WEIGHTS[deed]
        amount = weight.each * max(0.0, self.deeds.get(deed.name, 0.0) - weight.free)
        return min(amount, weight.most) if weight.most > 0 else max(amount, weight.most)

    @property
    def score(self) -> float:
        """The sum of all kinds of deeds, within bounds."""
        return max(FLOOR, min(GOOD_MAX, sum(map(self.part, Deed))))

    @property
    def reason(self) -> str:
        """The fault that weighs most."""
        return min(Deed, key=self.part).value


class Scores:
    """Scores of one domain's links.

    Attributes:
        accounts: by region and peer.
    """

    def __init__(self) -> None:
        self.accounts: dict[tuple[str, Id], LinkAccount] = {}
        self._until: dict[Id, float] = {}
        self._held: dict[
            str, tuple[dict[str, int], dict[str, int]]
        ] = {}  # own vectors at the last look and the one before
        self._full_since: dict[tuple[str, Id], float] = {}

    def begin(self, chance: Chance) -> Outputs:
        """Start the timer, at a random phase."""
        return [SetTimer(SCORES_DUE, LOOK_S * chance.random())]

    def handle(self, given: Any, now: float, chance: Chance) -> Outputs:
        """Take in an observation or the timer."""
        out: Outputs = []
        kind = type(given)
        if kind is Noted:
            self._note(given.region, given.peer, given.deed, given.count, now, out)
        elif kind is VectorsShown:
            self._compare(given, now, out)
        elif kind is QueuesFull:
            self._queues(given, now, out)
        elif kind is Fired and type(given.timer) is ScoresDue:
            out.append(SetTimer(SCORES_DUE, LOOK_S * (0.95 + 0.1 * chance.random())))
            for region, peer in list(self.accounts):
                self._judge(region, peer, now, out)
            self._until = {peer: until for peer, until in self._until.items() if until > now}
        return out

    # What others read

    def score(self, region: str, peer: Id) -> float:
        """Return the score of a peer in a region; 0 for one without deeds."""
        account = self.accounts.get((region, peer))
        return account.score if account is not None else 0.0

    def allows(self, effect: type[Any], region: str, peer: Id) -> bool:
        """Return False while an effect on a peer is in force in a region."""
        account = self.accounts.get((region, peer))
        return account is None or effect.__name__ not in account.in_force

    def held_back(self, peer: Id, now: float) -> bool:
        """Return True while a condemned peer gets no link."""
        return self._until.get(peer, 0.0) > now

    def held_back_s(self, peer: Id, now: float) -> int:
        """Return the seconds for which a condemned peer gets no link yet."""
        return max(0, math.ceil(self._until.get(peer, now) - now))

    def dump(self, now: float = 0.0) -> dict[str, Any]:
        """Return the state as plain data, without what the next look finds anew; times are relative to `now`."""
        accounts = [
            [region, peer, of.at - now, dict(of.deeds), list(of.in_force), of.times]
            for (region, peer), of in self.accounts.items()
        ]
        return {
            "format": FORMAT,
            "accounts": accounts,
            "until": {peer: until - now for peer, until in self._until.items()},
        }

    def load(self, state: dict[str, Any], now: float = 0.0) -> None:
        """Take up a state that was dumped at `now`, on the clock of this machine; another format is ignored."""
        if state.get("format") == FORMAT:
            for region, peer, at, deeds, in_force, times in state["accounts"]:
                self.accounts[region, peer] = LinkAccount(at + now, dict(deeds), tuple(in_force), times)
            self._until = {peer: until + now for peer, until in state["until"].items()}

    # Observations

    def _note(self, region: str, peer: Id, deed: Deed, count: float, now: float, out: Outputs) -> None:
        account = self.accounts.pop((region, peer), None) or LinkAccount(now)
        account.decay(now)
        limit = abs(WEIGHTS[deed].most / WEIGHTS[deed].each) + WEIGHTS[deed].free
        account.deeds[deed.name] = min(account.deeds.get(deed.name, 0.0) + count, limit)
        self.accounts[region, peer] = account
        if len(self.accounts) > SCORED_MAX:
            del self.accounts[next(iter(self.accounts))]
        if WEIGHTS[deed].each < 0:
            self._judge(region, peer, now, out)

    def _compare(self, shown: VectorsShown, now: float, out: Outputs) -> None:
        """Note the share that each eager link lacks of what was new at the last look: a whole LOOK_S was time to deliver it."""
        vectors = {**shown.others, **shown.theirs}
        latest, earlier = self._held.pop(shown.region, ({}, {}))
        feeds = sorted(shown.ours)
        for peer, have in shown.theirs.items():
            others = [vector for other, vector in vectors.items() if other != peer]
            if len(others) < LINKS_MIN - 1:
                continue
            new = lacking = 0
            for feed in feeds:
                expected = min(latest.get(feed, 0), _median([vector.get(feed, 0) for vector in others]))
                fresh = max(0, expected - earlier.get(feed, expected))
                new += fresh
                lacking += min(fresh, max(0, expected - have.get(feed, 0)))
            if new:
                self._note(shown.region, peer, Deed.DEFICIT, lacking / new, now, out)
        self._held[shown.region] = (dict(shown.ours), latest)
        if len(self._held) > SCORED_MAX:
            del self._held[next(iter(self._held))]

    def _queues(self, given: QueuesFull, now: float, out: Outputs) -> None:
        since = {key: self._full_since.get(key, now) for key in given.full}
        if given.links and len({peer for _, peer in given.full}) > OWN_QUEUES * given.links:
            out.append(OwnQueuesFull(len(given.full), given.links))
            since = dict.fromkeys(since, now)
        for key, at in since.items():
            if now - at >= QUEUE_PATIENCE_S:
                since[key] = now
                self._note(*key, Deed.SLOW, 1, now, out)
        self._full_since = since

    # Effects

    def _judge(self, region: str, peer: Id, now: float, out: Outputs) -> None:
        """Begin and end effects by the score of now."""
        account = self.accounts[region, peer]
        account.decay(now)
        score = account.score
        for threshold, effect in LEVELS:
            name = effect.__name__
            if name not in account.in_force and score <= threshold:
                account.in_force += (name,)
                if effect is Condemned:
                    back_off_s = min(BACK_OFF_S * 2.0 ** min(account.times, 16), BACK_OFF_S_MAX)
                    account.times += 1
                    self._until[peer] = max(now + back_off_s, self._until.get(peer, 0.0))
                    out.append(Condemned(region, peer, score, account.reason, back_off_s))
                else:
                    out.append(effect(region, peer, score, account.reason))
            elif name in account.in_force and score <= threshold * PARDON:
                if effect is Condemned:
                    self._until[peer] = max(now + 2 * LOOK_S, self._until.get(peer, 0.0))
            elif name in account.in_force and not (effect is Condemned and self.held_back(peer, now)):
                account.in_force = tuple(one for one in account.in_force if one != name)
                out.append(Pardoned(region, peer, score, name))
        if not account.deeds and not account.in_force:
            del self.accounts[region, peer]


def _median(of: list[int]) -> int:
    """Return the lower median."""
    return sorted(of)[(len(of) - 1) // 2] if of else 0


TIMERS = frozenset({ScoresDue})
