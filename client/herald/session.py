"""The session: protocol state of one logical connection that outlives its sockets. No I/O, clock or random source here.

What happened goes in through the methods, what to do comes out of `take()`, in order; connection.py carries it out.

Life of an operation (publish, ack, ...):  submitted -> sent -> answered | refused      sent -> (lost) -> sent again
Life of an interest (a subscription):      INTEREST_STATES below.

Laws:
 1. An operation is sent again, unchanged and in order, after each reconnection until it is answered. A publish keeps
    its event's id, so the domain stores it once.
 2. An interest resumes after the last event it delivered; no offset is delivered twice.
 3. What was missed is said: every hole in the offsets and every change of epoch is a Gap before the next event.
 4. Late, repeated and unknown answers and frames are harmless; a frame that is not understood drops the connection.
"""

from __future__ import annotations

import itertools
import json
import random as random_module
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from herald.backoff import Backoff
from herald.errors import HeraldError, Problem
from herald.events import Gap, Item, Received, encode

Target = tuple[str, str]  # ("rp", reference) or ("subscription", id)
INTEREST_STATES: Mapping[str, frozenset[str]] = {
    "idle": frozenset({"asking", "parked", "ended"}),  # not known to the gateway; asked for when there is a connection
    "asking": frozenset({"live", "idle", "parked", "ended"}),  # subscribe is sent, not answered
    "live": frozenset({"idle", "parked", "ended"}),  # events come
    "parked": frozenset({"idle", "ended"}),  # its reader is slow: only the place is kept, here and there
    "ended": frozenset(),
}


@dataclass(frozen=True, slots=True)
class Send:
    """Send this text frame."""

    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """Operation `id` succeeded with this answer."""

    id: int
    frame: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """Operation `id` failed for good."""

    id: int
    error: Problem


