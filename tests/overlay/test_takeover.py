"""Takeover between the holders of a shared subscription: what the laws promise, whatever the network and the clocks do."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from eventing.core.events import vectors
from eventing.overlay import takeover
from eventing.overlay.takeover import TERM_MAX, DeliveryLine, HolderStanding, TakeoverRules

LEASE_MS = 9000
RULES = TakeoverRules(("a", "b", "c"), LEASE_MS)


def test_who_creates_it_delivers_and_renews_every_third_of_the_lease() -> None:
    standing = takeover.first(RULES, "a", 1000)
    assert takeover.delivers(standing, "a", 1000)
    assert takeover.tick(RULES, "a", standing, 3999) == standing
    assert takeover.tick(RULES, "a", standing, 4000) == HolderStanding(1, "a", 2, 4000 + LEASE_MS)


def test_the_next_in_order_takes_over_only_after_the_lease_has_lapsed_and_in_its_turn() -> None:
    heard = {
        me: takeover.on_line(RULES, me, takeover.newcomer(RULES, 0), DeliveryLine(1, "a", 1, LEASE_MS), 0)
        for me in ("b", "c")
    }
    step = LEASE_MS // 4
    assert takeover.tick(RULES, "b", heard["b"], LEASE_MS + step - 1) == heard["b"]
    took = takeover.tick(RULES, "b", heard["b"], LEASE_MS + step)
    assert (took.term, took.deliverer) == (2, "b")
    assert takeover.tick(RULES, "c", heard["c"], LEASE_MS + step) == heard["c"], "its turn is later"
    c = takeover.on_line(RULES, "c", heard["c"], DeliveryLine(2, "b", 1, LEASE_MS), LEASE_MS + step)
    assert takeover.elsewhere(c, "c", LEASE_MS + step) == "b"


def test_a_holder_that_comes_back_stands_down_for_the_higher_term() -> None:
    standing = takeover.first(RULES, "a", 0)
    back = takeover.tick(RULES, "a", standing, LEASE_MS + 1)
    assert not takeover.delivers(back, "a", LEASE_MS + 1), "its own lease lapsed while it was away"
    back = takeover.on_line(RULES, "a", back, DeliveryLine(2, "b", 1, LEASE_MS), LEASE_MS + 2)
    assert takeover.elsewhere(back, "a", LEASE_MS + 2) == "b"


def test_who_is_to_ask_the_others_first_is_who_would_take_over() -> None:
    known, turn = HolderStanding(1, "a", 1, LEASE_MS), LEASE_MS + LEASE_MS // 4
    assert not takeover.takes_over(RULES, "b", known, turn - 1)
    assert takeover.takes_over(RULES, "b", known, turn)
    assert not takeover.takes_over(RULES, "a", known, 4000), "a renews what is its own"
    assert takeover.takes_over(RULES, "a", known, 2 * LEASE_MS), "its own lapsed while it stood still"
    assert not takeover.takes_over(RULES, "b", HolderStanding(TERM_MAX, "a", 1, 0), turn)


def test_a_repeated_or_older_line_prolongs_nothing() -> None:
    known = takeover.on_line(RULES, "b", takeover.newcomer(RULES, 0), DeliveryLine(3, "c", 5, LEASE_MS), 100)
    for line in (
        DeliveryLine(3, "c", 5, LEASE_MS),
        DeliveryLine(3, "c", 4, LEASE_MS),
        DeliveryLine(2, "a", 99, LEASE_MS),
    ):
        assert takeover.on_line(RULES, "b", known, line, 5000) == known


def test_a_line_that_states_more_than_the_lease_counts_for_the_lease() -> None:
    known = takeover.on_line(RULES, "b", takeover.newcomer(RULES, 0), DeliveryLine(1, "a", 1, 10**12), 0)
    assert known.until_ms == LEASE_MS


def test_a_line_of_somebody_who_is_no_holder_or_of_no_term_changes_nothing() -> None:
    known = takeover.newcomer(RULES, 0)
    for line in (DeliveryLine(7, "mallory", 1, 1), DeliveryLine(0, "a", 1, 1), DeliveryLine(TERM_MAX + 1, "a", 1, 1)):
        assert takeover.on_line(RULES, "b", known, line, 0) == known


def test_two_that_took_over_at_once_agree_on_the_earlier_in_the_order() -> None:
    b, c = HolderStanding(2, "b", 1, 9000), HolderStanding(2, "c", 7, 9000)
    assert takeover.on_line(RULES, "c", c, DeliveryLine(2, "b", 1, 9000), 10).deliverer == "b"
    assert takeover.on_line(RULES, "b", b, DeliveryLine(2, "c", 7, 9000), 10) == b


def test_a_holder_that_lost_its_memory_learns_its_old_term_and_does_not_deliver_by_it() -> None:
    known = takeover.on_line(RULES, "a", takeover.newcomer(RULES, 0), DeliveryLine(4, "a", 9, LEASE_MS), 10)
    assert (known.term, known.beat) == (4, 9)
    assert not takeover.delivers(known, "a", 10)
    assert takeover.tick(RULES, "a", known, 10 + 3 * LEASE_MS // 4).term == 5, "last in the order, it had lapsed"


def test_a_clock_that_is_set_back_stops_no_renewal_and_no_takeover() -> None:
    mine = takeover.tick(RULES, "a", HolderStanding(1, "a", 1, 10**9), 0)
    assert mine.until_ms == LEASE_MS
    other = takeover.tick(RULES, "b", HolderStanding(1, "a", 1, 10**9), 0)
    assert takeover.tick(RULES, "b", other, LEASE_MS * 2).deliverer == "b"


NAMES = ["a", "b", "c", "d"]
TICK_MS = 500


class Holder:
    """A holder as the live code runs it: it ticks, says its line, takes lines in, and takes acknowledgements if it delivers."""

    def __init__(self, name: str, rules: TakeoverRules, skew_ms: int) -> None:
        self.name, self.rules, self.skew_ms = name, rules, skew_ms
        self.alive = True
        self.acked: dict[str, int] = {}
        self.standing = HolderStanding(0, "", 0, 0)

    def question(self, now: int) -> tuple[DeliveryLine, dict[str, int]] | None:
        """What it asks the others before it takes over."""
        asks = takeover.takes_over(self.rules, self.name, self.standing, now + self.skew_ms)
        return (DeliveryLine(0, self.name, 1, 0), dict(self.acked)) if asks else None

    def tick(self, now: int) -> tuple[DeliveryLine, dict[str, int]] | None:
        """Its line, if it delivers and has something new to say."""
        before, now = self.standing, now + self.skew_ms
        self.standing = takeover.tick(self.rules, self.name, before, now)
        if self.standing == before or not takeover.delivers(self.standing, self.name, now):
            return None
        return self.line(now), dict(self.acked)

    def line(self, now: int) -> DeliveryLine:
        """What it would say now of whoever delivers, on its own clock."""
        term, deliverer, beat, until = self.standing
        return DeliveryLine(term, deliverer, beat, until - now)

    def hear(self, line: DeliveryLine, acked: dict[str, int], now: int) -> tuple[DeliveryLine, dict[str, int]] | None:
        """Take in a line; its answer, if it knows better."""
        now += self.skew_ms
        self.acked = vectors.merged(self.acked, acked)
        self.standing = takeover.on_line(self.rules, self.name, self.standing, line, now)
        if (self.standing.term, self.standing.deliverer) != (line.term, line.deliverer):
            return self.line(now), dict(self.acked)
        return None if vectors.covers(acked, self.acked) else (DeliveryLine(0, self.name, 1, 0), dict(self.acked))

    def delivers(self, now: int) -> bool:
        """Whether it would serve the subscriber."""
        return self.alive and takeover.delivers(self.standing, self.name, now + self.skew_ms)


class Succession(RuleBasedStateMachine):
    """Two to four holders with clocks of their own; crashes, partitions, lines lost, late and repeated."""

    @initialize(count=st.integers(2, 4), skews=st.lists(st.integers(-(10**6), 10**6), min_size=4, max_size=4))
    def create(self, count: int, skews: list[int]) -> None:
        """The subscription is created at the first."""
        rules = TakeoverRules(tuple(NAMES[:count]), LEASE_MS)
        self.now = 10**7
        self.holders = [Holder(name, rules, skew) for name, skew in zip(NAMES[:count], skews, strict=False)]
        for holder in self.holders:
            holder.standing = takeover.newcomer(rules, self.now + holder.skew_ms)
        creator = self.holders[0]
        creator.standing = takeover.first(rules, "a", self.now + creator.skew_ms)
        self.cut: set[frozenset[str]] = set()
        self.late: list[tuple[Holder, DeliveryLine, dict[str, int]]] = []
        self.seen: dict[str, dict[str, int]] = {}

    def reaches(self, one: Holder, other: Holder) -> bool:
        """Whether a message goes through now."""
        return one.alive and other.alive and frozenset((one.name, other.name)) not in self.cut

    def say(self, sender: Holder, said: tuple[DeliveryLine, dict[str, int]]) -> None:
        """Send a line to all others; whoever knows better answers."""
        for other in self.holders:
            if other is sender or not self.reaches(sender, other):
                continue
            answer = other.hear(*said, self.now)
            if answer is not None:
                sender.hear(*answer, self.now)

    def pass_time(self, ms: int) -> None:
        """Every holder ticks each half second, as the sweep does."""
        for _ in range(0, ms, TICK_MS):
            self.now += TICK_MS
            for holder in self.holders:
                question = holder.question(self.now) if holder.alive else None
                if question is not None:
                    self.say(holder, question)
                said = holder.tick(self.now) if holder.alive else None
                if said is not None:
                    self.late += [(other, *said) for other in self.holders if other is not holder][:8]
                    self.say(holder, said)

    @rule(ms=st.integers(1, 4 * LEASE_MS))
    def wait(self, ms: int) -> None:
        """Time goes by."""
        self.pass_time(ms)

    @rule(pairs=st.sets(st.sampled_from([frozenset((x, y)) for x in NAMES for y in NAMES if x < y])))
    def partition(self, pairs: set[frozenset[str]]) -> None:
        """Some cannot talk."""
        self.cut = pairs

    @rule(at=st.integers(0, 3), memory=st.booleans())
    def crash(self, at: int, memory: bool) -> None:
        """A holder dies, some with all they know in Redis."""
        holder = self.holders[at % len(self.holders)]
        holder.alive = False
        if not memory:
            holder.standing, holder.acked = HolderStanding(0, "", 0, 0), {}
            self.seen.pop(holder.name, None)

    @rule(at=st.integers(0, 3))
    def start(self, at: int) -> None:
        """A holder comes back; one that knows nothing listens first."""
        self.started(self.holders[at % len(self.holders)])

    def started(self, holder: Holder) -> None:
        """As the sweep finds it."""
        if not holder.alive and not holder.standing.term:
            holder.standing = takeover.newcomer(holder.rules, self.now + holder.skew_ms)
        holder.alive = True

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def a_line_comes_late_or_again(self, data: Any) -> None:
        """What a network may do to a line."""
        other, line, acked = data.draw(st.sampled_from(self.late[-40:]))
        if other.alive:
            other.hear(line, acked, self.now)

    @rule(feed=st.sampled_from(["x", "y"]), step=st.integers(1, 5))
    def acknowledge(self, feed: str, step: int) -> None:
        """The subscriber acknowledges where it is served."""
        for holder in self.holders:
            if holder.delivers(self.now):
                holder.acked = vectors.merged(holder.acked, {feed: holder.acked.get(feed, 0) + step})

    @invariant()
    def what_is_acknowledged_never_goes_back(self) -> None:
        """At any holder, as long as it remembers."""
        for holder in self.holders:
            assert vectors.covers(holder.acked, self.seen.get(holder.name, {}))
            self.seen[holder.name] = dict(holder.acked)

    @rule()
    def whoever_is_left_delivers_within_a_bound(self) -> None:
        """Where any holder lives, somebody delivers: at the latest one lease and all turns later."""
        self.pass_time(2 * LEASE_MS + len(self.holders) * LEASE_MS // takeover.STEPS + 2 * TICK_MS)
        if any(holder.alive for holder in self.holders):
            assert any(holder.delivers(self.now) for holder in self.holders)

    @rule(
        at=st.integers(0, 3),
        memory=st.booleans(),
        away_ms=st.integers(1, 5 * LEASE_MS),
        back_ms=st.integers(0, LEASE_MS),
    )
    def one_that_was_away_takes_over_from_nobody(self, at: int, memory: bool, away_ms: int, back_ms: int) -> None:
        """Who delivers when it is back still does, though none of its lines reached the one that was away."""
        self.cut = set()
        for holder in self.holders:
            self.started(holder)
        self.pass_time(5 * LEASE_MS)
        self.crash(at, memory)
        self.pass_time(away_ms)
        chosen = [holder.name for holder in self.holders if holder.delivers(self.now)]
        self.started(self.holders[at % len(self.holders)])
        self.pass_time(back_ms)
        if chosen:
            assert [holder.name for holder in self.holders if holder.delivers(self.now)] == chosen

    @rule()
    def when_all_can_talk_exactly_one_delivers_and_stays(self) -> None:
        """And all know who, and up to where."""
        self.cut = set()
        for holder in self.holders:
            self.started(holder)
        self.pass_time(5 * LEASE_MS)
        chosen = [holder.name for holder in self.holders if holder.delivers(self.now)]
        assert len(chosen) == 1
        for _ in range(10):
            self.pass_time(1000)
            assert [holder.name for holder in self.holders if holder.delivers(self.now)] == chosen
        assert {holder.standing.deliverer for holder in self.holders} == set(chosen)
        assert all(holder.acked == self.holders[0].acked for holder in self.holders)


TestSuccession = Succession.TestCase
TestSuccession.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
