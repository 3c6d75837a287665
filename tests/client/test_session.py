"""The session's laws (client/herald/session.py), by plain calls and against a small model of a gateway."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from herald.errors import Problem
from herald.events import Gap, Received, encode
from herald.session import (
    INTEREST_STATES,
    Collided,
    Deliver,
    Drop,
    Ended,
    Established,
    OperationAnswered,
    OperationRefused,
    Send,
    SessionMachine,
)
from hypothesis import given, settings
from hypothesis import strategies as st

UNAVAILABLE: dict[str, Any] = {"type": "urn:herald:problem:unavailable", "title": "Service temporarily unavailable"}
FORBIDDEN: dict[str, Any] = {"type": "urn:herald:problem:forbidden", "title": "Operation not permitted"}
EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}


def opened() -> SessionMachine:
    session = SessionMachine(random.Random(1))
    session.opened()
    return session


def sent(session: SessionMachine) -> list[dict[str, Any]]:
    return [json.loads(output.text) for output in session.take() if isinstance(output, Send)]


def request(session: SessionMachine, now: float = 0.0, **frame: Any) -> list[Any]:
    session.received(json.dumps(frame), now)
    return session.take()


def delivered(outputs: list[Any]) -> list[Any]:
    return [output.item for output in outputs if isinstance(output, Deliver)]


def live(session: SessionMachine, key: int = 1, rp: str = "r", offset: int = 0, **more: Any) -> None:
    session.subscribe(key, ("rp", rp), "now")
    (ask,) = sent(session)
    request(session, op="ok", id=ask["id"], rp=rp, epoch="a", offset=offset, recovered=True, **more)


def event(offset: int, epoch: str = "a", rp: str = "r") -> dict[str, Any]:
    place = {"rp": rp, "epoch": epoch, "offset": offset, "cursor": f"{epoch}:{offset}"}
    return {"op": "event", **place, "event": EVENT}


# ---- operations ----


def test_an_unanswered_operation_is_sent_again_unchanged_and_in_order() -> None:
    session = opened()
    for number in range(3):
        session.submit("publish", encode({"rp": "r", "event": {"id": str(number)}}))
    first = sent(session)
    request(session, op="ok", id=first[1]["id"], epoch="a", offset=1)
    session.lost()
    assert session.take() == []
    session.opened()
    assert sent(session) == [first[0], first[2]]


def test_an_operation_asked_while_there_is_no_connection_is_sent_when_there_is_one() -> None:
    session = SessionMachine(random.Random(1))
    session.submit("publish", encode({"rp": "r"}))
    assert session.take() == []
    session.opened()
    assert [frame["op"] for frame in sent(session)] == ["publish"]


def test_a_passing_problem_is_tried_again_after_the_time_the_gateway_asked_for() -> None:
    session = opened()
    id = session.submit("publish", encode({"rp": "r"}))
    session.take()
    assert request(session, now=10.0, op="error", id=id, **UNAVAILABLE, retry_after_s=7) == []
    assert session.due_at is not None
    assert 17.0 <= session.due_at <= 17.1
    session.wake(16.0)
    assert session.take() == []
    session.wake(17.2)
    assert [frame["id"] for frame in sent(session)] == [id]
    assert session.due_at is None


def test_any_other_problem_ends_the_operation() -> None:
    session = opened()
    id = session.submit("publish", encode({"rp": "r"}))
    session.take()
    (refused,) = request(session, op="error", id=id, **FORBIDDEN, detail="Ask the creator.")
    assert isinstance(refused, OperationRefused)
    assert (refused.error.code, refused.error.detail) == ("forbidden", "Ask the creator.")
    session.lost()
    session.opened()
    assert session.take() == []


def test_an_answer_for_an_abandoned_or_unknown_operation_is_harmless() -> None:
    session = opened()
    id = session.submit("publish", encode({"rp": "r"}))
    session.abandon(id)
    session.take()
    assert request(session, op="ok", id=id) == []
    assert request(session, op="error", id=99, **FORBIDDEN) == []
    assert request(session, op="ok", id="text") == []


def test_an_abandoned_operation_that_was_due_again_is_not_sent() -> None:
    session = opened()
    id = session.submit("publish", encode({"rp": "r"}))
    request(session, op="error", id=id, **UNAVAILABLE)
    session.abandon(id)
    session.wake(1000.0)
    assert session.take() == []


def test_an_answer_is_given_once() -> None:
    session = opened()
    id = session.submit("ack", encode({"subscription": "s"}))
    session.take()
    assert [type(output) for output in request(session, op="ok", id=id)] == [OperationAnswered]
    assert request(session, op="ok", id=id) == []


# ---- resuming ----


def test_a_subscription_resumes_after_the_last_event_it_delivered() -> None:
    session = opened()
    live(session)
    assert [item.offset for item in delivered(request(session, **event(1)))] == [1]
    session.lost()
    session.opened()
    (ask,) = sent(session)
    assert (ask["op"], ask["from"]) == ("subscribe", "a:1")


def test_a_subscription_from_now_that_saw_no_event_resumes_where_it_began() -> None:
    session = opened()
    live(session, offset=7)
    session.lost()
    session.opened()
    assert sent(session)[0]["from"] == "a:7"


def test_a_subscription_that_was_never_accepted_asks_as_it_did_at_first() -> None:
    session = opened()
    session.subscribe(1, ("rp", "r"), "last")
    session.lost()
    session.take()
    session.opened()
    assert sent(session)[0]["from"] == "last"


def test_no_offset_is_delivered_twice() -> None:
    session = opened()
    live(session)
    request(session, **event(1))
    assert request(session, **event(1)) == []


def test_a_durable_subscription_does_not_deliver_again_what_was_not_acknowledged() -> None:
    session = opened()
    session.subscribe(1, ("subscription", "s"), None)
    (ask,) = sent(session)
    assert ask == {"op": "subscribe", "id": ask["id"], "subscription": "s"}
    request(session, op="ok", id=ask["id"], rp="r", epoch="a", offset=0, recovered=True)
    request(session, **event(1))
    session.lost()
    session.opened()
    (ask,) = sent(session)
    assert "from" not in ask
    request(session, op="ok", id=ask["id"], rp="r", epoch="a", offset=0, recovered=True)
    assert [item.offset for item in delivered([*request(session, **event(1)), *request(session, **event(2))])] == [2]


# ---- gaps ----


def test_a_hole_in_the_offsets_is_a_gap_before_the_next_event() -> None:
    session = opened()
    live(session)
    gap, received = delivered(request(session, **event(4)))
    assert (gap.start, gap.end, gap.missing) == (1, 3, 3)
    assert received.offset == 4


def test_a_gap_frame_is_delivered_and_reading_goes_on_behind_it() -> None:
    session = opened()
    live(session)
    (gap,) = delivered(request(session, op="gap", rp="r", epoch="a", **{"from": 1, "to": 5}))
    assert (gap.start, gap.end, gap.cursor, gap.previous_epoch) == (1, 5, "a:5", None)
    (received,) = delivered(request(session, **event(6)))
    assert isinstance(received, Received)


def test_a_new_epoch_is_a_gap_even_if_none_of_it_is_missing() -> None:
    session = opened()
    live(session)
    request(session, **event(1))
    session.lost()
    session.opened()
    (ask,) = sent(session)
    (established,) = request(session, op="ok", id=ask["id"], rp="r", epoch="b", offset=0, recovered=False)
    assert established == Established(1, None)
    (gap,) = delivered(request(session, op="gap", rp="r", epoch="b", **{"from": 1, "to": 0}))
    assert (gap.epoch, gap.previous_epoch, gap.missing, gap.cursor) == ("b", "a", 0, "b:0")
    assert [item.offset for item in delivered(request(session, **event(1, "b")))] == [1]


def test_an_event_of_another_epoch_is_never_taken_for_the_next_one() -> None:
    session = opened()
    live(session)
    request(session, **event(1))
    gap, received = delivered(request(session, **event(1, "b")))
    assert (gap.previous_epoch, gap.missing, received.epoch, received.offset) == ("a", 0, "b", 1)


def test_an_answer_of_not_recovered_without_its_gap_frame_is_a_gap_all_the_same() -> None:
    session = opened()
    session.subscribe(1, ("rp", "r"), "x:9")
    (ask,) = sent(session)
    request(session, op="ok", id=ask["id"], rp="r", epoch="a", offset=4, recovered=False)
    gap, received = delivered(request(session, **event(5)))
    assert (gap.start, gap.end) == (1, 4)
    assert received.offset == 5


def test_a_log_shorter_than_our_place_begins_anew_visibly() -> None:
    session = opened()
    live(session, offset=9)
    (gap,) = delivered(request(session, op="gap", rp="r", epoch="a", **{"from": 1, "to": 0}))
    assert isinstance(gap, Gap)
    assert [item.offset for item in delivered(request(session, **event(1)))] == [1]


def test_a_durable_gap_says_only_what_was_not_delivered_before() -> None:
    session = opened()
    session.subscribe(1, ("subscription", "s"), None)
    (ask,) = sent(session)
    request(session, op="ok", id=ask["id"], rp="r", epoch="a", offset=0, recovered=True)
    for offset in (1, 2, 3):
        request(session, **event(offset))
    session.lost()
    session.opened()
    (ask,) = sent(session)
    request(session, op="ok", id=ask["id"], rp="r", epoch="a", offset=5, recovered=False)
    (gap,) = delivered(request(session, op="gap", rp="r", epoch="a", **{"from": 1, "to": 5}))
    assert (gap.start, gap.end) == (4, 5)


# ---- at another replica ----


def at(feed_a: int, feed_b: int) -> str:
    return f"~{'a' * 16}={feed_a}.{'b' * 16}={feed_b}"


def vector_event(epoch: str, offset: int, vector: str, id: str) -> dict[str, Any]:
    return {**event(offset, epoch), "cursor": f"{epoch}:{offset}{vector}", "event": {**EVENT, "id": id}}


def moved(session: SessionMachine, target: tuple[str, str] = ("rp", "r"), **ok: Any) -> list[Any]:
    """Read one event at a replica with epoch `x`, then come up at another with epoch `y`; what its answer gives."""
    session.subscribe(1, target, None if target[0] == "subscription" else "earliest")
    (ask,) = sent(session)
    request(session, op="ok", id=ask["id"], rp="r", epoch="x", offset=0, recovered=True, cursor=f"x:0{at(0, 0)}")
    assert len(delivered(request(session, **vector_event("x", 1, at(1, 0), "one")))) == 1
    session.lost()
    session.opened()
    (ask,) = sent(session)
    assert ask["from"] == f"x:1{at(1, 0)}"
    return request(session, op="ok", id=ask["id"], rp="r", epoch="y", **ok)


@pytest.mark.parametrize("target", [("rp", "r"), ("subscription", "s")])
def test_at_another_replica_reading_goes_on_from_the_vector_without_a_gap(target: tuple[str, str]) -> None:
    session = opened()
    (established,) = moved(session, target, offset=0, recovered=True, cursor=f"y:0{at(1, 0)}")
    assert established == Established(1, f"y:0{at(1, 0)}")
    (item,) = delivered(request(session, **vector_event("y", 1, at(1, 1), "two")))
    assert (item.id, item.cursor) == ("two", f"y:1{at(1, 1)}")


def test_offsets_that_the_cursor_covers_are_passed_over_in_silence() -> None:
    session = opened()
    moved(session, offset=0, recovered=True, cursor=f"y:0{at(1, 0)}")
    assert request(session, op="covered", rp="r", epoch="y", **{"from": 1, "to": 3}, cursor=f"y:3{at(1, 0)}") == []
    assert [item.id for item in delivered(request(session, **vector_event("y", 4, at(1, 1), "two")))] == ["two"]
    session.lost()
    session.opened()
    assert sent(session)[0]["from"] == f"y:4{at(1, 1)}"


def test_what_was_lost_between_replicas_is_a_gap_and_its_cursor_counts() -> None:
    session = opened()
    assert moved(session, offset=5, recovered=False, cursor=f"y:5{at(4, 2)}") == [Established(1, None)]
    feeds = {"a" * 16: [2, 4], "b" * 16: [1, 2]}
    lost: dict[str, Any] = {"from": 1, "to": 5, "feeds": feeds, "cursor": f"y:5{at(4, 2)}"}
    (gap,) = delivered(request(session, op="gap", rp="r", epoch="y", **lost))
    assert (gap.start, gap.end, gap.cursor) == (1, 5, f"y:5{at(4, 2)}")
    assert gap.feeds == {"a" * 16: (2, 4), "b" * 16: (1, 2)}
    assert [item.id for item in delivered(request(session, **vector_event("y", 6, at(5, 2), "two")))] == ["two"]


def test_an_event_that_a_publisher_s_retry_doubled_in_another_feed_is_delivered_once() -> None:
    session = opened()
    moved(session, offset=0, recovered=True, cursor=f"y:0{at(1, 0)}")
    assert request(session, **vector_event("y", 1, at(1, 1), "one")) == []
    assert (
        len(delivered(request(session, **vector_event("y", 2, at(2, 1), "one")))) == 1
    )  # in the same feed: as the domain says


def test_a_hole_in_a_feed_of_a_durable_subscription_is_told_although_no_offset_is_missing() -> None:
    session = opened()
    moved(session, ("subscription", "s"), offset=0, recovered=True, cursor=f"y:0{at(1, 0)}")
    hole: dict[str, Any] = {"from": 1, "to": 0, "feeds": {"b" * 16: [1, 6]}, "cursor": f"y:0{at(1, 6)}"}
    (gap,) = delivered(request(session, op="gap", rp="r", epoch="y", **hole))
    assert gap.cursor == f"y:0{at(1, 6)}"


def test_nothing_new_is_sent_while_the_connection_is_about_to_go_back() -> None:
    session = opened()
    first = session.submit("publish", encode({"rp": "r"}))
    session.take()
    session.hold()
    second = session.submit("publish", encode({"rp": "r"}))
    assert sent(session) == []
    assert session.unanswered
    request(session, op="ok", id=first, epoch="a", offset=1)
    assert not session.unanswered
    session.lost()
    session.opened()
    assert [frame["id"] for frame in sent(session)] == [second]


# ---- parking, ending ----


def test_a_parked_subscription_gets_nothing_and_goes_on_where_it_was() -> None:
    session = opened()
    live(session)
    request(session, **event(1))
    session.park(1)
    assert [frame["op"] for frame in sent(session)] == ["unsubscribe"]
    assert request(session, **event(2)) == []
    session.lost()
    session.opened()
    assert session.take() == []
    session.unpark(1)
    assert sent(session)[0]["from"] == "a:1"


def test_a_subscription_can_be_parked_while_it_is_being_asked_for() -> None:
    session = opened()
    session.subscribe(1, ("rp", "r"), "now")
    (ask,) = sent(session)
    session.park(1)
    session.take()
    assert request(session, op="ok", id=ask["id"], rp="r", epoch="a", offset=0, recovered=True) == []


def test_a_refused_subscription_ends_with_the_problem() -> None:
    session = opened()
    session.subscribe(1, ("rp", "r"), "now")
    (ask,) = sent(session)
    (ended,) = request(session, op="error", id=ask["id"], **FORBIDDEN)
    assert isinstance(ended, Ended)
    assert isinstance(ended.error, Problem)
    session.lost()
    session.opened()
    assert session.take() == []


def test_a_subscription_refused_for_the_moment_is_asked_for_again() -> None:
    session = opened()
    session.subscribe(1, ("rp", "r"), "now")
    (ask,) = sent(session)
    assert request(session, op="error", id=ask["id"], **UNAVAILABLE) == []
    session.wake(1.0)
    assert sent(session)[0]["from"] == "now"


@pytest.mark.parametrize("by_id", [True, False])
def test_a_subscription_that_the_gateway_ends_later_ends_with_the_problem(by_id: bool) -> None:
    session = opened()
    session.subscribe(1, ("rp", "r"), "now")
    (ask,) = sent(session)
    request(session, op="ok", id=ask["id"], rp="r", epoch="a", offset=0, recovered=True)
    whose = {"id": ask["id"]} if by_id else {"id": None, "rp": "r"}
    (ended,) = request(session, op="error", **whose, type="urn:herald:problem:gone", title="Resource no longer exists")
    assert isinstance(ended, Ended)
    assert request(session, **event(1)) == []


def test_two_subscriptions_at_one_rendezvous_point_collide_and_the_later_keeps_its_place() -> None:
    session = opened()
    live(session)
    session.subscribe(2, ("rp", "/d/name/"), "earliest")
    (ask,) = sent(session)
    (collided,) = request(
        session, op="error", id=ask["id"], type="urn:herald:problem:conflict", title="Conflict", rp="r"
    )
    assert isinstance(collided, Collided)
    other = opened()
    other.adopt(collided.interest)
    assert sent(other)[0]["from"] == "earliest"


def test_a_gateway_that_lets_one_connection_read_twice_loses_the_connection() -> None:
    session = opened()
    live(session)
    session.subscribe(2, ("rp", "/d/name/"), "earliest")
    (ask,) = sent(session)
    outputs = request(session, op="ok", id=ask["id"], rp="r", epoch="a", offset=0, recovered=True)
    assert [type(output) for output in outputs] == [Collided, Drop]


def test_an_unsubscribed_subscription_delivers_nothing_more() -> None:
    session = opened()
    live(session)
    session.unsubscribe(1)
    assert [(frame["op"], frame["rp"]) for frame in sent(session)] == [("unsubscribe", "r")]
    assert request(session, **event(1)) == []
    session.unsubscribe(1)
    assert session.take() == []


# ---- what is not understood ----


@pytest.mark.parametrize(
    "text",
    [
        "", "no json", "[]", "1", "null", '{"op": 1', "{}", '{"op":"event"}', '{"op":"event","rp":[]}',
        '{"op":"event","rp":"r","epoch":"a","offset":"1","event":{}}',
        '{"op":"event","rp":"r","epoch":"a","offset":true,"event":{}}',
        '{"op":"event","rp":"r","epoch":"a","offset":1,"event":[]}',
        '{"op":"gap","rp":"r","from":1}', '{"op":"ok"}', "[" * 100_000,
    ],
)  # fmt: skip
def test_a_frame_that_is_not_understood_drops_the_connection_and_nothing_else(text: str) -> None:
    session = opened()
    live(session)
    session.received(text, 0.0)
    assert [type(output) for output in session.take()] == [Drop]


def test_unknown_operations_are_ignored() -> None:
    assert request(opened(), op="hint", rp="r", to=["https://elsewhere"]) == []


def test_the_states_of_an_interest_lead_only_to_known_states() -> None:
    assert set().union(*INTEREST_STATES.values()) <= set(INTEREST_STATES)


# ---- a model of the gateway ----

STEPS = st.lists(
    st.sampled_from(
        ["append", "append", "append", "send", "send", "trim", "cut", "renew epoch", "park", "unpark", "repeat"]
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.sampled_from(["now", "earliest"]))
def test_whatever_happens_every_offset_is_delivered_once_or_said_to_be_missing(steps: list[str], start: str) -> None:
    gateway = ModelGateway()
    session = SessionMachine(random.Random(1))
    session.subscribe(1, ("rp", "r"), start)
    items: list[Any] = []

    def settle() -> None:
        while outputs := session.take():
            items.extend(delivered(outputs))
            for output in outputs:
                if isinstance(output, Send):
                    for frame in gateway.answer(json.loads(output.text)):
                        session.received(json.dumps(frame), 0.0)

    session.opened()
    settle()
    begun = gateway.place
    for step in steps:
        if step == "cut":
            session.lost()
            gateway.reading = False
            session.opened()
        elif step == "park":
            session.park(1)
        elif step == "unpark":
            session.unpark(1)
        else:
            for frame in gateway.do(step):
                session.received(json.dumps(frame), 0.0)
        settle()
    session.unpark(1)
    settle()
    for frame in gateway.send_all():
        session.received(json.dumps(frame), 0.0)
    settle()
    _assert_complete(items, begun, (gateway.epoch, gateway.end))


def _assert_complete(items: list[Any], begun: tuple[str, int], end: tuple[str, int]) -> None:
    epoch, offset = begun
    for item in items:
        if isinstance(item, Gap):
            assert item.start == (offset + 1 if item.epoch == epoch else 1)
            assert (item.previous_epoch is None) == (item.epoch == epoch)
            epoch, offset = item.epoch, item.end
        else:
            assert (item.epoch, item.offset) == (epoch, offset + 1)
            offset += 1
    assert (epoch, offset) == end


class ModelGateway:
    """One RP's log and one reader's place, as docs/protocol.md has them."""

    def __init__(self) -> None:
        self.number = 0
        self.first, self.end = 1, 0
        self.next = 1
        self.reading = False
        self.read_epoch = self.epoch

    @property
    def epoch(self) -> str:
        return f"e{self.number}"

    @property
    def place(self) -> tuple[str, int]:
        return self.read_epoch, self.next - 1

    def answer(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        if frame["op"] == "unsubscribe":
            self.reading = False
            return [{"op": "ok", "id": frame["id"]}]
        epoch, _, offset = frame["from"].partition(":")
        wanted = {"now": self.end, "earliest": self.first - 1}.get(epoch, int(offset or 0)) + 1
        recovered = not offset or (epoch == self.epoch and self.first <= wanted <= self.end + 1)
        gap_from = wanted if epoch == self.epoch else 1
        self.next = wanted if recovered else self.first
        self.reading, self.read_epoch = True, self.epoch
        ok = {"op": "ok", "id": frame["id"], "rp": "r", "epoch": self.epoch, "offset": self.next - 1}
        gap = {"op": "gap", "rp": "r", "epoch": self.epoch, "from": gap_from, "to": self.first - 1}
        return [{**ok, "recovered": recovered}, *([] if recovered else [gap])]

    def do(self, step: str) -> list[dict[str, Any]]:
        if step == "append":
            self.end += 1
        elif step == "trim" and self.first < self.end:
            self.first += 1
        elif step == "renew epoch":
            self.number += 1
            self.first, self.end = 1, 0
        elif step == "send":
            return self.send(1)
        elif step == "repeat" and self.reading and self.next > 1 and self.read_epoch == self.epoch:
            return [event(self.next - 1, self.epoch)]
        return []

    def send(self, count: int) -> list[dict[str, Any]]:
        if not self.reading:
            return []
        frames = []
        if self.read_epoch != self.epoch:
            frames.append({"op": "gap", "rp": "r", "epoch": self.epoch, "from": 1, "to": self.first - 1})
            self.read_epoch, self.next = self.epoch, self.first
        if self.next < self.first:
            frames.append({"op": "gap", "rp": "r", "epoch": self.epoch, "from": self.next, "to": self.first - 1})
            self.next = self.first
        while count > 0 and self.next <= self.end:
            frames.append(event(self.next, self.epoch))
            self.next += 1
            count -= 1
        return frames

    def send_all(self) -> list[dict[str, Any]]:
        return self.send(self.end + 1)
