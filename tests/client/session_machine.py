"""The Python session machine behind the inputs and outputs of session_vectors.json, which session_vectors.py describes.

The counterpart in JavaScript is client/js/test/machine.js. What connection.py does around the pure modules, without its
sockets, is done here in the same order.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from herald.errors import Closed, HeraldError, Problem
from herald.events import Gap, Received, encode
from herald.reconnection import Reconnection
from herald.replica_locations import ReplicaLocations
from herald.rollover import Rollover, learnable
from herald.session import (
    Collided,
    Deliver,
    Drop,
    Ended,
    Established,
    Interest,
    NotHere,
    OperationAnswered,
    OperationNotHere,
    OperationRefused,
    Output,
    PendingOperation,
    Redirected,
    Send,
    SessionMachine,
    Target,
)

Neutral = dict[str, Any]


class Half(random.Random):
    """A source of randomness whose every number is one half."""

    def random(self) -> float:
        """One half."""
        return 0.5


class Machine:
    """One connection of a client, at the replicas `urls`; `to_others` makes one for what some of them refuse."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        refreshable: bool = False,
        where: ReplicaLocations | None = None,
        refused: Mapping[str, HeraldError] | None = None,
        ids: Iterator[int] | None = None,
        now: float = 0.0,
    ) -> None:
        self.where = where or ReplicaLocations(list(urls))
        self.ids = ids or itertools.count(1)
        self.rollover = Rollover(urls, Half(), refused or {}, now)
        self.session = SessionMachine(Half(), ids=self.ids, elsewhere=self.rollover.many)
        self.reconnection = Reconnection(self.rollover, self.session, refreshable)
        self.refreshable = refreshable
        self.leaving: dict[
            int, Interest | dict[int, PendingOperation]
        ] = {}  # key -> what another machine is to go on with
        self.left_at: dict[int, Target] = {}
        self.sent: list[Any] = []  # ids, in order
        self._operations: dict[int, int] = {}  # key of a request -> id of its operation
        self._now = now
        self._retry_at: float | None = None
        self._is_open = False
        self._held = False
        self._ended = False
        self._out: list[Neutral] = []

    def handle(self, do: str, at: int, **members: Any) -> list[Neutral]:
        """Take an input at `at` milliseconds; what is to be done, in order."""
        self._now = at / 1000
        self._out = []
        try:
            getattr(self, f"_{do}")(**members)
            self._carry_out()
        except HeraldError as error:
            self._ended = True
            self._out.append({"end": _code(error)})
        if do in ("frame", "wake") and not self._ended:
            self._say_retry()
        return self._out

    def to_others(self, key: int) -> Machine:
        """A machine for the replicas that have not refused what left with `key`."""
        target = self.left_at[key]
        return Machine(
            self.where.candidates(target),
            refreshable=self.refreshable,
            where=self.where,
            refused=self.where.refused(target),
            ids=self.ids,
            now=self._now,
        )

    def take_over(self, key: int, other: Machine, at: int) -> list[Neutral]:
        """Go on with what left `other`."""
        self._now = at / 1000
        self._out = []
        left = other.leaving.pop(key)
        if isinstance(left, Interest):
            self.session.adopt(left)
        else:
            self._operations[key] = next(iter(left))
            self.session.take_over(left)
        self._carry_out()
        return self._out

    # ---- inputs ----

    def _subscribe(self, key: int, **wish: str) -> None:
        target = ("subscription", wish["subscription"]) if "subscription" in wish else ("rp", wish["rp"])
        self.session.subscribe(key, target, wish.get("from"))

    def _unsubscribe(self, key: int) -> None:
        self.session.unsubscribe(key)

    def _pause(self, key: int) -> None:
        self.session.park(key)

    def _resume(self, key: int) -> None:
        self.session.unpark(key)

    def _request(self, key: int, frame: Mapping[str, Any]) -> None:
        members = {name: value for name, value in frame.items() if name != "op"}
        target = ("subscription", frame["subscription"]) if "subscription" in frame else ("rp", frame["rp"])
        self._operations[key] = self.session.submit(frame["op"], encode(members), target=target)

    def _abandon(self, key: int) -> None:
        self.session.abandon(self._operations.get(key, 0))

    def _dial(self) -> None:
        url, _ = self.rollover.next(self._now)
        self.reconnection.dialled(url)
        self._out.append({"connect": url})

    def _open(self) -> None:
        self._retry_at, self._held, self._is_open = None, False, True
        if (move := self.reconnection.opened(self._now)) is not None:
            self._out.append({"moved": {"from": move.old, "to": move.new, "reason": move.reason, "back": move.back}})
        self._say_probe()
        self.session.opened()

    def _frame(self, text: str) -> None:
        self.session.received(text, self._now)

    def _wake(self) -> None:
        self._retry_at = None
        self.session.wake(self._now)

    def _lost(self, code: int, reason: str = "") -> None:
        if self._is_open:
            self._is_open = False
            self.session.lost()
            self.reconnection.lost(code, reason, self._now)
        else:  # it was never open
            self.rollover.failed(self._now)
        self._say_reconnect()

    def _probed(self, good: bool) -> None:
        if self._held or self.rollover.probe_at is None:
            return
        if self.rollover.probed(good, self._now):
            self.session.hold()
            self._held = True
            self._go_back_when_answered()
        else:
            self._say_probe()

    def _return(self) -> None:
        if self._held:
            self._go_back()

    # ---- outputs ----

    def _carry_out(self) -> None:
        for output in self.session.take():
            self._do(output)

    def _do(self, output: Output) -> None:
        match output:
            case Send(text):
                frame = json.loads(text)
                self.sent.append(frame.pop("id"))
                self._out.append({"send": frame})
            case Deliver(key, Received() as item, _):
                place = {"epoch": item.epoch, "offset": item.offset, "cursor": item.cursor}
                self._out.append({"event": key, "rp": item.rp, **place, "value": dict(item.event)})
                self.reconnection.understood()
            case Deliver(key, Gap() as gap, _):
                withdrawn = zip(("epoch", "from", "to"), gap.rewound or (), strict=gap.rewound is not None)
                self._out.append(
                    {
                        "gap": key,
                        "rp": gap.rp,
                        "epoch": gap.epoch,
                        "from": gap.start,
                        "to": gap.end,
                        "previous_epoch": gap.previous_epoch,
                        "cursor": gap.cursor,
                        "feeds": {feed: list(lost) for feed, lost in gap.feeds.items()},
                        **({"rewound": dict(withdrawn)} if gap.rewound else {}),
                    }
                )
                self.reconnection.understood()
            case OperationAnswered(id, frame):
                self.reconnection.accepted()
                self.reconnection.understood()
                answer = {name: value for name, value in frame.items() if name not in ("op", "id")}
                self._out.append({"settled": self._key(id), "answer": answer})
                self._go_back_when_answered()
            case OperationRefused(id, error):
                self._out.append({"failed": self._key(id), "code": _code(error)})
                self._go_back_when_answered()
            case Established(key, cursor):
                self.reconnection.accepted()
                self._out.append({"live": key, "cursor": cursor})
            case Ended(key, error):
                self._out.append({"ended": key, "code": _code(error)})
            case Collided(interest):
                self._out.append({"ended": interest.key, "code": "conflict"})
            case NotHere(interest, error):
                self._elsewhere(interest, error)
            case OperationNotHere(id, target, error):
                self._operations_elsewhere(id, target, error)
                self._go_back_when_answered()
            case Redirected(urls):
                self.rollover.learn(learnable(urls, self.where.urls[0]))
                self.session.elsewhere = self.rollover.many
            case Drop():
                self._is_open = False
                self._out.append({"disconnect": True})
                self.session.lost()
                self.reconnection.dropped(output, self._now)
                self._say_reconnect()

    def _elsewhere(self, interest: Interest, error: Problem) -> None:
        end = self.where.refuses(interest.target, self.rollover.current, error)
        if end is not None:
            self._out.append({"ended": interest.key, "code": _code(end)})
            return
        self.leaving[interest.key] = interest
        self.left_at[interest.key] = interest.target
        self._out.append({"elsewhere": interest.key})

    def _operations_elsewhere(self, id: int, target: Target, error: Problem) -> None:
        end = self.where.refuses(target, self.rollover.current, error)
        if end is not None:
            self.session.abandon(id)
            self._out.append({"failed": self._key(id), "code": _code(end)})
            return
        for one, operation in self.session.surrender(target).items():
            key = self._key(one)
            self.leaving[key] = {one: operation}
            self.left_at[key] = target
            self._out.append({"elsewhere": key})

    def _go_back_when_answered(self) -> None:
        if self._held and not self.session.unanswered:
            self._go_back()

    def _go_back(self) -> None:
        self._held = False
        self._is_open = False
        self._out.append({"disconnect": True})
        self.session.lost()
        self.rollover.returning(self._now)
        self._say_reconnect()

    def _key(self, id: int) -> int:
        return next(key for key, one in self._operations.items() if one == id)

    def _say_reconnect(self) -> None:
        self._retry_at, self._held = None, False
        self._out.append({"reconnect_in_ms": round(self.rollover.next(self._now)[1] * 1000)})

    def _say_probe(self) -> None:
        if (probe_at := self.rollover.probe_at) is not None:
            self._out.append({"probe_at": round(probe_at * 1000)})

    def _say_retry(self) -> None:
        due_at = self.session.due_at
        if due_at is not None and due_at != self._retry_at:
            self._out.append({"retry_at": round(due_at * 1000)})
        self._retry_at = due_at


