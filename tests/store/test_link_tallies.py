"""Tallies of links: what processes gather is added up, decays with its half-life, and ends."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from eventing.store.client import client
from eventing.store.keys import peer_key
from eventing.store.link_tallies import (
    HALF_LIFE_S,
    KEPT_S,
    UNMEASURED,
    delivery_note,
    probe_note,
    tallies_flush,
    tallies_read,
)


@pytest.fixture(autouse=True)
def store(redis_url: str) -> Iterator[None]:
    client().flushdb()
    yield
    tallies_flush(at_once=True)
    client().flushdb()


def test_trials_with_and_without_events_are_counted_apart_and_add_up_over_flushes() -> None:
    for _ in range(2):
        delivery_note("b.test", delivered=True, took_s=0.02)
        delivery_note("b.test", delivered=False, took_s=None)
        probe_note("b.test", answered=True, took_s=0.02)
        tallies_flush(at_once=True)
    probe_note("b.test", answered=False, took_s=None)
    tallies_flush(at_once=True)
    tally = tallies_read(["b.test", "c.test"])
    assert tally["b.test"][:4] == pytest.approx((2, 2, 2, 1), abs=0.01)
    assert tally["b.test"].delay_ms == pytest.approx(20)
    assert tally["c.test"] == UNMEASURED


def test_counts_halve_within_a_day_when_they_are_read_and_when_more_are_added() -> None:
    delivery_note("b.test", delivered=True, took_s=None)
    tallies_flush(at_once=True)
    client().hset(peer_key("b.test", "tally"), mapping={"delivered": 8, "at": time.time() - HALF_LIFE_S})
    assert tallies_read(["b.test"])["b.test"].delivered == pytest.approx(4, rel=1e-3)
    delivery_note("b.test", delivered=True, took_s=None)
    tallies_flush(at_once=True)
    assert tallies_read(["b.test"])["b.test"].delivered == pytest.approx(5, rel=1e-3)


def test_delay_follows_the_latest_requests_and_jitter_their_differences() -> None:
    for ms in (10, 30) * 20:
        probe_note("b.test", answered=True, took_s=ms / 1000)
    tallies_flush(at_once=True)
    tally = tallies_read(["b.test"])["b.test"]
    assert (tally.delay_ms, tally.jitter_ms) == pytest.approx((20, 20), rel=0.01)
    for _ in range(40):
        probe_note("b.test", answered=True, took_s=0.1)
    tallies_flush(at_once=True)
    assert tallies_read(["b.test"])["b.test"].delay_ms == pytest.approx(100, rel=0.02)


def test_a_probe_of_the_overlay_begins_no_tally_and_a_tally_that_nobody_adds_to_ends() -> None:
    probe_note("b.test", answered=True, took_s=0.01, begins=False)
    tallies_flush(at_once=True)
    assert not client().exists(peer_key("b.test", "tally"))
    probe_note("b.test", answered=True, took_s=0.01)
    tallies_flush(at_once=True)
    assert 0 < client().pttl(peer_key("b.test", "tally")) <= KEPT_S * 1000


def test_flushes_of_a_process_keep_their_distance() -> None:
    tallies_flush(at_once=True)
    delivery_note("b.test", delivered=True, took_s=None)
    tallies_flush()
    assert tallies_read(["b.test"])["b.test"] == UNMEASURED
