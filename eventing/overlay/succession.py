"""Succession of an RP's home: the electors of a plan choose one of them when the home is silent for the stated time. Pure.

Elections as in Raft (Ongaro and Ousterhout, section 5.2): at most one vote of each elector in a term, stored before it is sent; the
majority elects. Unlike Raft an elector votes only if the home is silent for itself as well, so a candidate that is cut off
from the home gets no votes of those that are not (the pre-vote of Ongaro's thesis, section 9.6).

    the home answers a probe: `home_heard` -> probes stay unanswered: `home_missed` -> the stated silence has passed, and it
    is this elector's turn: `stand` -> the others are asked: `vote` -> the majority voted: elected; or the electors that are
    ahead state their term, and it stands again -> a hand-over is accepted: `term_accepted`

A change of the plan: the home signs the next version and asks the electors of the present one: `endorse` -> the majority endorsed: it is
in force. Where the home is lost in between, the electors that endorsed it, who vote by the older version no more (`bound`), complete it
in the home's place, as a leader of Paxos completes what may have been chosen (Lamport, Paxos Made Simple, section 2.2); or the others
elect a home in a higher term without them, after which the version cannot be completed, and they are bound by it no more.

In all functions `rules` are the plan, `me` is this elector, `standing` its state.

Laws: an elector votes for one payload in a term, whatever is repeated, lost or late. For each version of the plan, it either endorsed
the next one in the home's term, or lent its vote in a higher term, never both. So of two majorities of one electorate, one that completed
the next version and one that elected by this one, only one exists, and terms of two versions are never mixed. Silence is a duration on the elector's own clock
and unanswered probes: a clock that jumps, or a process that stood still, is no silence of the home. Only terms
cross between domains, never times. All times here are milliseconds of the elector's own clock.
"""

from __future__ import annotations

from typing import NamedTuple

from eventing.overlay.machine import Chance, Id

MISSES_MIN = (
    2  # unanswered probes in a row, besides the time: a process that stood still, or a clock that was set, misses none
)
PROBES = 5  # probes in the stated silence
PROBE_MS_MIN, PROBE_MS_MAX = 1000, 4000  # electors notice a silence within 4 s of each other
STEP_MS = 700  # between two electors' turns: an election takes less between connected electors
AGAIN_MS = 1000  # before standing again, and as much more by chance: electors that stood at once do not again
TERMS_AHEAD_MAX = 1000  # bound: terms that another elector may be ahead; what it states beyond is ignored


class SuccessionRules(NamedTuple):
    """The plan: electors in the order in which they succeed, and the silence of the home after which they do."""

    electors: tuple[Id, ...]
    silence_ms: int

    @property
    def quorum(self) -> int:
        """The majority of the electors."""
        return len(self.electors) // 2 + 1


class ElectorStanding(NamedTuple):
    """State of an elector, to be stored before anything that follows from it is sent.

    Attributes:
        term, voted: the highest term that it voted in or met, and the payload of its vote there; empty for none.
        heard_ms, misses: the home's last sign of life, and unanswered probes since.
        probed_ms: the last probe.
        stand_ms: no candidature before that.
        lent: the highest term that it voted in for another candidate. A vote for itself binds it less: nobody else can
            complete that candidature.
        plan_version, plan_term, plan_payload: the newest version of the plan that it endorsed, and the home's term in which it did.
    """

    term: int
    voted: bytes
    heard_ms: int
    misses: int
    probed_ms: int
    stand_ms: int
    lent: int = 0
    plan_version: int = 0
    plan_term: int = 0
    plan_payload: bytes = b""


class VoteOutcome(NamedTuple):
    """Outcome of a request for a vote: the state to store, and whether the vote is given."""

    standing: ElectorStanding
    votes: bool


def newcomer(now_ms: int) -> ElectorStanding:
    """Return the state of an elector that begins: the home's silence begins now."""
    return ElectorStanding(0, b"", now_ms, 0, 0, 0)


def home_heard(standing: ElectorStanding, now_ms: int) -> ElectorStanding:
    """Process a sign of life of the home."""
    return standing._replace(heard_ms=now_ms, misses=0, probed_ms=now_ms)


def home_missed(standing: ElectorStanding, now_ms: int) -> ElectorStanding:
    """Process an unanswered probe.

    Times that are later than now, because the clock was set back, count as now: else the elector waits until it is there again.
    """
    heard_ms, stand_ms = min(standing.heard_ms, now_ms), min(standing.stand_ms, now_ms + 2 * AGAIN_MS)
    return standing._replace(misses=standing.misses + 1, probed_ms=now_ms, heard_ms=heard_ms, stand_ms=stand_ms)


