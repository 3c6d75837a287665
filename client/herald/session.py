"""The session: protocol state of one logical connection that outlives its sockets. No I/O, clock or random source here.

Inputs are the methods; `take()` returns the outputs, in order; connection.py carries them out.

client/js/session.js makes the same decisions: tests/client/session_vectors.py has the scenarios that both are tested
with.

The connection may be opened at another replica: cursors with a version vector are valid there, so the laws hold as
well.

Life of an operation (publish, ack, ...):  submitted -> sent -> answered | refused      sent -> (lost) -> sent again
Life of an interest (a subscription):      INTEREST_STATES below.

Laws:
 1. An operation is sent again, unchanged and in order, after each reconnection until it is answered. A publish keeps
    its event's id, so the domain stores it once.
 2. An interest resumes after the last event it delivered; no offset is delivered twice.
 3. Missed events are reported: every hole in the offsets and every change of epoch is a Gap before the next event.
 4. An event that a publisher's retry at another replica has duplicated is delivered once (repeats.py).
 5. Late, repeated and unknown answers and frames are harmless; a malformed frame drops the connection.
"""

from __future__ import annotations

import itertools
import random as random_module
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from herald.answers import parse_text
from herald.backoff import Backoff
from herald.cloud_event import Event
from herald.errors import HeraldError, Problem
from herald.events import Gap, Item, Received, encode
from herald.repeats import RepeatDetector

Target = tuple[str, str]  # ("rp", reference) or ("subscription", id)
# Refusals that another replica may not share: not found, ended, not allowed.
HERE_ONLY = frozenset({"moved", "not-found", "gone", "forbidden", "unauthenticated", "token-revoked"})
INTEGER_MAX = 2**53 - 1  # greatest integer that JSON represents exactly (RFC 8259 section 6)
ACCEPTED_MAX = 10_000  # targets remembered as accepted somewhere
TROUBLED_S = 3.0  # a gateway with no other answers than `unavailable` for this long is left, if there is another
VALID_S_MAX = 600.0  # longest validity of a redirect that is believed
INTEREST_STATES: Mapping[str, frozenset[str]] = {
    "idle": frozenset({"asking", "parked", "ended"}),  # not known to the gateway; requested when there is a connection
    "asking": frozenset({"live", "idle", "parked", "ended"}),  # subscribe is sent, not answered
    "live": frozenset({"idle", "parked", "ended"}),  # events arrive
    "parked": frozenset({"idle", "ended"}),  # its reader is slow: only the position is kept, here and at the gateway
    "ended": frozenset(),
}


@dataclass(frozen=True, slots=True)
class Send:
    """Send this text frame."""

    text: str


@dataclass(frozen=True, slots=True)
class OperationAnswered:
    """Operation `id` succeeded with this answer."""

    id: int
    frame: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OperationRefused:
    """Operation `id` failed for good."""

    id: int
    error: Problem


@dataclass(frozen=True, slots=True)
class Established:
    """The gateway accepted the interest at this place; None: the first gap has the place."""

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
    """Another interest of this session is at the same RP: this one continues in another session (`adopt`)."""

    interest: Interest


@dataclass(frozen=True, slots=True)
class NotHere:
    """This replica refuses the interest: it continues in the session of another (`adopt`), or ends with `error`."""

    interest: Interest
    error: Problem


@dataclass(frozen=True, slots=True)
class OperationNotHere:
    """This replica refuses operation `id`: the target's operations continue elsewhere (`surrender`), or it ends
    (`abandon`).
    """

    id: int
    target: Target
    error: Problem


@dataclass(frozen=True, slots=True)
class Redirected:
    """These domains serve an RP as well, or instead. With `hops` and `valid_s` the gateway advises to move to one of them."""

    urls: object
    hops: int | None = None
    valid_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Alternatives:
    """These domains (`urls`, not checked) serve an RP as well, as the gateway ranks them for this session; `key` is that of the interest.

    None: the session publishes there.
    """

    key: int | None
    rp: str
    urls: list[object]


@dataclass(frozen=True, slots=True)
class Drop:
    """Close the socket and connect again: the gateway broke the protocol, or (`unavailable`) serves nothing now."""

    reason: str
    unavailable: bool = False


