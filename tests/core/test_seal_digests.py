"""core/seals/heads.py: what is said about the ends of feeds, and which places it puts in doubt."""

from __future__ import annotations

import pytest

from eventing.core.events.feeds import FEEDS_MAX
from eventing.core.seals import heads
from eventing.core.seals.heads import HEAD_BYTES, HEADS_BYTES_MAX

A, B, C = (letter * 16 for letter in "abc")
ONE, OTHER = b"1" * HEAD_BYTES, b"2" * HEAD_BYTES


def test_tips_come_back_as_they_were_said_those_that_are_not_known_left_out() -> None:
    vector = {B: 7, A: 3, C: 1}
    sent = heads.packed(vector, {A: ONE, B: OTHER, "d" * 16: ONE})
    assert len(sent) == 3 * HEAD_BYTES
    assert heads.unpacked(vector, sent) == {A: ONE, B: OTHER}


@pytest.mark.parametrize("sent", [b"", ONE[:-1], ONE + OTHER + b"x", 3 * ONE])
def test_tips_that_do_not_belong_to_the_vector_say_nothing(sent: bytes) -> None:
    assert heads.unpacked({A: 3, B: 4}, sent) == {}


def test_the_tips_of_as_many_feeds_as_there_may_be_are_within_the_bound() -> None:
    vector = {f"{number:016d}": 1 for number in range(FEEDS_MAX)}
    assert len(heads.packed(vector, {})) == HEADS_BYTES_MAX


def test_a_feed_is_doubtful_where_both_hold_as_much_by_another_seal() -> None:
    held, known = {A: 3, B: 4, C: 5}, {A: ONE, B: ONE, C: ONE}
    assert heads.doubtful({A: 3, B: 4, C: 5}, {A: ONE, B: OTHER, C: OTHER}, held, known) == [B, C]
    assert heads.doubtful({A: 9, B: 5}, {A: OTHER, B: OTHER}, held, known) == [], (
        "it is further, and sends what follows"
    )
    assert heads.doubtful({A: 3}, {A: OTHER}, held, {}) == [], "nothing is known of the seal here"
    assert heads.doubtful({A: 3}, {}, held, known) == [], "nothing is said of the seal there"


def test_a_feed_that_is_held_further_here_is_compared_at_the_place_of_the_other_after_those_held_equally() -> None:
    held, known = {A: 5, B: 4, C: 9}, {A: ONE, B: ONE, C: ONE}
    assert heads.doubtful({A: 3, B: 4}, {A: ONE, B: OTHER}, held, known) == [B, A]
    assert heads.doubtful({A: 3}, {}, held, known) == []


def test_an_answer_is_compared_with_what_came_after_its_request_only() -> None:
    held, known = {A: 3, B: 4}, {A: ONE, B: ONE}
    said, other = {A: 3, B: 4}, {A: OTHER, B: OTHER}
    assert heads.contradicting({A: 3}, said, other, held, known) == [B], "of A the other was told, and has compared it"
    assert heads.contradicting(said, said, other, held, known) == []
    assert heads.contradicting({}, said, other, {}, {}) == [], "nothing of it is here"