def term_accepted(standing: ElectorStanding, term: int, now_ms: int) -> ElectorStanding:
    """Process an accepted hand-over: the new home's silence begins now, and the term is over for votes."""
    heard = home_heard(standing, now_ms)._replace(stand_ms=0)
    return heard if term <= standing.term else heard._replace(term=term, voted=b"")


def term_met(standing: ElectorStanding, term: int) -> ElectorStanding:
    """Process the term that another elector states: the next candidature is beyond it."""
    if not standing.term < term <= standing.term + TERMS_AHEAD_MAX:
        return standing
    return standing._replace(term=term, voted=b"")


def probe_due(rules: SuccessionRules, standing: ElectorStanding, now_ms: int) -> bool:
    """Return whether the home is to be probed now."""
    every_ms = min(max(rules.silence_ms // PROBES, PROBE_MS_MIN), PROBE_MS_MAX)
    return not 0 <= now_ms - standing.probed_ms < every_ms


def silent(rules: SuccessionRules, standing: ElectorStanding, now_ms: int) -> bool:
    """Return whether the home is silent for this elector for the stated time."""
    return standing.misses >= MISSES_MIN and now_ms - standing.heard_ms >= rules.silence_ms


def bound(standing: ElectorStanding, version: int, present: int) -> bool:
    """Return whether this elector votes by no plan of this version: it endorsed a later one, which may be in force elsewhere.

    Args:
        version: of the plan in force.
        present: the present home's term. A home of a higher term than the endorsement's was elected, or voted for, by a majority
            that did not endorse: the version that was endorsed cannot be completed any more.
    """
    return standing.plan_version > version and standing.plan_term >= present


def stand(
    rules: SuccessionRules, me: Id, standing: ElectorStanding, present: int, now_ms: int, chance: Chance
) -> ElectorStanding | None:
    """Return the state with which this elector stands for election in `term`, for a payload that it is to vote for; None
    where it is not its turn.

    Args:
        present: the term of the silent home.
    """
    if me not in rules.electors or not silent(rules, standing, now_ms):
        return None
    turn_ms = standing.heard_ms + rules.silence_ms + rules.electors.index(me) * STEP_MS
    if now_ms < max(turn_ms, standing.stand_ms):
        return None
    again_ms = now_ms + AGAIN_MS + int(chance.random() * AGAIN_MS)
    return standing._replace(term=max(standing.term, present) + 1, voted=b"", stand_ms=again_ms)


def vote(
    rules: SuccessionRules,
    standing: ElectorStanding,
    *,
    present: int,
    term: int,
    payload: bytes,
    now_ms: int,
    version: int = 1,
    asked_by_home: bool = False,
    for_itself: bool = False,
) -> VoteOutcome:
    """Decide about a vote for a payload in a term. The same function answers whether a vote would be given: its state is not stored then.

    Args:
        present: the present home's term.
        version: of the plan in force.
        asked_by_home: whether the home itself asks, for a planned move: then its silence is no condition.
        for_itself: whether this elector is the candidate.
    """
    if bound(standing, version, present):
        return VoteOutcome(standing, False)
    if not max(standing.term, present + 1) <= term <= max(standing.term, present) + TERMS_AHEAD_MAX:
        return VoteOutcome(standing, False)
    if not asked_by_home and not silent(rules, standing, now_ms):
        return VoteOutcome(standing, False)
    if term == standing.term and standing.voted not in (b"", payload):
        return VoteOutcome(standing, False)
    lent = standing.lent if for_itself else max(standing.lent, term)
    return VoteOutcome(standing._replace(term=term, voted=payload, lent=lent), True)


def completes(standing: ElectorStanding, *, version: int, present: int, term: int) -> bool:
    """Return whether a candidate may become the home with the votes that it got: it voted for nobody else in a higher term meanwhile, and
    endorsed no later version of the plan."""
    return not bound(standing, version, present) and standing.lent <= term


def endorse(standing: ElectorStanding, *, version: int, term: int, payload: bytes, present: int) -> VoteOutcome:
    """Decide about the endorsement of the next version of the plan.

    Args:
        version, term, payload: of that version; `term` is of the home that signed it.
        present: the present home's term.
    """
    if term != present or standing.lent > term:
        return VoteOutcome(standing, False)
    if standing.plan_term >= term and (
        standing.plan_version > version or (standing.plan_version == version and standing.plan_payload != payload)
    ):
        return VoteOutcome(standing, False)
    return VoteOutcome(standing._replace(plan_version=version, plan_term=term, plan_payload=payload), True)