Output = (
    Send
    | OperationAnswered
    | OperationRefused
    | Established
    | Deliver
    | Ended
    | Collided
    | NotHere
    | OperationNotHere
    | Redirected
    | Alternatives
    | Drop
)


@dataclass(slots=True)
class PendingOperation:
    """A request that wants an answer. `waited`: its caller waits, so that reading must continue until it is answered.

    `target` is its object, if another replica could be asked as well; `sent`: an answer may arrive any moment.
    """

    text: str
    waited: bool
    backoff: Backoff
    target: Target | None = None
    sent: bool = False
    due_at: float | None = None


@dataclass(slots=True)
class Interest:
    """The target of one subscription, and its position. `epoch` None: no position is known yet."""

    key: int
    target: Target
    start: str | None  # the first `from`; None for a durable subscription, whose position the domain keeps
    backoff: Backoff
    state: str = "idle"
    rp: str | None = None
    asked_id: int = 0  # of the last subscribe
    epoch: str | None = None
    offset: int = 0
    cursor: str | None = None  # of that position; valid at all replicas of the RP
    repeats: RepeatDetector | None = None  # made when a cursor has a vector
    gap_due: bool = False  # the gateway stated `recovered: false`, and its gap frame has not arrived yet
    place_is_theirs: bool = False  # that gap replaces the position here, even backwards
    due_at: float | None = None

    def to(self, state: str) -> None:
        """Change state, along INTEREST_STATES only."""
        assert state in INTEREST_STATES[self.state], f"{self.state} -> {state}"  # noqa: S101 - only our own bug
        self.state = state

    @property
    def resume_from(self) -> str | None:
        """Return the `from` of the next subscribe."""
        if self.start is None:  # the domain keeps the position, but another replica may not know it
            return self.cursor if self.cursor is not None and "~" in self.cursor else None
        return self.start if self.epoch is None else self.cursor

    def passes(self, epoch: str, offset: int, cursor: str, event: Mapping[str, Any]) -> bool:
        """Record an event at an RP with replicas; return whether it was delivered before, from another domain's feed."""
        if self.repeats is None:
            self.repeats = RepeatDetector()
        self.epoch, self.offset, self.cursor = epoch, offset, cursor
        return self.repeats.repeated(cursor, event)

    def stand(self, epoch: str, offset: int, cursor: str) -> None:
        """Record that everything up to this place has been processed."""
        self.epoch, self.offset, self.cursor = epoch, offset, cursor
        if self.repeats is None and "~" in cursor:
            self.repeats = RepeatDetector()
        if self.repeats is not None:
            self.repeats.stand(cursor)


class Malformed(ValueError):
    """A frame violates the protocol."""