@dataclass(frozen=True, slots=True)
class Established:
    """The gateway accepted the interest at this place; None: the gap that comes first tells it."""

    key: int
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Deliver:
    """Give `item` to the reader; it arrived in a frame of `chars` characters."""

    key: int
    item: Item
    chars: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The interest ended for good."""

    key: int
    error: HeraldError


@dataclass(frozen=True, slots=True)
class Collided:
    """Another interest of this session is at the same RP: this one goes on in another session (`adopt`)."""

    interest: Interest


@dataclass(frozen=True, slots=True)
class Drop:
    """The gateway broke the protocol: close the socket and connect again."""

    reason: str


Output = Send | Answered | Refused | Established | Deliver | Ended | Collided | Drop


@dataclass(slots=True)
class Operation:
    """A request that wants an answer. `waited`: its caller waits, so that reading must go on until it is answered."""

    text: str
    waited: bool
    backoff: Backoff
    due_at: float | None = None


@dataclass(slots=True)
class Interest:
    """What one subscription wants and where it stands. `epoch` None: no place is known yet."""

    key: int
    target: Target
    start: str | None  # the first `from`; None for a durable subscription, whose place the domain keeps
    backoff: Backoff
    state: str = "idle"
    rp: str | None = None
    asked_id: int = 0  # of the last subscribe
    epoch: str | None = None
    offset: int = 0
    gap_due: bool = False  # the gateway said `recovered: false`, and its gap frame has not come yet
    place_is_theirs: bool = False  # what that gap says replaces our place, even backwards
    due_at: float | None = None

    def to(self, state: str) -> None:
        """Change state, along INTEREST_STATES only."""
        assert state in INTEREST_STATES[self.state], f"{self.state} -> {state}"  # noqa: S101 - only our own bug
        self.state = state

    @property
    def resume_from(self) -> str | None:
        """The `from` of the next subscribe."""
        if self.start is None:
            return None
        return self.start if self.epoch is None else f"{self.epoch}:{self.offset}"


class Malformed(ValueError):
    """A frame is not what the protocol says."""


@dataclass(slots=True)
class Session:
    """See the module. `random` jitters the repetition of operations that were refused for the moment."""

    random: random_module.Random
    operations: dict[int, Operation] = field(default_factory=dict)
    interests: dict[int, Interest] = field(default_factory=dict)
    closing: Mapping[str, Any] | None = None  # the gateway's announcement that it is about to close
    _open: bool = False
    _asks: dict[int, Interest] = field(default_factory=dict)
    _by_rp: dict[str, Interest] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _delayed: list[Operation | Interest] = field(default_factory=list)
    _out: list[Output] = field(default_factory=list)

    def take(self) -> list[Output]:
        """What to do now, in order; each output is given once."""
        out, self._out = self._out, []
        return out

    @property
    def awaits_answer(self) -> bool:
        """Whether someone waits for an answer, so that reading must not stop."""
        return bool(self._asks) or any(operation.waited for operation in self.operations.values())

    @property
    def due_at(self) -> float | None:
        """When `wake` is next needed."""
        return min((thing.due_at for thing in self._delayed if thing.due_at is not None), default=None)

    # ---- what the program wants ----

    def submit(self, op: str, members: str, *, waited: bool = True) -> int:
        """Ask for an operation; its id, with which `Answered` or `Refused` will come.

        `members` is the JSON text of an object with at least one member: the rest of the frame.
        """
        id = next(self._ids)
        operation = Operation(f'{{"op":"{op}","id":{id},{members[1:]}', waited, Backoff(self.random))
        self.operations[id] = operation
        if self._open:
            self._out.append(Send(operation.text))
        return id

    def abandon(self, id: int) -> None:
        """Nobody wants the answer any more; whether the operation took effect stays unknown."""
        operation = self.operations.pop(id, None)
        if operation is not None:
            operation.due_at = None

    def subscribe(self, key: int, target: Target, start: str | None) -> None:
        """Take up an interest under a `key` of the caller's."""
        interest = Interest(key, target, start, Backoff(self.random))
        self.interests[key] = interest
        if self._open:
            self._ask(interest)

    def adopt(self, interest: Interest) -> None:
        """Take over an interest, where it stands, from a session in which it collided."""
        self.interests[interest.key] = interest
        if self._open:
            self._ask(interest)

    def unsubscribe(self, key: int) -> None:
        """End an interest; nothing more is delivered for it."""
        interest = self.interests.pop(key, None)
        if interest is not None:
            self._detach(interest)
            interest.to("ended")

    def park(self, key: int) -> None:
        """Stop the flow of an interest whose reader is slow. Nothing is held for it; `unpark` goes on where it was."""
        interest = self.interests.get(key)
        if interest is not None and interest.state != "parked":
            self._detach(interest)
            interest.to("parked")

    def unpark(self, key: int) -> None:
        """Let a parked interest flow again."""
        interest = self.interests.get(key)
        if interest is not None and interest.state == "parked":
            interest.to("idle")
            if self._open:
                self._ask(interest)

    # ---- what the connection did ----

    def opened(self) -> None:
        """A socket is open: everything wanted is asked for, everything unanswered sent again."""
        self._open = True
        self.closing = None
        for interest in self.interests.values():
            if interest.state == "idle":
                self._ask(interest)
        for operation in self.operations.values():
            self._out.append(Send(operation.text))

    def lost(self) -> None:
        """The socket is gone; what it had not answered will be sent on the next one."""
        self._open = False
        self._asks.clear()
        self._by_rp.clear()
        for thing in self._delayed:
            thing.due_at = None
        self._delayed.clear()
        for interest in self.interests.values():
            if interest.state in ("asking", "live"):
                interest.to("idle")

    def wake(self, now: float) -> None:
        """Send again what was refused for the moment and is due."""
        due = [thing for thing in self._delayed if thing.due_at is None or thing.due_at <= now]
        self._delayed = [thing for thing in self._delayed if thing.due_at is not None and thing.due_at > now]
        for thing in due:
            if thing.due_at is None:
                continue
            thing.due_at = None
            if isinstance(thing, Interest):
                self._ask(thing)
            else:
                self._out.append(Send(thing.text))

    def received(self, text: str, now: float) -> None:
        """A frame came at `now` (seconds of any steady clock)."""
        try:
            frame = json.loads(text)
            op = frame["op"]
            if op == "event":
                self._event(frame, len(text))
            elif op == "ok":
                self._ok(frame)
            elif op == "error":
                self._error(frame, now)
            elif op == "gap":
                self._gap(frame, len(text))
            elif op == "closing":
                self.closing = frame
            # Unknown operations are for newer clients.
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            self._out.append(Drop(f"The gateway sent a frame that is not understood ({type(error).__name__})."))

    # ---- frames ----

    def _event(self, frame: Mapping[str, Any], chars: int) -> None:
        interest = self._by_rp.get(frame["rp"])
        if interest is None:
            return
        epoch, offset, event = _text(frame, "epoch"), _number(frame, "offset"), frame["event"]
        if not isinstance(event, dict):
            raise Malformed("event")
        ours = epoch == interest.epoch and not interest.place_is_theirs
        if ours and offset <= interest.offset:
            return
        following = interest.offset + 1 if ours else 1
        if interest.gap_due or epoch != interest.epoch or offset > following:
            self._skip(interest, epoch, following, offset - 1)
        interest.epoch, interest.offset = epoch, offset
        cursor = frame.get("cursor") or f"{epoch}:{offset}"
        self._out.append(Deliver(interest.key, Received(event, frame["rp"], epoch, offset, cursor), chars))

    def _gap(self, frame: Mapping[str, Any], chars: int) -> None:
        interest = self._by_rp.get(frame["rp"])
        if interest is None:
            return
        start, end = _number(frame, "from"), _number(frame, "to")
        epoch = _text(frame, "epoch") if "epoch" in frame else (interest.epoch or "")
        if interest.start is None and epoch == interest.epoch and not interest.place_is_theirs:
            # The gateway goes on after what was acknowledged, we after what was delivered: that part is not missing.
            start = max(start, interest.offset + 1)
            if start > end:
                interest.gap_due = False
                return
        self._skip(interest, epoch, start, end, chars)

    def _skip(self, interest: Interest, epoch: str, start: int, end: int, chars: int = 0) -> None:
        """Deliver a gap and stand behind it."""
        previous = interest.epoch if interest.epoch not in (None, epoch) else None
        interest.gap_due = interest.place_is_theirs = False
        interest.epoch, interest.offset = epoch, end
        gap = Gap(interest.rp or "", epoch, start, end, previous, f"{epoch}:{end}")
        self._out.append(Deliver(interest.key, gap, chars))

    def _ok(self, frame: Mapping[str, Any]) -> None:
        id = frame["id"]
        if self.operations.pop(id, None) is not None:
            self._out.append(Answered(id, frame))
        elif (interest := self._asks.pop(id, None)) is not None:
            self._subscribed(interest, frame)

    def _subscribed(self, interest: Interest, frame: Mapping[str, Any]) -> None:
        rp, epoch, offset = _text(frame, "rp"), _text(frame, "epoch"), _number(frame, "offset")
        if rp in self._by_rp:
            self._collide(interest)
            self._out.append(Drop("The gateway let one connection read a rendezvous point twice."))
            return
        interest.to("live")
        interest.rp = rp
        interest.backoff.reset()
        self._by_rp[rp] = interest
        first = interest.epoch is None
        interest.gap_due = frame.get("recovered") is False
        # A place that the gateway keeps (a durable subscription's) may lie behind ours: then ours counts.
        interest.place_is_theirs = interest.gap_due and (first or interest.start is not None)
        if first:
            interest.epoch, interest.offset = epoch, offset
        place = None if interest.gap_due else f"{interest.epoch}:{interest.offset}"
        self._out.append(Established(interest.key, place))

    def _error(self, frame: Mapping[str, Any], now: float) -> None:
        problem = Problem.from_document(frame)
        id: Any = frame.get("id")
        if (operation := self.operations.get(id)) is not None:
            if problem.passing:
                operation.due_at = now + operation.backoff.next(problem.retry_after_s)
                self._delayed.append(operation)
            else:
                del self.operations[id]
                self._out.append(Refused(id, problem))
        elif (interest := self._asks.pop(id, None)) is not None:
            self._not_subscribed(interest, problem, now)
        elif (ended := self._live_interest(id, frame.get("rp"))) is not None:
            self._not_subscribed(ended, problem, now)

    def _live_interest(self, id: Any, rp: Any) -> Interest | None:
        """The interest whose reading the gateway ends, by the id of its subscribe or by its RP."""
        for interest in self._by_rp.values():
            if (id is not None and interest.asked_id == id) or (id is None and interest.rp == rp):
                return interest
        return None

    def _not_subscribed(self, interest: Interest, problem: Problem, now: float) -> None:
        if interest.rp is not None and self._by_rp.get(interest.rp) is interest:
            del self._by_rp[interest.rp]
        if problem.passing:
            interest.to("idle")
            interest.due_at = now + interest.backoff.next(problem.retry_after_s)
            self._delayed.append(interest)
        elif problem.code == "conflict" and interest.state == "asking" and len(self.interests) > 1:
            self._collide(interest)
        else:
            self.interests.pop(interest.key, None)
            interest.to("ended")
            self._out.append(Ended(interest.key, problem))

    # ---- interests ----

    def _ask(self, interest: Interest) -> None:
        interest.to("asking")
        interest.due_at = None
        id = next(self._ids)
        self._asks[id] = interest
        interest.asked_id = id
        members = dict([interest.target])
        if interest.resume_from is not None:
            members["from"] = interest.resume_from
        self._out.append(Send(encode({"op": "subscribe", "id": id, **members})))

    def _detach(self, interest: Interest) -> None:
        """Take the interest back from the gateway; what is under way for it is not delivered."""
        known = interest.state in ("asking", "live")
        for id in [id for id, asked in self._asks.items() if asked is interest]:
            del self._asks[id]
        if interest.rp is not None and self._by_rp.get(interest.rp) is interest:
            del self._by_rp[interest.rp]
        interest.due_at = None
        if self._open and known:
            kind, reference = interest.target
            if kind == "rp" and interest.rp is not None:
                reference = interest.rp
            self._out.append(Send(encode({"op": "unsubscribe", "id": next(self._ids), kind: reference})))

    def _collide(self, interest: Interest) -> None:
        del self.interests[interest.key]
        interest.to("idle")
        self._out.append(Collided(interest))


def _text(frame: Mapping[str, Any], name: str) -> str:
    value = frame[name]
    if not isinstance(value, str):
        raise Malformed(name)
    return value


def _number(frame: Mapping[str, Any], name: str) -> int:
    value = frame[name]
    if type(value) is not int:
        raise Malformed(name)
    return value
