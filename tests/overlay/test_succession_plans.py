"""Changes of a succession plan that meet elections, partitions and crashes: one home in each term, and nobody stays blocked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from eventing.overlay import succession
from eventing.overlay.succession import ElectorStanding, SuccessionRules
from tests.overlay.test_succession import SILENCE_MS, World

HOME = "a"


class Plan(NamedTuple):
    version: int
    term: int
    electors: tuple[str, ...]

    @property
    def rules(self) -> SuccessionRules:
        return SuccessionRules(self.electors, SILENCE_MS)

    @property
    def payload(self) -> bytes:
        return repr(tuple(self)).encode()


class HandOver(NamedTuple):
    """A hand-over; its previous one is the one before it in the record."""

    term: int
    home: str
    plan: int
    previous: int

    @property
    def payload(self) -> bytes:
        return repr(tuple(self)).encode()


class Record(NamedTuple):
    hand_overs: tuple[HandOver, ...]
    plans: tuple[Plan, ...]

    @property
    def home(self) -> str:
        return self.hand_overs[-1].home if self.hand_overs else HOME

    @property
    def term(self) -> int:
        return self.hand_overs[-1].term if self.hand_overs else 0

    @property
    def plan(self) -> Plan:
        return self.plans[-1]

    def prevails(self, held: Record) -> bool:
        """As eventing/rps/rules/home_terms.py: prevails."""
        both: tuple[tuple[Any, Any], ...] = ((self.hand_overs, held.hand_overs), (self.plans, held.plans))
        for mine, other in both:
            for one, two in zip(mine, other, strict=False):
                if one != two:
                    return (one.term, one.payload) > (two.term, two.payload)
            if len(mine) != len(other):
                return len(mine) > len(other)
        return False


@dataclass
class Domain:
    """What a domain stored (`standing`, `record`, `proposed`), and what it forgets in a crash."""

    standing: ElectorStanding
    record: Record
    skew_ms: int
    proposed: Plan | None = None
    given: dict[tuple[str, bytes], set[str]] = field(default_factory=dict)
    met: int = 0


class ChangingWorld(World):
    """The home changes its plan again and again; each time it may be lost between an elector's endorsement and the last one."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, electors=6)
        first = Plan(1, 0, self.some())
        self.domains: dict[str, Domain] = {}
        for name, node in self.nodes.items():
            self.domains[name] = Domain(node.standing, Record((), (first,)), node.skew_ms)
        self.payloads: dict[int, set[HandOver]] = {}
        self.plans: set[Plan] = set()
        self.changes = 0
        self.change_share = 0.15

    def some(self) -> tuple[str, ...]:
        return tuple(self.chance.sample(self.names[1:], self.chance.choice([2, 3, 3, 4, 5])))

    def now_of(self, name: str) -> int:
        return self.now + self.domains[name].skew_ms

    def crash(self, name: str) -> None:
        self.down.add(name)
        self.domains[name].given.clear()

    def follow(self, name: str, record: Record) -> None:
        domain = self.domains[name]
        for one in record.hand_overs:
            self.payloads.setdefault(one.term, set()).add(one)
        self.plans.update(record.plans)
        if record.prevails(domain.record):
            changed = record.term != domain.record.term
            domain.record = record
            if changed:
                domain.standing = succession.term_accepted(domain.standing, record.term, self.now_of(name))

    def tick(self, name: str) -> None:
        self.after(300 + self.chance.randrange(100), lambda: self.tick(name))
        if name in self.down:
            return
        domain = self.domains[name]
        for other in self.names:
            self.send(name, other, lambda other=other, record=domain.record: self.follow(other, record))
        if domain.record.home == name:
            self.change_plan(name, domain)
        elif name in domain.record.plan.electors:
            self.elect(name, domain)

    def change_plan(self, name: str, domain: Domain) -> None:
        record = domain.record
        plan = domain.proposed
        if plan is None or (plan.version, plan.term) != (record.plan.version + 1, record.term):
            if self.chance.random() > self.change_share:
                return
            others = tuple(one for one in self.some() if one != name)
            plan = Plan(record.plan.version + 1, record.term, others)
            if len(others) < 2 or plan.version > 20:
                return
            domain.proposed = plan
        if domain.met > record.term and self.chance.random() < 0.3:  # refused: electors lent their votes meanwhile
            renewed = HandOver(domain.met + 1, name, record.plan.version, record.term)
            domain.met = 0
            self.gather(name, renewed, "vote")
        self.gather(name, plan, "endorse")

    def elect(self, name: str, domain: Domain) -> None:
        record, now = domain.record, self.now_of(name)
        rules = record.plan.rules
        if succession.probe_due(rules, domain.standing, now):
            probed = succession.home_heard if self.reaches(name, record.home) else succession.home_missed
            domain.standing = probed(domain.standing, now)
        if not succession.silent(rules, domain.standing, now):
            return
        if succession.bound(domain.standing, record.plan.version, record.term):
            values: Any = eval(domain.standing.plan_payload)  # own repr
            self.gather(name, Plan(*values), "endorse")
            return
        stood = succession.stand(rules, name, domain.standing, record.term, now, self.chance)
        if stood is not None:
            domain.standing = domain.standing._replace(stand_ms=stood.stand_ms)
            self.gather(name, HandOver(stood.term, name, record.plan.version, record.term), "would")

    def gather(self, name: str, what: Plan | HandOver, kind: str) -> None:
        """Ask the electors of the plan in force, this domain among them."""
        record = self.domains[name].record
        for elector in record.plan.electors:
            if elector == name:
                self.asked(elector, name, what, kind, record)
            else:
                self.send(name, elector, lambda one=elector: self.asked(one, name, what, kind, record))

    def asked(self, name: str, by: str, what: Plan | HandOver, kind: str, record: Record) -> None:
        self.follow(name, record)
        domain = self.domains[name]
        held = domain.record
        if held != record or (held.home == name and by != name):
            return
        if isinstance(what, Plan):
            outcome = succession.endorse(
                domain.standing, version=what.version, term=what.term, payload=what.payload, present=held.term
            )
        else:
            outcome = succession.vote(
                held.plan.rules,
                domain.standing,
                present=held.term,
                term=what.term,
                payload=what.payload,
                now_ms=self.now_of(name),
                version=held.plan.version,
                asked_by_home=by == held.home,
                for_itself=by == name,
            )
        if kind != "would":
            domain.standing = outcome.standing
        met = domain.standing.term
        answer = (what, kind, outcome.votes, met, record)
        if by == name:
            self.answered(by, name, *answer)
        else:
            self.send(name, by, lambda: self.answered(by, name, *answer))

    def answered(
        self, name: str, elector: str, what: Plan | HandOver, kind: str, given: bool, met: int, record: Record
    ) -> None:
        domain = self.domains[name]
        if not given:
            domain.met = max(domain.met, met)
            domain.standing = succession.term_met(domain.standing, met)
            return
        agreed = domain.given.setdefault((kind, what.payload), set())
        agreed.add(elector)
        if domain.record != record or len(agreed) < record.plan.rules.quorum:
            return
        if isinstance(what, Plan):
            self.changes += 1
            self.follow(name, Record(record.hand_overs, (*record.plans, what)))
        elif kind == "would":
            domain.given.pop((kind, what.payload))
            self.gather(name, what, "vote")
        elif succession.completes(domain.standing, version=what.plan, present=record.term, term=what.term):
            self.follow(name, Record((*record.hand_overs, what), record.plans))

    def lawful(self) -> bool:
        """Return whether each term has one home, and no plan is in force that its former electors had elected a home before."""
        passed_over = {(one.plan + 1, one.previous) for homes in self.payloads.values() for one in homes}
        both = passed_over & {(plan.version, plan.term) for plan in self.plans}
        return not both and all(len(homes) == 1 for homes in self.payloads.values())

    def disturb(self) -> None:
        super().disturb()
        for name in sorted(self.down):
            self.crash(name)

    def begin(self) -> None:
        for name in self.names:
            self.tick(name)