@dataclass(slots=True)
class SessionMachine:
    """The state of one logical connection; see the module. `random` jitters the repetition of operations that were
    refused for the moment.
    """

    random: random_module.Random
    operations: dict[int, PendingOperation] = field(default_factory=dict)
    interests: dict[int, Interest] = field(default_factory=dict)
    closing: Mapping[str, Any] | None = None  # the gateway's announcement that it is about to close
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))  # of operations
    accepted: set[Target] = field(
        default_factory=set
    )  # targets that some replica has served; sessions of a client share it
    elsewhere: bool = False  # there are other replicas: refusals in HERE_ONLY are not final
    troubled_since: float | None = None  # the gateway has answered `unavailable` since then, and nothing else
    _open: bool = False
    _held: bool = False
    _asks: dict[int, Interest] = field(default_factory=dict)
    _by_rp: dict[str, Interest] = field(default_factory=dict)
    _delayed: list[PendingOperation | Interest] = field(default_factory=list)
    _out: list[Output] = field(default_factory=list)

    def take(self) -> list[Output]:
        """Return the outputs, in order; each is returned once."""
        out, self._out = self._out, []
        return out

    @property
    def awaits_answer(self) -> bool:
        """Return whether a caller waits for an answer, so that reading must not stop."""
        return bool(self._asks) or any(operation.waited for operation in self.operations.values())

    @property
    def unanswered(self) -> bool:
        """Return whether an operation was sent and may be answered any moment."""
        return any(operation.sent for operation in self.operations.values())

    @property
    def due_at(self) -> float | None:
        """Return when `wake` is next needed."""
        return min((thing.due_at for thing in self._delayed if thing.due_at is not None), default=None)

    # ---- inputs of the program ----

    def submit(self, op: str, members: str, *, waited: bool = True, target: Target | None = None) -> int:
        """Request an operation; return its id, with which `OperationAnswered` or `OperationRefused` is returned later.

        `members` is the JSON text of an object with at least one member: the rest of the frame.
        """
        id = next(self.ids)
        operation = PendingOperation(f'{{"op":"{op}","id":{id},{members[1:]}', waited, Backoff(self.random), target)
        self.operations[id] = operation
        self._send(operation)
        return id

    def hold(self) -> None:
        """Send no more operations on this socket, which is to be closed once the sent ones are answered."""
        self._held = True

    def surrender(self, target: Target) -> dict[int, PendingOperation]:
        """Remove and return all operations about `target`, in order: another session takes them over."""
        given = {id: operation for id, operation in self.operations.items() if operation.target == target}
        for id, operation in given.items():
            del self.operations[id]
            operation.due_at = None
            operation.sent = False
        self._delayed = [thing for thing in self._delayed if thing.due_at is not None]
        return given

    def take_over(self, operations: Mapping[int, PendingOperation]) -> None:
        """Take over operations that another session surrendered; the ids of both are of one series."""
        for id, operation in operations.items():
            operation.backoff.reset()
            self.operations[id] = operation
            self._send(operation)

    def abandon(self, id: int) -> None:
        """Discard the answer of an operation; whether it took effect stays unknown."""
        operation = self.operations.pop(id, None)
        if operation is not None:
            operation.due_at = None

    def subscribe(self, key: int, target: Target, start: str | None) -> None:
        """Begin an interest under a `key` of the caller's."""
        interest = Interest(key, target, start, Backoff(self.random))
        self.interests[key] = interest
        if self._open:
            self._ask(interest)

    def adopt(self, interest: Interest) -> None:
        """Take over an interest, at its position, from a session in which it collided."""
        interest.backoff.reset()
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
        """Stop the flow of an interest whose reader is slow. Nothing is queued for it; `unpark` resumes at its
        position.
        """
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

    # ---- inputs of the connection ----

    def opened(self) -> None:
        """Record that a socket is open: request every interest, send everything unanswered again."""
        self._open = True
        self._held = False
        self.closing = self.troubled_since = None
        for interest in self.interests.values():
            if interest.state == "idle":
                self._ask(interest)
        for operation in self.operations.values():
            self._send(operation)

    def lost(self) -> None:
        """Record that the socket is lost; what it had not answered is sent on the next one."""
        self._open = False
        for operation in self.operations.values():
            operation.sent = False
        self._asks.clear()
        self._by_rp.clear()
        for thing in self._delayed:
            thing.due_at = None
        self._delayed.clear()
        for interest in self.interests.values():
            if interest.state in ("asking", "live"):
                interest.to("idle")

    def wake(self, now: float) -> None:
        """Send due operations again that were refused for the moment."""
        if self.due_at is None or self.due_at > now:
            return
        for interest in self.interests.values():
            if interest.due_at is not None and interest.due_at <= now:
                self._ask(interest)
        for operation in self.operations.values():
            if operation.due_at is not None and operation.due_at <= now:
                operation.due_at = None
                self._send(operation)
        self._delayed = [thing for thing in self._delayed if thing.due_at is not None]

    def received(self, text: str, now: float) -> None:
        """Process a frame that arrived at `now` (seconds of any steady clock)."""
        try:
            frame = parse_text(text)
            op = frame["op"]
            if op == "event":
                self._event(frame, len(text))
            elif op == "ok":
                self._ok(frame)
            elif op == "error":
                self._error(frame, now)
            elif op == "gap":
                self._gap(frame, len(text))
            elif op == "covered":
                self._covered(frame)
            elif op == "continued":
                self._continued(frame)
            elif op == "redirect":
                self._out.append(Redirected(frame["to"], *_advice(frame)))
            elif op == "alternatives":
                self._out.append(Alternatives(None, _text(frame, "rp"), _urls(frame)))
            elif op == "closing":
                self.closing = frame
            # Unknown operations are for newer clients.
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            self._out.append(Drop(f"The gateway sent a frame that is not understood ({type(error).__name__})."))

    # ---- frames ----

    def _event(self, frame: Mapping[str, Any], chars: int) -> None:
        interest = self._by_rp.get(frame["rp"]) or _nobody(frame)
        if interest is None:
            return
        epoch, offset, event = _text(frame, "epoch"), _number(frame, "offset"), frame["event"]
        if not isinstance(event, dict):
            raise Malformed("event")
        cursor = _cursor(frame) or f"{epoch}:{offset}"
        ours = epoch == interest.epoch and not interest.place_is_theirs
        if ours and offset <= interest.offset:
            return
        following = interest.offset + 1 if ours else 1
        if interest.gap_due or epoch != interest.epoch or offset > following:
            self._skip(interest, epoch, following, offset - 1)
        if "~" not in cursor:
            interest.epoch, interest.offset, interest.cursor = epoch, offset, cursor
        elif interest.passes(epoch, offset, cursor, event):
            return
        self._out.append(Deliver(interest.key, Received(Event(event), frame["rp"], epoch, offset, cursor), chars))

    def _covered(self, frame: Mapping[str, Any]) -> None:
        """Skip offsets whose events the reader already has, according to its cursor from another replica."""
        interest = self._by_rp.get(frame["rp"]) or _nobody(frame)
        if interest is None:
            return
        epoch, offset, cursor = _text(frame, "epoch"), _number(frame, "to"), _text(frame, "cursor")
        if epoch == interest.epoch and offset > interest.offset:
            interest.stand(epoch, offset, cursor)

    def _continued(self, frame: Mapping[str, Any]) -> None:
        """Go on in an epoch that continues the reader's: nothing is missing."""
        interest = self._by_rp.get(frame["rp"]) or _nobody(frame)
        if interest is None:
            return
        epoch, offset, previous = _text(frame, "epoch"), _number(frame, "offset"), frame["previous"]
        ended, end = _text(previous, "epoch"), _number(previous, "to")
        if ended != interest.epoch or interest.offset > end or interest.gap_due:
            return  # the next event shows what is missing
        if offset == interest.offset:
            interest.stand(epoch, offset, _cursor(frame) or f"{epoch}:{offset}")
        else:
            interest.epoch = epoch  # the older cursor remains as good

    def _gap(self, frame: Mapping[str, Any], chars: int) -> None:
        interest = self._by_rp.get(frame["rp"]) or _nobody(frame)
        if interest is None:
            return
        epoch, start, end = _text(frame, "epoch"), _number(frame, "from"), _number(frame, "to")
        ours = epoch == interest.epoch and not interest.place_is_theirs
        if interest.start is None and ours and "feeds" not in frame:
            # The gateway continues after what was acknowledged, this session after what was delivered: that part is not
            # missing.
            start = max(start, interest.offset + 1)
            if start > end:
                interest.gap_due = False
                return
        self._skip(interest, epoch, start, end, chars, _cursor(frame), _feeds(frame), _rewound(frame))

    def _skip(
        self,
        interest: Interest,
        epoch: str,
        start: int,
        end: int,
        chars: int = 0,
        cursor: str | None = None,
        feeds: Mapping[str, tuple[int, int]] | None = None,
        rewound: tuple[str, int, int] | None = None,
    ) -> None:
        """Deliver a gap and set the position behind it."""
        previous = interest.epoch if interest.epoch not in (None, epoch) else None
        interest.gap_due = interest.place_is_theirs = False
        interest.stand(epoch, end, cursor or f"{epoch}:{end}")
        gap = Gap(interest.rp or "", epoch, start, end, previous, interest.cursor or "", feeds or {}, rewound)
        self._out.append(Deliver(interest.key, gap, chars))

    def _ok(self, frame: Mapping[str, Any]) -> None:
        id = _ours(frame["id"])
        self.troubled_since = None
        if (operation := self._unanswered(id)) is not None:
            del self.operations[id]
            self._accept(operation.target)
            self._out.append(OperationAnswered(id, frame))
        elif (interest := self._asks.pop(id, None)) is not None:
            self._subscribed(interest, frame)

    def _subscribed(self, interest: Interest, frame: Mapping[str, Any]) -> None:
        rp, epoch, offset = _text(frame, "rp"), _text(frame, "epoch"), _number(frame, "offset")
        cursor = _cursor(frame) or f"{epoch}:{offset}"
        if rp in self._by_rp:
            self._collide(interest)
            self._out.append(Drop("The gateway let one connection read a rendezvous point twice."))
            return
        interest.to("live")
        interest.rp = rp
        interest.backoff.reset()
        self._by_rp[rp] = interest
        self._accept(interest.target)
        first = interest.epoch is None
        interest.gap_due = frame.get("recovered") is False
        # The gateway's position (of a durable subscription) may lie behind this session's, which then prevails.
        interest.place_is_theirs = interest.gap_due and (first or interest.start is not None)
        # Another epoch and nothing lost: another replica, which translated the cursor into a place of its own log.
        ahead = epoch != interest.epoch or (interest.start is not None and offset >= interest.offset)
        if first or (ahead and not interest.gap_due):
            interest.stand(epoch, offset, cursor)
        self._out.append(Established(interest.key, None if interest.gap_due else interest.cursor))
        if "alternatives" in frame:
            self._out.append(Alternatives(interest.key, rp, _urls(frame)))

    def _accept(self, target: Target | None) -> None:
        if target is not None and len(self.accepted) < ACCEPTED_MAX:
            self.accepted.add(target)

    def _error(self, frame: Mapping[str, Any], now: float) -> None:
        problem = Problem.from_document(frame)
        id = _ours(frame.get("id"))
        if (operation := self._unanswered(id)) is not None:
            operation.sent = False
            if problem.passing:
                self._trouble(problem, now)
                operation.due_at = now + operation.backoff.next(problem.retry_after_s)
                self._delayed.append(operation)
            elif operation.target is not None and self._only_here(problem):
                self._out.append(OperationNotHere(id, operation.target, problem))
            else:
                del self.operations[id]
                self._out.append(OperationRefused(id, problem))
        elif (interest := self._asks.pop(id, None)) is not None:
            self._not_subscribed(interest, problem, now)
        elif (ended := self._live_interest(frame)) is not None:
            self._not_subscribed(ended, problem, now)

    def _only_here(self, problem: Problem) -> bool:
        return problem.code == "moved" or (self.elsewhere and problem.code in HERE_ONLY)

    def _trouble(self, problem: Problem, now: float) -> None:
        if problem.code != "unavailable":
            return
        if self.troubled_since is None:
            self.troubled_since = now
        elif self.elsewhere and now - self.troubled_since >= TROUBLED_S:
            self._out.append(Drop("The gateway is not available.", unavailable=True))

    def _live_interest(self, frame: Mapping[str, Any]) -> Interest | None:
        """Return the interest whose reading the gateway ends, by the id of its subscribe or, without an id, by its RP."""
        id, rp = frame.get("id"), frame.get("rp")
        for interest in self._by_rp.values():
            if interest.rp == rp if id is None else interest.asked_id == _ours(id):
                return interest
        return None

    def _unanswered(self, id: int) -> PendingOperation | None:
        """Return the operation that was sent with this id and not answered since."""
        operation = self.operations.get(id)
        return operation if operation is not None and operation.sent else None

    def _not_subscribed(self, interest: Interest, problem: Problem, now: float) -> None:
        if interest.rp is not None and self._by_rp.get(interest.rp) is interest:
            del self._by_rp[interest.rp]
        if problem.passing:
            self._trouble(problem, now)
            interest.to("idle")
            interest.due_at = now + interest.backoff.next(problem.retry_after_s)
            self._delayed.append(interest)
        elif problem.code == "conflict" and interest.state == "asking" and len(self.interests) > 1:
            self._collide(interest)
        elif self._only_here(problem):
            self.interests.pop(interest.key, None)
            interest.to("idle")
            self._out.append(NotHere(interest, problem))
        else:
            self.interests.pop(interest.key, None)
            interest.to("ended")
            self._out.append(Ended(interest.key, problem))

    # ---- interests ----

    def _send(self, operation: PendingOperation) -> None:
        if self._open and not self._held:
            operation.sent = True
            self._out.append(Send(operation.text))

    def _ask(self, interest: Interest) -> None:
        interest.to("asking")
        interest.due_at = None
        id = next(self.ids)
        self._asks[id] = interest
        interest.asked_id = id
        members = dict([interest.target])
        if interest.resume_from is not None:
            members["from"] = interest.resume_from
        self._out.append(Send(encode({"op": "subscribe", "id": id, **members})))

    def _detach(self, interest: Interest) -> None:
        """End the interest at the gateway; events in flight for it are not delivered."""
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
            self._out.append(Send(encode({"op": "unsubscribe", "id": next(self.ids), kind: reference})))

    def _collide(self, interest: Interest) -> None:
        del self.interests[interest.key]
        interest.to("idle")
        self._out.append(Collided(interest))