def _code(error: HeraldError) -> str | int:
    """What a program decides by: the code of a problem, or the close code."""
    return error.code if isinstance(error, Problem | Closed) else type(error).__name__


def play(scenario: Mapping[str, Any]) -> Iterator[tuple[int, list[Neutral], list[Neutral]]]:
    """The steps of a scenario: number, outputs of the machine, outputs expected."""
    machines = [Machine(scenario["urls"], refreshable=scenario["refreshable"])]
    for number, step in enumerate(scenario["steps"], 1):
        given = dict(step["in"])
        do, on = given.pop("do"), given.pop("on", 0)
        if do == "go-on":  # on a machine that may have to be made
            if on == len(machines):
                machines.append(machines[given["from"]].to_others(given["key"]))
            outputs = machines[on].take_over(given["key"], machines[given["from"]], step["at"])
        else:
            if do == "frame":
                given = {"text": _answering(given["text"], machines[on].sent)}
            outputs = machines[on].handle(do, step["at"], **given)
        yield number, outputs, step["out"]


def _answering(text: str, sent: Sequence[Any]) -> str:
    """`$sent(n)` stands for the id of the n-th frame that the machine sent."""
    return re.sub(r"\$sent\((\d+)\)", lambda found: json.dumps(sent[int(found[1]) - 1]), text)
