"""Own and foreign events, seals, trims and vectors in any order give what plain lists in Python give."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from eventing.conf import config
from eventing.core import merkle
from eventing.core.events.cloudevents import Event
from eventing.core.events.feeds import Feed
from eventing.core.events.history import HistoryBounds
from eventing.core.events.vectors import covers
from eventing.core.seals.heads import HEAD_BYTES
from eventing.log import control, federated, federated_bulk, scripts
from eventing.log.federated import LogHead
from eventing.log.federated_bulk import Incoming, OwnSeal
from eventing.log.lineage import lineage_begin
from eventing.log.scripts import OWN
from eventing.store import keys
from eventing.store.client import Script, client, script_of
from tests.log.harness import NEW_RP, make_event
from tests.log.runs import receive_run, runs_after, seal_keep, unsealed

FEEDS = [Feed(origin, "abc").key for origin in ("b.example", "c.example", "d.example")]
BOUNDS: dict[str, Any] = {
    "max_events": st.sampled_from([1, 3, 10, 40, 1000]),
    "max_bytes": st.sampled_from([1, 200, 100_000]),
}
SIZES = st.integers(1, 12)


def numbers(key: str) -> list[int]:
    """The numbers of the entries of a stream."""
    entries: Any = client().xrange(key)
    return [int(entry.split(b"-")[0]) for entry, _ in entries]


class Entry(NamedTuple):
    """An event that was ever in the log."""

    feed: str
    sequence: int
    body: bytes


@dataclass
class Kept:
    """A seal that was ever kept: its sequences, and the offsets of the events that came with it."""

    first: int
    last: int
    offsets: list[int]


def seal_digest(feed: str, last: int) -> bytes:
    """The digest of the seal that ends a feed at a sequence."""
    return hashlib.sha256(f"{feed}{last}".encode()).digest()


def foreign(feed: str, sequence: int) -> Event:
    """The event that a feed has at a sequence; its id may be that of an own one, or of one of another feed."""
    event = make_event(str(sequence % 20))
    return Event(event.source, event.id, event.type, f"{feed[:2]}{sequence}".encode())


class FederatedMachine(RuleBasedStateMachine):
    """The model: every entry of this epoch with the vector after it, the seals, and how many entries are left."""

    @initialize(**BOUNDS)
    def begin(self, max_events: int, max_bytes: int) -> None:
        self.rp = next(NEW_RP)
        self.bounds = HistoryBounds(max_events, max_bytes)
        self._reset(control.ensure_log(self.rp, self.bounds).epoch)

    def teardown(self) -> None:
        control.delete_log(self.rp)
        assert not list(client().scan_iter(match=f"*{self.rp}*"))

    def _reset(self, epoch: str) -> None:
        self.epoch, self.own_key = epoch, Feed(config().domain, epoch).key
        self.ended: set[str] = set()  # own feeds of epochs that the log continues
        self.entries: list[Entry] = []
        self.vectors: list[dict[str, int]] = [{}]
        self.now: dict[str, int] = {}  # with what was left out at the end of a feed
        self.kept: dict[str, list[Kept]] = {}
        self.places: dict[str, int] = {}
        self.seal_digests: dict[str, bytes] = {}
        self.sealed = self.held = 0
        self.jumped = False

    @property
    def first(self) -> int:
        return len(self.entries) + 1 - self.held

    def _add(self, entry: Entry) -> int:
        self.entries.append(entry)
        self.now[entry.feed] = entry.sequence
        self.vectors.append(dict(self.now))
        self.held += 1
        return len(self.entries)

    def _trim(self) -> None:
        self.held = min(self.held, self.bounds.max_events)
        bodies = [len(entry.body) for entry in self.entries]
        while self.held > 1 and sum(bodies[-self.held :]) > self.bounds.max_bytes:
            self.held -= 1

    @rule(ids=st.lists(st.integers(0, 60).map(str), min_size=1, max_size=12))
    def append(self, ids: list[str]) -> None:
        offsets, duplicates = [], []
        for event_id in ids:
            duplicates.append(event_id in self.places)
            if event_id not in self.places:
                self.places[event_id] = self._add(Entry(OWN, self.now.get(OWN, 0) + 1, event_id.encode()))
            offsets.append(self.places[event_id])
        self._trim()
        appended = control.append(self.rp, [make_event(event_id) for event_id in ids], self.bounds)
        assert appended == (self.epoch, offsets, duplicates)

    @rule(
        feed=st.sampled_from(FEEDS), back=st.integers(0, 4), ahead=st.integers(0, 3), size=SIZES,
        withheld=st.sampled_from([0, 0, 0, 1, 3, 12]), accepted=st.booleans(),
    )  # fmt: skip
    def receive(self, feed: str, back: int, ahead: int, size: int, withheld: int, accepted: bool) -> None:
        held = self.now.get(feed, 0)
        first = max(1, held + 1 - back + ahead)
        last = first + size - 1
        given = list(range(first + min(withheld, size), last + 1))
        new = [sequence for sequence in given if sequence > held]
        before = (new[0] if new else last + 1) - 1  # what must be held, or left out
        events = [foreign(feed, sequence) for sequence in range(first, last + 1)]
        leaves = merkle.leaves(event.body for event in events)
        received = receive_run(Incoming(
            self.rp, feed, first, last,
            [event.body for event in events[size - len(given) :]],
            [scripts.digest(event) for event in events[size - len(given) :]],
            merkle.root(leaves), leaves[: merkle.HASH_BYTES * (size - len(given))], ["x.example", "y.example"],
            before if accepted else None, seal_digest(feed, last),
        ))  # fmt: skip
        if held >= last:
            assert received == ("known", held, 0, 0)
        elif before > held and not accepted:
            assert received == ("hole", held, 0, 0)
        else:
            offsets = [self._add(Entry(feed, sequence, foreign(feed, sequence).body)) for sequence in new]
            for sequence, offset in zip(new, offsets, strict=True):
                self.places.setdefault(str(sequence % 20), offset)
            self.now[feed] = last
            self.seal_digests[feed] = seal_digest(feed, last)
            self.jumped |= before > held
            self.kept.setdefault(feed, []).append(Kept(first, last, offsets))
            self._trim()
            assert received == ("new", last, offsets[0] if offsets else 0, len(offsets))

    @rule(events_max=st.integers(1, 8), bytes_max=st.sampled_from([1, 5, 1000]))
    def seal(self, events_max: int, bytes_max: int) -> None:
        waiting = [
            (offset, entry)
            for offset, entry in enumerate(self.entries, 1)
            if entry.feed == OWN and entry.sequence > self.sealed and offset >= self.first
        ]
        found = unsealed(self.rp, events_max, bytes_max)
        lost = waiting[0][1].sequence if waiting else self.now.get(OWN, 0) + 1
        assert (found.first, found.lost, found.epoch) == (self.sealed + 1, lost, self.epoch)
        assert found.events == [entry.body for _, entry in waiting[: len(found.events)]]
        assert found.last == lost + len(found.events) - 1
        assert bool(found.events) == bool(waiting)
        assert len(found.events) <= events_max
        assert len(found.events) == 1 or sum(map(len, found.events)) <= bytes_max
        if not found.events:
            return
        offsets = [offset for offset, _ in waiting[: len(found.events)]]
        assert (found.o, found.z) == (offsets[0], offsets[-1])
        leaves = merkle.leaves(found.events)
        seal = (self.rp, self.own_key, lost, found.last, merkle.root(leaves), leaves, found.o, found.z)
        assert not seal_keep(OwnSeal(*seal, "other"))
        assert seal_keep(OwnSeal(*seal, found.epoch, seal_digest(OWN, found.last)))
        assert not seal_keep(OwnSeal(*seal, found.epoch))
        self.kept.setdefault(self.own_key, []).append(Kept(lost, found.last, offsets))
        self.sealed = found.last

    @rule(**BOUNDS)
    def change_bounds(self, max_events: int, max_bytes: int) -> None:
        self.bounds = HistoryBounds(max_events, max_bytes)
        self._trim()
        state = control.ensure_log(self.rp, self.bounds)
        assert (state.epoch, state.first, state.next) == (self.epoch, self.first, len(self.entries) + 1)

    @rule()
    def trim(self) -> None:
        """Seals and checkpoints go with the events."""
        for _ in range(5):  # each call drops a bounded number
            assert control.trim_log(self.rp).first == self.first
        for feed, kept in self.kept.items():
            ids = numbers(keys.seals_key(self.rp, feed))
            wanted = [one.last for one in kept if one.offsets and one.offsets[-1] >= self.first]
            assert ids[-1] == kept[-1].last
            assert set(wanted) <= set(ids)
            assert len(ids) <= 1 or any(one.last == ids[0] for one in kept if not one.offsets) or ids[0] in wanted
        assert sum(number < self.first for number in numbers(keys.vectors_key(self.rp))) <= 1

    @rule()
    def renumber(self) -> None:
        epoch = federated.renumber(self.rp)
        assert epoch != self.epoch
        self._reset(epoch)

    @rule()
    def continue_in_a_new_epoch(self) -> None:
        """As after a restore: offsets stay, sealed own events are another feed's, those without a seal begin the new one."""
        ended, sealed = self.own_key, self.sealed
        epoch = lineage_begin(self.rp)
        assert epoch != self.epoch

        def divided(vector: dict[str, int]) -> dict[str, int]:
            own = vector.get(OWN, 0)
            parts = {**vector, ended: min(own, sealed), OWN: own - min(own, sealed)}
            return {feed: sequence for feed, sequence in parts.items() if sequence}

        if sealed:
            self.entries = [
                entry
                if entry.feed != OWN
                else Entry(ended, entry.sequence, entry.body)
                if entry.sequence <= sealed
                else Entry(OWN, entry.sequence - sealed, entry.body)
                for entry in self.entries
            ]
            self.vectors, self.now = list(map(divided, self.vectors)), divided(self.now)
            self.seal_digests[ended] = seal_digest(OWN, sealed)
            self.ended.add(ended)
            self.sealed = 0
        self.epoch, self.own_key = epoch, Feed(config().domain, epoch).key

    @rule(data=st.data())
    def vector_at(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, len(self.entries) + 1))
        known = self.first - 1 <= offset <= len(self.entries)
        if not known and set(self.now) <= {OWN} and offset < self.first:
            assert federated.vector_at(self.rp, offset) == (
                {OWN: offset} if offset else {}
            )  # sequence and offset are one
        else:
            assert federated.vector_at(self.rp, offset) == (self.vectors[offset] if known else None)

    @rule(data=st.data())
    def first_lacking(self, data: st.DataObject) -> None:
        have = dict(self.vectors[data.draw(st.integers(0, len(self.entries)))])
        for feed in list(have):
            have[feed] = max(0, have[feed] + data.draw(st.sampled_from([0, 0, -1, -3, 2])))
        lacking = [
            offset
            for offset, entry in enumerate(self.entries, 1)
            if offset >= self.first and entry.sequence > have.get(entry.feed, 0)
        ]
        told = {self.own_key if feed == OWN else feed: sequence for feed, sequence in have.items()}
        found = federated.first_lacking(self.rp, told, self.own_key)
        if not covers(have, self.vectors[self.first - 1]):
            assert 1 <= found < self.first
        elif self.jumped:
            assert found <= (lacking[0] if lacking else len(self.entries) + 1)
            assert found >= self.first
        else:
            assert found == (lacking[0] if lacking else len(self.entries) + 1)

    @rule(data=st.data(), events_max=st.sampled_from([1, 7, 1000]), bytes_max=st.sampled_from([1, 60, 100_000]))
    def runs_after(self, data: st.DataObject, events_max: int, bytes_max: int) -> None:
        """Every sealed event that is held and lacking is given, once, in the order of its feed, and can be verified."""
        have = {feed: data.draw(st.integers(0, kept[-1].last)) for feed, kept in self.kept.items()}
        expected = {
            feed: [
                self.entries[offset - 1].body
                for one in kept
                if one.last > have[feed]
                for offset in one.offsets
                if offset >= self.first
            ]
            for feed, kept in self.kept.items()
        }
        given: dict[str, list[bytes]] = {feed: [] for feed in expected}
        while runs := runs_after(self.rp, have, self.own_key, events_max, bytes_max):
            events = [event for run in runs for event in run.events]
            assert len(runs) == 1 or (len(events) <= events_max and sum(map(len, events)) <= bytes_max)
            for run in runs:
                assert run.last > have[run.feed_key]
                leaves = run.leaves + merkle.leaves(run.events)
                assert len(leaves) == merkle.HASH_BYTES * (run.last - run.first + 1)
                assert merkle.root(leaves) == run.seal
                assert run.path == (() if run.feed_key in {self.own_key, *self.ended} else ("x.example", "y.example"))
                given[run.feed_key] += run.events
                have[run.feed_key] = run.last
        assert given == expected
        assert have == {feed: kept[-1].last for feed, kept in self.kept.items()}

    @invariant()
    def the_head_is_right(self) -> None:
        others = {feed: sequence for feed, sequence in self.now.items() if feed != OWN}
        own = seal_digest(OWN, self.sealed) if self.sealed else b""
        head = LogHead(
            self.epoch,
            self.epoch,
            self.first,
            len(self.entries) + 1,
            self.now.get(OWN, 0),
            others,
            self.sealed,
            own[:HEAD_BYTES],
            {feed: one[:HEAD_BYTES] for feed, one in self.seal_digests.items()},
            self.seal_digests,
        )
        assert federated.heads([self.rp]) == [head]

    @invariant()
    def a_read_says_feed_sequence_and_vector(self) -> None:
        run = control.read(self.rp, 1, 1000, 1 << 20)
        assert run.events == [entry.body for entry in self.entries[self.first - 1 :]]
        if not run.places:
            assert {entry.feed for entry in self.entries[self.first - 1 :]} <= {OWN}
            return
        told: list[tuple[str, int]] = []
        for part, end in zip(run.places, [*(part.begin for part in run.places[1:]), len(run.events)], strict=True):
            told += [(part.feed, part.sequence + step) for step in range(end - part.begin)]
        assert told == [(entry.feed, entry.sequence) for entry in self.entries[self.first - 1 :]]
        assert run.before == self.vectors[self.first - 1]

    @invariant()
    def a_place_is_known_while_it_is_held(self) -> None:
        for offset in {1, self.first - 1, self.first, len(self.entries), len(self.entries) + 1} - {0}:
            held = self.first <= offset <= len(self.entries)
            place: tuple[object, ...] | None = federated.feed_event_at(self.rp, offset)
            assert place == (self.entries[offset - 1] if held else None)


@pytest.mark.parametrize(("every", "reach"), [(3, 4), pytest.param(256, 4096, marks=pytest.mark.long)])
def test_the_log_of_several_feeds_behaves_as_its_model(
    redis_url: str, every: int, reach: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with a checkpoint every few entries and own runs that reach over few, so that short logs have many."""
    for name, script in list(vars(scripts).items()):
        if isinstance(script, Script) and "local CHECKPOINT_EVERY = 256" in script.text:
            text = script.text.replace("local CHECKPOINT_EVERY = 256", f"local CHECKPOINT_EVERY = {every}")
            monkeypatch.setattr(scripts, name, script_of(text))
    monkeypatch.setattr(federated_bulk, "RUN_OFFSETS_MAX", reach)
    run_state_machine_as_test(
        FederatedMachine,
        settings=settings(
            max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