def _text(frame: Mapping[str, Any], name: str) -> str:
    value = frame[name]
    if not isinstance(value, str) or not value:
        raise Malformed(name)
    if not value.isascii():
        value.encode()  # half a surrogate pair cannot be sent back
    return value


def _nobody(frame: Mapping[str, Any]) -> Interest | None:
    """Return None: no interest is at the RP of this frame. Raises Malformed if it names none."""
    _text(frame, "rp")
    return None


def _cursor(frame: Mapping[str, Any]) -> str | None:
    """Return the cursor of a frame; None if its epoch and offset are all there is."""
    return None if frame.get("cursor") is None else _text(frame, "cursor")


def _urls(frame: Mapping[str, Any]) -> list[object]:
    """Return the URLs of the alternatives that a frame names; none for a malformed value, which changes nothing else."""
    stated = frame.get("alternatives")
    return [one.get("url") for one in stated if isinstance(one, Mapping)] if isinstance(stated, list) else []


def _advice(frame: Mapping[str, Any]) -> tuple[int | None, float]:
    """Return `hops` and `valid_s` of a redirect; None and 0 if it is no valid advice to move."""
    hops, valid_s = _whole(frame.get("hops")), frame.get("valid_s")
    if hops is None or not isinstance(valid_s, int | float) or isinstance(valid_s, bool):
        return None, 0.0
    return hops, float(min(valid_s, VALID_S_MAX))