def test_an_endorsement_binds_until_a_home_was_elected_without_it() -> None:
    standing = succession.endorse(succession.newcomer(0), version=2, term=3, payload=b"p", present=3).standing
    assert succession.bound(standing, 1, 3)
    assert not succession.bound(standing, 2, 3), "it is in force"
    assert not succession.bound(standing, 1, 4), "it cannot be completed any more"
    assert not succession.endorse(standing, version=2, term=3, payload=b"q", present=3).votes
    assert succession.endorse(standing, version=2, term=4, payload=b"q", present=4).votes


def test_an_elector_that_lent_its_vote_in_a_higher_term_endorses_no_plan_of_the_home_before() -> None:
    rules, silent = SuccessionRules(("b", "c"), SILENCE_MS), succession.newcomer(0)._replace(misses=2)
    request: dict[str, Any] = {"present": 0, "term": 1, "payload": b"h", "now_ms": SILENCE_MS}
    plan: dict[str, Any] = {"version": 2, "term": 0, "payload": b"p", "present": 0}
    lent = succession.vote(rules, silent, **request).standing
    assert not succession.endorse(lent, **plan).votes
    own = succession.vote(rules, silent, **request, for_itself=True).standing
    assert succession.completes(own, version=1, present=0, term=1)
    endorsed = succession.endorse(own, **plan)
    assert endorsed.votes
    assert not succession.completes(endorsed.standing, version=1, present=0, term=1), "its candidature is given up"


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 1000), marks=[pytest.mark.long, pytest.mark.soak])], ids=str
)
def test_plans_that_change_during_elections_never_make_two_homes_in_a_term(seeds: range) -> None:
    changes = terms = 0
    for seed in seeds:
        world = ChangingWorld(seed)
        world.begin()
        for _ in range(5):
            world.disturb()
            world.run(world.now + 3000 + world.chance.randrange(9000))
        world.heal()
        world.change_share = 0.0
        world.run(world.now + 4000)
        assert world.lawful(), (seed, world.payloads, world.plans)
        assert len({domain.record for domain in world.domains.values()}) == 1, seed
        changes, terms = changes + world.changes, terms + len(world.payloads)
    assert changes > len(seeds), "plans did change"
    assert terms > len(seeds) // 3, "there were elections to go wrong"


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 500), marks=pytest.mark.long)], ids=str)
def test_an_elector_whose_home_died_before_the_last_signature_does_not_stay_blocked(seeds: range) -> None:
    """The home dies for good at any step of a change; all others are there."""
    blocked = 0
    for seed in seeds:
        world = ChangingWorld(seed)
        world.begin()
        world.run(1000)
        world.change_share = 1.0
        world.loss = 0.5
        gone_at = world.now + world.chance.randrange(1500)
        world.run(gone_at)
        world.crash(HOME)
        world.loss, world.change_share = 0.0, 0.0
        domains = {name: world.domains[name] for name in world.names[1:]}
        blocked += any(
            succession.bound(one.standing, one.record.plan.version, one.record.term) for one in domains.values()
        )
        world.run(gone_at + SILENCE_MS + 10_000)
        homes = {one.record.home for one in domains.values()}
        assert len(homes) == 1, (seed, homes)
        assert HOME not in homes, seed
        assert world.lawful(), seed
    assert blocked > len(seeds) // 5, "there were electors to stay blocked"
