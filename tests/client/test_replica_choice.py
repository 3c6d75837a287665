"""Which replica is next and when to go back (client/herald/rollover.py), by plain calls and with any sequence of events."""

from __future__ import annotations

import random
from typing import Any

import pytest
from herald.errors import Closed, Problem
from herald.repeats import WINDOW, RepeatDetector
from herald.replica_locations import REDIRECTS_MAX, ReplicaLocations
from herald.rollover import (
    HOLD_S,
    HOLD_S_MAX,
    PROBE_S_MAX,
    PROBES_GOOD,
    REFUSED_S,
    SPREAD_S,
    STAYED_S,
    URLS_MAX,
    Move,
    Rollover,
    learnable,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

A, B, C = "https://a.example", "https://b.example", "https://c.example"
FORBIDDEN = Problem("urn:herald:problem:forbidden", "Operation not permitted", 403, "Ask the creator.")
X = ("rp", "x")


def rollover(*urls: str, **more: Any) -> Rollover:
    return Rollover(urls or (A, B, C), random.Random(1), **more)


def at(made: Rollover, now: float) -> str:
    """Connect to what is next; its URL."""
    url, delay_s = made.next(now)
    assert delay_s == 0.0
    made.dialled(url)
    return url


def opened_at_b(made: Rollover, now: float = 0.0) -> None:
    """Its preferred replica failed, and the next one took it."""
    at(made, now)
    made.failed(now)
    assert at(made, now + SPREAD_S) == B
    made.opened(now + SPREAD_S)


def answering(made: Rollover, now: float) -> float:
    """The preferred replica answers every probe from now on; when it is gone back to."""
    for _ in range(10_000):
        probe_at = made.probe_at
        assert probe_at is not None
        now = max(now, probe_at)
        if made.probed(True, now):
            return now
    raise AssertionError("it is never gone back to")


def test_the_first_url_is_preferred_and_the_next_one_follows_soon_when_it_fails() -> None:
    made = rollover()
    assert at(made, 0.0) == A
    made.failed(0.0)
    url, delay_s = made.next(0.0)
    assert (url, delay_s <= SPREAD_S) == (B, True)


def test_with_all_away_the_one_that_rests_least_is_next_and_each_is_tried_before_patience_counts() -> None:
    made = rollover()
    for number, url in enumerate((A, B, C)):
        assert made.wait_s(float(number)) is None
        assert at(made, float(number)) == url or number
        made.failed(float(number))
    assert made.wait_s(3.0) is not None


def test_one_url_is_tried_again_after_the_backoff_alone() -> None:
    made = rollover(A)
    for attempt in range(10):
        made.failed(100.0)
        url, delay_s = made.next(100.0)
        assert url == A
        assert 0.0 <= delay_s <= 0.1 * 2**attempt
    assert made.probe_at is None


def test_what_the_domain_asked_to_wait_is_waited_if_there_is_no_other() -> None:
    made = rollover(A)
    made.failed(0.0, retry_after_s=7.0)
    assert made.next(0.0)[1] >= 7.0


def test_a_replica_that_refuses_is_passed_over_and_when_all_do_the_error_names_them() -> None:
    made = rollover(A, B)
    at(made, 0.0)
    made.refuses(FORBIDDEN, 0.0)
    assert made.verdict() is None
    assert at(made, SPREAD_S) == B
    made.opened(SPREAD_S)
    assert made.probe_at is None, "who refused is not asked to take us back"
    made.refuses(Closed(4101), 1.0)
    verdict = made.verdict()
    assert isinstance(verdict, Problem)
    assert verdict.code == "forbidden"
    assert "a.example: Ask the creator. b.example: The token has been revoked." in str(verdict)


def test_the_only_replica_s_refusal_is_given_as_it_is() -> None:
    made = rollover(A)
    made.refuses(FORBIDDEN, 0.0)
    assert made.verdict() is FORBIDDEN


def test_a_refusal_is_asked_about_again_after_a_while_if_no_other_replica_answers() -> None:
    made = rollover(A, B)
    made.refuses(FORBIDDEN, 0.0)
    for second in range(1, int(REFUSED_S)):
        assert made.next(float(second))[0] == B
        made.dialled(B)
        made.failed(float(second))
    assert made.next(REFUSED_S + 1.0)[0] == A


def test_the_preferred_replica_is_gone_back_to_after_it_answered_twice_and_was_away_for_a_while() -> None:
    made = rollover()
    opened_at_b(made)
    assert made.probed(True, SPREAD_S + 0.1) is False
    assert made.probed(True, HOLD_S - 0.1) is False
    assert made.probed(False, HOLD_S + 0.1) is False
    assert made.probed(True, HOLD_S + 1.0) is False
    assert made.probed(True, HOLD_S + 2.0) is True
    made.returning(HOLD_S + 2.0)
    assert at(made, HOLD_S + 2.0) == A
    made.opened(HOLD_S + 2.0)
    assert made.probe_at is None


def test_a_replica_that_comes_and_goes_is_gone_back_to_ever_more_rarely() -> None:
    made = rollover(A, B)
    opened_at_b(made)
    left, holds = 0.0, []
    for _ in range(12):
        now = answering(made, left)
        holds.append(now - left)
        made.returning(now)
        assert at(made, now) == A
        made.opened(now)
        left = now + 1.0
        made.failed(left)
        assert at(made, left + SPREAD_S) == B
        made.opened(left + SPREAD_S)
    assert holds[0] < 3 * HOLD_S
    assert all(hold >= min(HOLD_S_MAX, HOLD_S * 2**number) for number, hold in enumerate(holds))
    assert holds[-1] <= HOLD_S_MAX + PROBE_S_MAX * 2


def test_a_return_that_lasted_makes_the_next_hold_short_again() -> None:
    made = rollover(A, B)
    opened_at_b(made)
    for stay_s in (1.0, 1.0, 1.0, STAYED_S + 1.0):
        now = answering(made, 0.0)
        made.returning(now)
        at(made, now)
        made.opened(now)
        left = now + stay_s
        made.failed(left)
        at(made, left + SPREAD_S)
        made.opened(left + SPREAD_S)
    assert answering(made, left) - left < 3 * HOLD_S


def test_learned_replicas_come_after_those_given_and_are_bounded() -> None:
    made = rollover(A)
    made.learn([B, A, *(f"https://{number}.example" for number in range(100))])
    assert made.known[:2] == [A, B]
    assert len(made.known) == URLS_MAX


@pytest.mark.parametrize(
    ("named", "like", "taken"),
    [
        (["https://b.example/", "http://c.example"], A, [B]),
        (["https://b.example", "http://c.example"], "http://a.example", [B, "http://c.example"]),
        (["ftp://x", "javascript:x", "", None, 7, "https://", "https://b.example?x=1", {"url": B}], A, []),
        ("https://b.example", A, []),
        (None, A, []),
        ([B] * 100, A, [B] * URLS_MAX),
    ],
)
def test_only_addresses_of_domains_are_learned_and_no_way_without_encryption(
    named: object, like: str, taken: list[str]
) -> None:
    assert learnable(named, like) == taken


def test_a_move_is_said_in_words() -> None:
    assert str(Move(A, B, "does not answer")) == "a.example does not answer; going on at b.example"
    assert str(Move(B, A, "answers again", back=True)) == "a.example answers again; going back to a.example"


# ---- replica locations ----


def test_what_one_replica_refuses_another_is_asked_for_and_when_all_did_that_is_the_end() -> None:
    where = ReplicaLocations([A, B])
    assert where.refuses(X, A, FORBIDDEN) is None
    assert list(where.refused(X)) == [A]
    end = where.refuses(X, B, Problem("urn:herald:problem:not-found", detail="There is none."))
    assert isinstance(end, Problem)
    assert "b.example: There is none." in str(end)
    assert where.refused(X) == {}, "the next wish begins anew"


def test_the_only_domain_s_refusal_is_the_end_at_once() -> None:
    assert ReplicaLocations([A]).refuses(X, A, FORBIDDEN) is FORBIDDEN


def test_a_rendezvous_point_that_has_moved_is_looked_for_where_the_domain_says() -> None:
    where = ReplicaLocations([A])
    moved = Problem("urn:herald:problem:moved", extra={"to": [B, "http://c.example"]})
    assert where.refuses(X, A, moved) is None
    assert where.candidates(X) == [A, B]
    assert where.candidates(("rp", "y")) == [A]


def test_what_is_sent_to_and_fro_is_followed_but_not_for_ever() -> None:
    where = ReplicaLocations([A, B])
    here_a, here_b = (Problem("urn:herald:problem:moved", extra={"to": [to]}) for to in (A, B))
    assert where.refuses(X, A, here_b) is None
    for _ in range(10):  # the holders of a shared subscription take turns
        assert where.refuses(X, B, here_a) is None
        assert list(where.refused(X)) == [B]
        assert where.refuses(X, A, here_b) is None
        assert list(where.refused(X)) == [A]
    answers = [where.refuses(X, *answer) for _ in range(REDIRECTS_MAX) for answer in ((B, here_a), (A, here_b))]
    assert any(answer is not None for answer in answers)


# ---- any sequence of events ----


class AnyEvents(RuleBasedStateMachine):
    """Whatever happens to the replicas: nothing waits without need, and the preferred one is not returned to hastily."""

    def __init__(self) -> None:
        super().__init__()
        self.rollover = rollover()
        self.now = 1000.0
        self.open = False
        self.left_at: float | None = None
        self.good = 0

    @rule(seconds=st.floats(0.0, 100.0))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: not self.open)
    @rule(outcome=st.sampled_from(["opened", "failed", "busy", "refused"]))
    def connects(self, outcome: str) -> None:
        url, delay_s = self.rollover.next(self.now)
        self.now += delay_s
        self.rollover.dialled(url)
        if outcome == "opened":
            self.rollover.opened(self.now)
            self.open, self.good = True, 0
        elif outcome == "refused":
            self.rollover.refuses(FORBIDDEN, self.now)
            if self.rollover.verdict() is not None:
                self.rollover.again(self.now)
        else:
            self.rollover.failed(self.now, retry_after_s=5.0 if outcome == "busy" else None)
            self._left()

    @precondition(lambda self: self.open)
    @rule()
    def is_lost(self) -> None:
        self.rollover.failed(self.now)
        self._left()
        self.open = False

    @precondition(lambda self: self.open and self.rollover.probe_at is not None)
    @rule(good=st.booleans())
    def is_probed(self, good: bool) -> None:
        assert self.rollover.probe_at is not None
        self.now = max(self.now, self.rollover.probe_at)
        self.good = self.good + 1 if good else 0
        if self.rollover.probed(good, self.now):
            assert self.good >= PROBES_GOOD
            assert self.left_at is None or self.now - self.left_at >= HOLD_S
            self.rollover.returning(self.now)
            self.open = False
            assert self.rollover.next(self.now) == (self.rollover.preferred, 0.0)
        else:
            assert self.rollover.probe_at >= self.now

    @invariant()
    def none_is_waited_for_while_another_was_not_tried(self) -> None:
        if not self.open:
            url, delay_s = self.rollover.next(self.now)
            assert url in self.rollover.known
            assert self.rollover.wait_s(self.now) is not None or delay_s <= SPREAD_S + 1e-6
            assert delay_s <= REFUSED_S + 20.0

    @invariant()
    def only_another_than_the_preferred_one_is_probed_from(self) -> None:
        if self.rollover.probe_at is not None:
            assert self.open
            assert self.rollover.current != self.rollover.preferred

    def _left(self) -> None:
        if self.rollover.current == A:
            self.left_at = self.now