def _ours(id: object) -> int:
    """Return an id in this session's form; 0, which no operation has, for any other value."""
    return id if type(id) is int else 0


def _feeds(frame: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Return the gap's members by feed; none for a malformed value, which only the reader sees."""
    said = frame.get("feeds")
    if not isinstance(said, Mapping):
        return {}
    pairs = {feed: tuple(map(_whole, lost)) for feed, lost in said.items() if isinstance(lost, list) and len(lost) == 2}
    return {feed: (first, last) for feed, (first, last) in pairs.items() if first is not None and last is not None}


def _rewound(frame: Mapping[str, Any]) -> tuple[str, int, int] | None:
    """Return the gap's withdrawn events; None for none, and for a malformed value, which only the reader sees."""
    said = frame.get("rewound")
    if not isinstance(said, Mapping):
        return None
    epoch, start, end = said.get("epoch"), _whole(said.get("from")), _whole(said.get("to"))
    return (epoch, start, end) if isinstance(epoch, str) and start is not None and end is not None else None


def _number(frame: Mapping[str, Any], name: str) -> int:
    value = frame[name]
    if type(value) is int and -INTEGER_MAX <= value <= INTEGER_MAX:
        return value
    if (whole := _whole(value)) is None:
        raise Malformed(name)
    return whole


def _whole(value: object) -> int | None:
    """Return the integer that a JSON number is, 1.0 as well as 1; None for others, or beyond INTEGER_MAX."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and abs(value) <= INTEGER_MAX else None
