"""Appends, changes of bounds, losses and reads in any order give what a plain list in Python gives."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from eventing.core.errors import InvalidCursor
from eventing.core.events.cloudevents import Event
from eventing.core.events.cursors import Cursor
from eventing.store import keys
from tests.log.harness import NEW_RP, Log, make_event

IDS_MAX = 1_000_000  # nothing is forgotten within one run of the machine
EVENTS = st.builds(make_event, st.integers(0, 30).map(str), st.integers(0, 60))
BOUNDS: dict[str, Any] = {"max_events": st.integers(1, 12), "max_bytes": st.integers(1, 400)}


class LogMachine(RuleBasedStateMachine):
    """The model: every event ever stored of this epoch, in order, and how many of them the bounds have left."""

    client: redis.Redis

    @initialize(**BOUNDS)
    def begin(self, max_events: int, max_bytes: int) -> None:
        self.log = Log(self.client, next(NEW_RP), ids_max=IDS_MAX)
        self.epoch = self.log.create(max_events, max_bytes).epoch
        self.bounds = (max_events, max_bytes)
        self.stored: list[bytes] = []
        self.places: dict[tuple[str, str], int] = {}
        self.held = 0
        self.acknowledged = 0

    @rule(events=st.lists(EVENTS, min_size=1, max_size=15))
    def append(self, events: list[Event]) -> None:
        offsets, duplicates = [], []
        for event in events:
            known = self.places.get((event.source, event.id))
            duplicates.append(known is not None)
            if known is None:
                self.stored.append(event.body)
                self.held += 1
                known = self.places[event.source, event.id] = len(self.stored)
            offsets.append(known)
        self._bound()
        assert self.log.append(*events) == (self.epoch, offsets, duplicates)

    @rule(**BOUNDS)
    def change_bounds(self, max_events: int, max_bytes: int) -> None:
        self.bounds = (max_events, max_bytes)
        self._bound()
        state = self.log.create(max_events, max_bytes)
        assert (state.epoch, state.first, state.next) == (self.epoch, self.first, len(self.stored) + 1)

    def _bound(self) -> None:
        self.held = min(self.held, self.bounds[0])
        while self.held > 1 and sum(map(len, self.stored[-self.held :])) > self.bounds[1]:
            self.held -= 1

    @rule()
    def lose_everything(self) -> None:
        self.client.delete(*keys.log_keys(self.log.rp), keys.cursors_key(self.log.rp))
        epoch = self.log.create(*self.bounds).epoch
        assert epoch != self.epoch
        self.epoch, self.stored, self.places, self.held, self.acknowledged = epoch, [], {}, 0, 0

    @rule(first=st.integers(0, 40), events_max=st.integers(0, 20), bytes_max=st.integers(1, 300))
    def read(self, first: int, events_max: int, bytes_max: int) -> None:
        run = self.log.read(first, events_max, bytes_max)
        expected: list[bytes] = []
        for body in self.stored[max(first, self.first) - 1 :][:events_max]:
            if expected and sum(map(len, expected)) + len(body) > bytes_max:
                break
            expected.append(body)
            if sum(map(len, expected)) >= bytes_max:
                break
        assert run.events == expected
        assert not run.events or run.first == max(first, self.first)

    @rule(max_events=st.integers(1, 20), max_bytes=st.integers(1, 400))
    def oldest_granted(self, max_events: int, max_bytes: int) -> None:
        granted = min(self.held, max_events)
        while granted > 1 and sum(map(len, self.stored[-granted:])) > max_bytes:
            granted -= 1
        assert self.log.oldest_granted(max_events, max_bytes) == len(self.stored) + 1 - granted

    @rule(offset=st.integers(0, 60))
    def acknowledge(self, offset: int) -> None:
        if offset > len(self.stored):
            with pytest.raises(InvalidCursor):
                self.log.acknowledge(Cursor(self.epoch, offset))
        else:
            self.acknowledged = max(self.acknowledged, offset)
            assert self.log.acknowledge(Cursor(self.epoch, offset)) == Cursor(self.epoch, self.acknowledged)

    @rule()
    def trim(self) -> None:
        assert self.log.trim().first == self.first

    @property
    def first(self) -> int:
        return len(self.stored) + 1 - self.held

    @invariant()
    def extent_is_the_models(self) -> None:
        state = self.log.read(1, 0, 0).state
        held = self.stored[len(self.stored) - self.held :]
        assert (state.epoch, state.first, state.next) == (self.epoch, self.first, len(self.stored) + 1)
        assert state.bytes == sum(map(len, held))


@pytest.fixture
def machine(redis_client: redis.Redis) -> type[LogMachine]:
    LogMachine.client = redis_client
    return LogMachine


def test_the_log_does_what_a_list_does(machine: type[LogMachine]) -> None:
    bounded = settings(max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(machine, settings=bounded)