AnyEvents.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAnyEvents = AnyEvents.TestCase


# ---- repeats ----

F, G = "f" * 16, "g" * 16


def cursor(**vector: int) -> str:
    return "e:1~" + ".".join(f"{feed * 16}={sequence}" for feed, sequence in vector.items())


def event(id: str) -> dict[str, str]:
    return {"id": id, "source": "/s"}


def test_an_event_that_comes_again_in_another_domain_s_feed_is_recognised() -> None:
    repeats = RepeatDetector()
    repeats.stand(cursor(f=4, g=9))
    assert not repeats.repeated(cursor(f=5, g=9), event("x"))
    assert not repeats.repeated(cursor(f=5, g=10), event("y"))
    assert repeats.repeated(cursor(f=5, g=11), event("x"))
    assert repeats.repeated(cursor(f=6, g=11), event("y"))


def test_an_event_that_comes_again_in_the_same_feed_is_given_again() -> None:
    repeats = RepeatDetector()
    repeats.stand(cursor(f=4))
    assert not repeats.repeated(cursor(f=5), event("x"))
    assert not repeats.repeated(cursor(f=6), event("x"))


def test_the_same_id_of_another_source_is_another_event() -> None:
    repeats = RepeatDetector()
    repeats.stand(cursor(f=4, g=9))
    assert not repeats.repeated(cursor(f=5, g=9), event("x"))
    assert not repeats.repeated(cursor(f=5, g=10), {"id": "x", "source": "/other"})


def test_where_the_feed_cannot_be_told_nothing_is_dropped() -> None:
    repeats = RepeatDetector()
    assert not repeats.repeated(cursor(f=5, g=9), event("x"))
    assert not repeats.repeated(cursor(f=5, g=10), event("x"))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3 * WINDOW))
def test_what_is_remembered_is_bounded(count: int) -> None:
    repeats = RepeatDetector()
    for number in range(count):
        repeats.repeated(cursor(f=number), event(str(number)))
    assert len(repeats._feeds) == min(count, WINDOW)
