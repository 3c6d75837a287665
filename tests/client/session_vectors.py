"""Vectors for the client's session machine, which exists in Python and in JavaScript: what happens, and what must be done then.

Each scenario is a list of inputs with the outputs that docs/protocol.md asks for, written by hand. Both machines are driven
through an adapter (session_machine.py, client/js/test/machine.js) with the back-off of the Python client, 0.1 s to 15 s, and
with every random number one half.

Inputs are `{"do": ...}`; `at` is the time in milliseconds:
    subscribe unsubscribe pause resume request abandon    the program's, with a `key` of its choice
    dial open lost                                        the connection is dialled, is open, was closed with a `code`
    frame                                                 `text` was received; `$sent(n)` is the id of the n-th frame sent
    wake                                                  a timer of what is to be sent again: maybe early, late or repeated
    probed return                                         the preferred replica was asked; the time for answers before the return is over
    go-on                                                 the machine `on` goes on with what left the machine `from`
Outputs: `connect`, `send` (a frame without its id), `live`, `event`, `gap`, `ended`, `settled`, `failed`, `elsewhere` (left, for
another replica), `retry_at` and `probe_at` (when `wake` and `probed` are wanted), `moved`, `disconnect`, `reconnect_in_ms`, and `end`
of the whole, with a problem's code or a close code.

    .venv/bin/python -m tests.client.session_vectors
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("session_vectors.json")
A, B, C = "https://a.example", "https://b.example", "https://c.example"
RP, OTHER = "r" * 26, "s" * 26
NAME, OTHER_NAME = "/a.example/weather/", "/a.example/traffic/"
UNAVAILABLE = "urn:herald:problem:unavailable"
F, G = "f" * 16, "g" * 16  # feeds
JsonObject = dict[str, Any]
SCENARIOS: list[JsonObject] = []


def scenario(name: str, *steps: Any, urls: tuple[str, ...] = (A,), refreshable: bool = False) -> None:
    """Add a scenario; a step may be a list of steps, and without a time of its own is at that of the one before."""
    flat: list[JsonObject] = []
    at = 0
    for one in steps:
        for step in one if isinstance(one, list) else [one]:
            at = step["at"] if step["at"] is not None else at
            flat.append({**step, "at": at})
    SCENARIOS.append({"name": name, "urls": list(urls), "refreshable": refreshable, "steps": flat})


def step(do: str, *out: JsonObject, at: int | None = None, **given: Any) -> JsonObject:
    """An input, and the outputs expected."""
    members = {name.rstrip("_"): value for name, value in given.items()}
    return {"at": at, "in": {"do": do, **members}, "out": list(out)}


# ---- inputs ----


def text(frame: str, *out: JsonObject, at: int | None = None, on: int = 0) -> JsonObject:
    """The domain sends this text."""
    return step("frame", *out, at=at, text=frame, **({"on": on} if on else {}))


def frame(members: JsonObject, *out: JsonObject, at: int | None = None, on: int = 0) -> JsonObject:
    """The domain sends this frame; an `id` such as `$sent(1)` becomes one of ours."""
    return text(json.dumps(members).replace('"$sent(', "$sent(").replace(')$"', ")"), *out, at=at, on=on)


def sent(number: int) -> str:
    """The id of the frame that was sent as the `number`-th."""
    return f"$sent({number})$"


def ok(number: int, **members: Any) -> JsonObject:
    """The answer to the frame that was sent as the `number`-th."""
    return {"op": "ok", "id": sent(number), **members}


def subscribed(number: int, offset: int = 0, epoch: str = "e", rp: str = RP, **members: Any) -> JsonObject:
    """The answer to a subscribe."""
    place = {"rp": rp, "epoch": epoch, "offset": offset, "cursor": f"{epoch}:{offset}", "recovered": True}
    return ok(number, **{**place, **members})


def error(number: int, code: str, **members: Any) -> JsonObject:
    """The refusal of the frame that was sent as the `number`-th."""
    return {
        "op": "error",
        "id": sent(number),
        "type": f"urn:herald:problem:{code}",
        "title": "T",
        "detail": "D",
        **members,
    }


def cloud(id: str) -> JsonObject:
    """A CloudEvent."""
    return {"specversion": "1.0", "id": id, "source": "/s", "type": "t"}


def event(offset: int, epoch: str = "e", rp: str = RP, **members: Any) -> JsonObject:
    """The frame of an event."""
    place = {
        "rp": rp,
        "epoch": epoch,
        "offset": offset,
        "cursor": f"{epoch}:{offset}",
        "event": cloud(f"{epoch}{offset}"),
    }
    return {"op": "event", **place, **members}


def gap(first: int, last: int, epoch: str = "e", **members: Any) -> JsonObject:
    """The frame of a gap."""
    return {"op": "gap", "rp": RP, "epoch": epoch, "from": first, "to": last, **members}


def continued(epoch: str, offset: int, before: str, end: int) -> JsonObject:
    """The frame of an epoch that continues the one before."""
    place = {"epoch": epoch, "offset": offset, "cursor": f"{epoch}:{offset}"}
    return {"op": "continued", "rp": RP, **place, "previous": {"epoch": before, "to": end}}


def vector(epoch: str, offset: int, f: int, g: int) -> str:
    """A cursor where the RP has replicas."""
    return f"{epoch}:{offset}~{F}={f}.{G}={g}"


# ---- outputs ----


def sends(op: str, **members: Any) -> JsonObject:
    """A frame is sent."""
    return {"send": {"op": op, **{name.rstrip("_"): value for name, value in members.items()}}}


def live(key: int, cursor: str | None) -> JsonObject:
    """A subscription is live."""
    return {"live": key, "cursor": cursor}


def gets(key: int, offset: int, epoch: str = "e", rp: str = RP, cursor: str = "", value: Any = None) -> JsonObject:
    """A subscription gets the event of the same offset."""
    place = {"rp": rp, "epoch": epoch, "offset": offset, "cursor": cursor or f"{epoch}:{offset}"}
    return {"event": key, **place, "value": value or cloud(f"{epoch}{offset}")}


def misses(key: int, first: int, last: int, epoch: str = "e", before: str | None = None, **members: Any) -> JsonObject:
    """A subscription is told a gap."""
    place = {"rp": RP, "epoch": epoch, "from": first, "to": last, "previous_epoch": before, "cursor": f"{epoch}:{last}"}
    return {"gap": key, **place, "feeds": {}, **members}


def ended(key: int, code: str) -> JsonObject:
    """A subscription ended."""
    return {"ended": key, "code": code}


def failed(key: int, code: str) -> JsonObject:
    """A request failed."""
    return {"failed": key, "code": code}


def settled(key: int, **answer: Any) -> JsonObject:
    """A request was answered."""
    return {"settled": key, "answer": answer}


def connect(url: str = A) -> JsonObject:
    """A connection is opened."""
    return {"connect": url}


def again(ms: int) -> JsonObject:
    """The next connection is dialled in so many milliseconds."""
    return {"reconnect_in_ms": ms}


def moved(old: str, new: str, reason: str, *, back: bool = False) -> JsonObject:
    """The client goes on at another replica."""
    return {"moved": {"from": old, "to": new, "reason": reason, "back": back}}


DISCONNECT = {"disconnect": True}
DROPPED = (DISCONNECT, again(50))


# ---- what many begin with ----


def up(*out: JsonObject, url: str = A, at: int | None = None, on: int = 0) -> list[JsonObject]:
    """The connection is dialled and open; `out` is sent then."""
    more = {"on": on} if on else {}
    return [step("dial", connect(url), at=at, **more), step("open", *out, **more)]


def wants(key: int = 1, from_: str = "now", rp: str = NAME) -> JsonObject:
    """A subscription, before the connection is open."""
    return step("subscribe", key=key, rp=rp, from_=from_)


def reading(offset: int = 0, from_: str = "now", **members: Any) -> list[JsonObject]:
    """Subscription 1 is live."""
    accepted = subscribed(1, offset, **members)
    return [
        wants(from_=from_),
        *up(sends("subscribe", rp=NAME, from_=from_)),
        frame(accepted, live(1, accepted["cursor"] if accepted["recovered"] else None)),
    ]


def durable(offset: int = 0, **members: Any) -> list[JsonObject]:
    """Durable subscription 1 is live."""
    accepted = subscribed(1, offset, subscription="sub_x", **members)
    begun = live(1, accepted["cursor"] if accepted["recovered"] else None)
    return [
        step("subscribe", key=1, subscription="sub_x"),
        *up(sends("subscribe", subscription="sub_x")),
        frame(accepted, begun),
    ]


def publish(id: str, rp: str = NAME) -> JsonObject:
    """A request to publish."""
    return {"op": "publish", "rp": rp, "event": cloud(id)}


def asks(key: int, request: JsonObject, *out: JsonObject, at: int | None = None) -> JsonObject:
    """A request, which is sent at once unless `out` tells otherwise."""
    return step("request", *(out or ({"send": request},)), at=at, key=key, frame=request)


def cut(ms: int = 50, at: int | None = None, code: int = 1006) -> JsonObject:
    """The connection breaks."""
    return step("lost", again(ms), at=at, code=code)


ONE, TWO, THREE = publish("one"), publish("two"), publish("three")
ACK = {"op": "ack", "subscription": "sub_x", "cursor": "e:5"}
RENEW = {"op": "renew", "rp": NAME, "lease_s": 60}

# ---- subscribing and being answered ----

scenario(
    "what is wanted before the connection is open is sent then: subscriptions, then requests, in their order",
    wants(1),
    step("request", key=3, frame=ONE),
    wants(2, "earliest", OTHER_NAME),
    step("request", key=4, frame=TWO),
    up(
        sends("subscribe", rp=NAME, from_="now"),
        sends("subscribe", rp=OTHER_NAME, from_="earliest"),
        {"send": ONE},
        {"send": TWO},
    ),
    frame(subscribed(1, 7), live(1, "e:7")),
    frame(subscribed(2, 3, "x", OTHER), live(2, "x:3")),
    frame(event(4, "x", OTHER), gets(2, 4, "x", OTHER)),
    frame(event(8), gets(1, 8)),
)
scenario(
    "what is wanted while the connection is open is sent at once",
    reading(),
    step("subscribe", sends("subscribe", rp=OTHER_NAME, from_="last"), key=2, rp=OTHER_NAME, from_="last"),
    asks(3, ONE),
)
scenario(
    "an answer without a cursor is at its epoch and offset",
    wants(),
    up(sends("subscribe", rp=NAME, from_="now")),
    frame({**subscribed(1, 7), "cursor": None}, live(1, "e:7")),
    frame({**event(8), "cursor": None}, gets(1, 8)),
)
scenario(
    "a subscription that is refused for good ends; the others go on",
    reading(),
    step("subscribe", sends("subscribe", rp=OTHER_NAME, from_="now"), key=2, rp=OTHER_NAME, from_="now"),
    frame(error(2, "forbidden"), ended(2, "forbidden")),
    frame(event(1), gets(1, 1)),
    cut(),
    up(sends("subscribe", rp=NAME, from_="e:1")),
)
scenario(
    "a request is settled by its answer, once, and failed by a final refusal",
    reading(),
    asks(2, ONE),
    asks(3, TWO),
    frame(ok(2, epoch="e", offset=1, duplicate=True), settled(2, epoch="e", offset=1, duplicate=True)),
    frame(ok(2, epoch="e", offset=1)),
    frame(error(2, "forbidden")),
    frame(error(3, "invalid-event", index=0), failed(3, "invalid-event")),
    frame(ok(3)),
    cut(),
    up(sends("subscribe", rp=NAME, from_="e:0")),
)
scenario(
    "unanswered requests are sent again, unchanged and in order, on each new connection until they are answered",
    reading(),
    asks(2, ONE),
    asks(3, TWO),
    asks(4, THREE),
    frame(ok(3), settled(3)),
    cut(),
    step("request", key=5, frame=TWO),
    up(sends("subscribe", rp=NAME, from_="e:0"), {"send": ONE}, {"send": THREE}, {"send": TWO}),
    frame(ok(6), settled(2)),
    cut(100),
    up(sends("subscribe", rp=NAME, from_="e:0"), {"send": THREE}, {"send": TWO}),
)
scenario(
    "an abandoned request is not sent again, and its late answer is ignored",
    reading(),
    asks(2, ONE),
    asks(3, TWO),
    step("abandon", key=2),
    step("abandon", key=2),
    step("abandon", key=9),
    frame(ok(2)),
    frame(error(3, "unavailable"), {"retry_at": 50}),
    step("abandon", key=3),
    step("wake", at=60),
    cut(),
    up(sends("subscribe", rp=NAME, from_="e:0")),
)
scenario(
    "acknowledgements and renewals of leases are requests like any other",
    durable(4),
    frame(event(5), gets(1, 5)),
    asks(2, ACK),
    asks(3, RENEW),
    cut(),
    up(sends("subscribe", subscription="sub_x"), {"send": ACK}, {"send": RENEW}),
    frame(ok(5, subscription="sub_x", cursor="e:9"), settled(2, subscription="sub_x", cursor="e:9")),
    frame(ok(6, lease={"granted_s": 60}), settled(3, lease={"granted_s": 60})),
    asks(4, {**ACK, "cursor": "x:1"}),
    frame(error(7, "invalid-cursor", epoch="e"), failed(4, "invalid-cursor")),
    asks(5, {"op": "renew", "subscription": "sub_x"}),
    frame(error(8, "gone"), failed(5, "gone")),
)

# ---- refused for the moment ----

scenario(
    "what is refused for the moment is sent again after a back-off that doubles; early, late and repeated timers are harmless",
    reading(),
    step("wake"),
    asks(2, ONE, at=1000),
    frame(error(2, "unavailable"), {"retry_at": 1050}),
    step("wake", {"retry_at": 1050}, at=1020),
    step("wake", {"send": ONE}, at=1051),
    step("wake", at=1060),
    frame(error(3, "timeout"), {"retry_at": 1160}),
    step("wake", {"send": ONE}, at=9000),
    frame(error(4, "rate-limited"), {"retry_at": 9200}),
    step("wake", {"send": ONE}, at=9200),
    frame(error(5, "ack-unavailable"), {"retry_at": 9600}),
    step("wake", {"send": ONE}, at=9600),
    frame(ok(6), settled(2)),
    step("wake", at=9999),
)
scenario(
    "the back-off of a request goes on over connections",
    wants(),
    step("request", key=2, frame=ONE),
    up(sends("subscribe", rp=NAME, from_="now"), {"send": ONE}),
    frame(error(2, "unavailable"), {"retry_at": 50}),
    frame(error(1, "unavailable")),
    cut(),
    step("wake", at=60),
    up(sends("subscribe", rp=NAME, from_="now"), {"send": ONE}),
    frame(error(4, "unavailable"), {"retry_at": 160}),
    frame(error(3, "unavailable")),
    step("wake", sends("subscribe", rp=NAME, from_="now"), {"send": ONE}, at=161),
)
scenario(
    "a subscription that was accepted begins its back-off anew",
    wants(),
    up(sends("subscribe", rp=NAME, from_="now")),
    frame(error(1, "unavailable"), {"retry_at": 50}),
    step("wake", sends("subscribe", rp=NAME, from_="now"), at=50),
    frame(error(2, "unavailable"), {"retry_at": 150}),
    step("wake", sends("subscribe", rp=NAME, from_="now"), at=151),
    frame(subscribed(3), live(1, "e:0")),
    frame(event(1), gets(1, 1)),
    frame(error(3, "unavailable", rp=RP), {"retry_at": 201}),
    frame(event(2)),
    step("wake", sends("subscribe", rp=NAME, from_="e:1"), at=202),
)
scenario(
    "what is due at once is sent in the order of the first time, not of the refusals",
    reading(),
    asks(2, ONE),
    asks(3, TWO),
    frame(error(3, "unavailable"), {"retry_at": 50}),
    frame(error(2, "unavailable")),
    step("wake", {"send": ONE}, {"send": TWO}, at=51),
)
scenario(
    "a time that the domain asks for is added to the back-off, 300 s at most; what is no such time is none",
    reading(),
    asks(2, ONE),
    frame(error(2, "rate-limited", retry_after_s=7), {"retry_at": 7050}),
    step("wake", {"send": ONE}, at=7051),
    frame(error(3, "rate-limited", retry_after_s=4000), {"retry_at": 307_151}),
    step("wake", {"send": ONE}, at=307_152),
    frame(error(4, "rate-limited", retry_after_s=-7), {"retry_at": 307_352}),
    step("wake", {"send": ONE}, at=307_353),
    frame(error(5, "rate-limited", retry_after_s="7"), {"retry_at": 307_753}),
    step("wake", {"send": ONE}, at=307_754),
    frame(error(6, "rate-limited", retry_after_s=True), {"retry_at": 308_554}),
)
scenario(
    "a time that no number holds is 300 s",
    reading(),
    asks(2, ONE),
    text(f'{{"op":"error","id":$sent(2),"type":"{UNAVAILABLE}","retry_after_s":1{"0" * 400}}}', {"retry_at": 300_050}),
)
scenario(
    "an unknown problem is judged by its status",
    reading(),
    *[asks(key, ONE) for key in (2, 3, 4, 5)],
    frame(error(2, "from-the-future", status=503), {"retry_at": 50}),
    frame(error(3, "from-the-future", status=409), failed(3, "from-the-future")),
    frame(error(4, "from-the-future"), failed(4, "from-the-future")),
    frame({"op": "error", "id": sent(5), "type": "about:blank", "status": 429}),
    step("wake", {"send": ONE}, {"send": ONE}, at=51),
)
scenario(
    "an answer counts once for each time that its request was sent",
    reading(),
    asks(2, ONE),
    frame(error(2, "unavailable"), {"retry_at": 50}),
    frame(ok(2)),
    frame(error(2, "forbidden")),
    step("wake", {"send": ONE}, at=51),
    frame(ok(3), settled(2)),
)

# ---- events and gaps ----

scenario(
    "no offset is delivered twice, and a hole in the offsets is a gap before the next event",
    reading(),
    frame(event(1), gets(1, 1)),
    frame(event(1)),
    frame(event(4), misses(1, 2, 3), gets(1, 4)),
    frame(event(3)),
    frame(event(5), gets(1, 5)),
)
scenario(
    "reading goes on behind a gap, which may be of a length that is not known, or put the place back",
    reading(9),
    frame(gap(10, 12), misses(1, 10, 12)),
    frame(event(13), gets(1, 13)),
    frame(gap(14, 13), misses(1, 14, 13)),
    frame(event(14), gets(1, 14)),
    frame(gap(1, 0), misses(1, 1, 0)),
    frame(event(1), gets(1, 1)),
)
scenario(
    "a new epoch is a gap, told or not, and whatever is missing of it",
    reading(),
    frame(event(1), gets(1, 1)),
    frame(gap(1, 0, "x"), misses(1, 1, 0, "x", "e")),
    frame(event(1, "x"), gets(1, 1, "x")),
    frame(event(1, "y"), misses(1, 1, 0, "y", "x"), gets(1, 1, "y")),
    frame(event(3, "z"), misses(1, 1, 2, "z", "y"), gets(1, 3, "z")),
)
scenario(
    "an epoch that is continued is no gap, however far the domain has given events again",
    reading(),
    frame(event(1), gets(1, 1)),
    frame(continued("x", 1, "e", 1)),
    frame(event(2, "x"), gets(1, 2, "x")),
    frame(event(3, "x"), gets(1, 3, "x")),
    frame(continued("y", 1, "x", 7)),
    frame(event(2, "y")),
    frame(event(4, "y"), gets(1, 4, "y")),
    cut(),
    up(sends("subscribe", rp=NAME, from_="y:4")),
)
scenario(
    "what is continued not as far as the events that were given, or another epoch, is a gap",
    reading(),
    frame(event(1), gets(1, 1)),
    frame(event(2), gets(1, 2)),
    frame(continued("x", 1, "e", 1)),
    frame(event(2, "x"), misses(1, 1, 1, "x", "e"), gets(1, 2, "x")),
    frame(continued("z", 2, "y", 2)),
    frame(event(3, "z"), misses(1, 1, 2, "z", "x"), gets(1, 3, "z")),
)
scenario(
    "a gap says which events were withdrawn, and puts the place back",
    reading(),
    frame(event(1), gets(1, 1)),
    frame(event(2), gets(1, 2)),
    frame(
        gap(2, 1, "x", rewound={"epoch": "e", "from": 2, "to": 2}),
        misses(1, 2, 1, "x", "e", rewound={"epoch": "e", "from": 2, "to": 2}),
    ),
    frame(event(2, "x"), gets(1, 2, "x")),
    frame(gap(3, 4, "x", rewound={"epoch": "x", "from": "3"}), misses(1, 3, 4, "x")),
)
scenario(
    "an answer that something is missing says no place, the gap does",
    reading(),
    frame(event(1), gets(1, 1)),
    cut(),
    up(sends("subscribe", rp=NAME, from_="e:1")),
    frame(subscribed(2, 4, "x", recovered=False), live(1, None)),
    frame(gap(1, 4, "x"), misses(1, 1, 4, "x", "e")),
    frame(event(5, "x"), gets(1, 5, "x")),
)
scenario(
    "a gap that was announced and does not come is told before the next event",
    reading(4, "x:9", recovered=False),
    frame(event(5), misses(1, 1, 4), gets(1, 5)),
    frame(event(6), gets(1, 6)),
)
scenario(
    "a log that lost its end puts the place back",
    reading(9),
    cut(),
    up(sends("subscribe", rp=NAME, from_="e:9")),
    frame(subscribed(2, 0, recovered=False), live(1, None)),
    frame(gap(1, 0), misses(1, 1, 0)),
    frame(event(1), gets(1, 1)),
)
scenario(
    "events, gaps and covered offsets of what is not read are ignored, and so are operations that are not known",
    reading(),
    frame(event(1, rp=OTHER)),
    frame({**gap(1, 2), "rp": OTHER}),
    frame({"op": "covered", "rp": OTHER, "epoch": "e", "from": 1, "to": 2, "cursor": "e:2"}),
    frame({"op": "from-the-future", "rp": [1]}),
    frame({"op": 5}),
    frame(ok(1)),
    text('{"op":"ok","id":999}'),
    text('{"op":"ok","id":"text"}'),
    text('{"op":"ok","id":[]}'),
    text('{"op":"error","id":null,"type":"urn:herald:problem:invalid-request"}'),
    text('{"op":"error","id":true,"type":"urn:herald:problem:forbidden"}'),
    text('{"op":"error"}'),
    frame(event(1), gets(1, 1)),
)
scenario(
    "an id of another type than ours is nobody's",
    reading(),
    asks(2, ONE),
    text('{"op":"ok","id":true}'),
    text('{"op":"ok","id":{}}'),
    text('{"op":"ok","id":"2"}'),
    frame(ok(2), settled(2)),
)
scenario(
    "a number that is written with a fraction of nothing is a whole one",
    reading(),
    text(f'{{"op":"event","rp":"{RP}","epoch":"e","offset":1.0,"event":{{"id":"1"}}}}', gets(1, 1, value={"id": "1"})),
)

# ---- connections ----

scenario(
    "a subscription resumes behind the last event that it delivered",
    reading(),
    frame(event(1), gets(1, 1)),
    frame(event(2), gets(1, 2)),
    cut(),
    up(sends("subscribe", rp=NAME, from_="e:2"), at=50),
    frame(subscribed(2, 2), live(1, "e:2")),
    frame(event(2)),
    frame(event(3), gets(1, 3)),
)
scenario(
    "a subscription that saw no event resumes where it began; one that was never accepted as it was asked for",
    reading(41),
    step("subscribe", sends("subscribe", rp=OTHER_NAME, from_="last"), key=2, rp=OTHER_NAME, from_="last"),
    cut(),
    up(sends("subscribe", rp=NAME, from_="e:41"), sends("subscribe", rp=OTHER_NAME, from_="last")),
)
scenario(
    "connections that fail are tried again ever more rarely, up to the cap",
    wants(),
    *[
        one
        for ms in (50, 100, 200, 400, 800, 1600, 3200, 6400, 7500, 7500)
        for one in (step("dial", connect()), step("lost", again(ms), code=1006))
    ],
)
scenario(
    "a connection that lasted begins the back-off anew, one that did not goes on with it",
    wants(),
    *[one for ms in (50, 100, 200) for one in (step("dial", connect()), step("lost", again(ms), code=1006))],
    up(sends("subscribe", rp=NAME, from_="now")),
    cut(400, at=4999),
    up(sends("subscribe", rp=NAME, from_="now"), at=10_000),
    cut(50, at=15_000),
    up(sends("subscribe", rp=NAME, from_="now"), at=15_050),
    cut(100),
)
for code in (1000, 1001, 1005, 1011, 1012, 1013, 3000, 4000, 4001, 4002, 4003, 4004, 4099, 4200):
    scenario(f"close code {code} is tried again", reading(), cut(code=code))
for code in (1002, 1003, 1007, 1008, 1009, 4100, 4101, 4102, 4103, 4104, 4105, 4106, 4199):
    scenario(f"close code {code} is the end", reading(), asks(2, ONE), step("lost", {"end": code}, code=code))
for code in (4102, 4103):
    scenario(
        f"close code {code}, about one reading, does not end the others",
        reading(),
        step("subscribe", sends("subscribe", rp=OTHER_NAME, from_="now"), key=2, rp=OTHER_NAME, from_="now"),
        cut(code=code),
    )
scenario(
    "a close that was announced as final is the end",
    reading(),
    frame({"op": "closing", "reason": "moved away", "retry": False}),
    step("lost", {"end": 1006}, code=1006),
)
scenario(
    "a close that was announced as passing is tried again, whatever the code; the announcement is of one connection",
    reading(),
    frame({"op": "closing", "reason": "server-restarting", "retry": True}),
    cut(code=1008),
    up(sends("subscribe", rp=NAME, from_="e:0")),
    step("lost", {"end": 1008}, code=1008),
)
scenario(
    "a domain that is restarting says when to connect again; what is no time is ignored, and no wait is longer than 300 s",
    reading(),
    frame({"op": "closing", "reason": "server-restarting", "retry": True, "retry_after_ms": 400}),
    cut(450, code=4000),
    [
        one
        for number, (stated, out) in enumerate(
            [(-5, 100), ("400", 200), (True, 400), (None, 800), ([], 1600), (10**400, 303200)]
        )
        for one in (
            *up(sends("subscribe", rp=NAME, from_="e:0"), at=500 + number),
            frame({"op": "closing", "reason": "server-restarting", "retry": True, "retry_after_ms": stated}),
            cut(out, code=4000),
        )
    ],
)
scenario(
    "an announcement that does not say whether to try again leaves that to the code",
    reading(),
    frame({"op": "closing", "reason": {"no": "text"}, "retry": "no"}),
    cut(),
    up(sends("subscribe", rp=NAME, from_="e:0")),
    frame({"op": "closing", "reason": {"no": "text"}}),
    step("lost", {"end": 4101}, code=4101),
)
scenario(
    "an expired token is refreshed at once, and once until something is accepted",
    reading(),
    frame({"op": "closing", "reason": "token-expired", "retry": False}),
    cut(0, code=4100),
    up(sends("subscribe", rp=NAME, from_="e:0")),
    frame(subscribed(2), live(1, "e:0")),
    cut(0, code=4100),
    up(sends("subscribe", rp=NAME, from_="e:0")),
    step("lost", {"end": 4100}, code=4100),
    refreshable=True,
)
scenario(
    "an answer to a request shows that the fresh token is taken",
    step("request", key=1, frame=ONE),
    up({"send": ONE}),
    cut(0, code=4100),
    up({"send": ONE}),
    frame(ok(2), settled(1)),
    asks(2, TWO),
    cut(0, code=4100),
    up({"send": TWO}),
    refreshable=True,
)

scenario(
    "what was announced counts as well for a connection that is given up",
    reading(),
    frame({"op": "closing", "reason": "moved away", "retry": False}),
    text("nonsense", DISCONNECT, {"end": 1006}),
)

# ---- what is not understood ----

for number, garbage in enumerate(
    [
        "", "{nonsense", "[]", "1", "null", '"event"', "{}", '{"op":"ok"}', '{"op":"event"}', '{"op":"event","rp":[]}',
        '{"op":"event","rp":5}', '{"op":"redirect"}', '{"op":"gap"}', '{"op":"covered"}', '{"op":"continued"}', "[" * 5000,
        '{"op":"event","rp":"RP","offset":1,"event":{}}',
        '{"op":"event","rp":"RP","epoch":1,"offset":1,"event":{}}',
        '{"op":"event","rp":"RP","epoch":"","offset":1,"event":{}}',
        '{"op":"event","rp":"RP","epoch":"e","event":{}}',
        '{"op":"event","rp":"RP","epoch":"e","offset":"1","event":{}}',
        '{"op":"event","rp":"RP","epoch":"e","offset":true,"event":{}}',
        '{"op":"event","rp":"RP","epoch":"e","offset":1.5,"event":{}}',
        '{"op":"event","rp":"RP","epoch":"e","offset":9007199254740993,"event":{}}',
        '{"op":"event","rp":"RP","epoch":"e","offset":1e999,"event":{}}',
        '{"op":"event","rp":"RP","epoch":"e","offset":NaN,"event":{}}',
        '{"op":"event","rp":"RP","epoch":"e","offset":1}',
        '{"op":"event","rp":"RP","epoch":"e","offset":1,"event":[]}',
        '{"op":"event","rp":"RP","epoch":"e","offset":1,"event":null}',
        '{"op":"event","rp":"RP","epoch":"e","offset":1,"event":"text"}',
        '{"op":"event","rp":"RP","epoch":"e","offset":1,"event":{},"cursor":5}',
        '{"op":"event","rp":"RP","epoch":"e","offset":1,"event":{},"cursor":["~"]}',
        '{"op":"event","rp":"RP","epoch":"e","offset":1,"event":{},"cursor":""}',
        '{"op":"event","rp":"RP","epoch":"e","offset":1,"event":{},"cursor":"e:1\\ud800"}',
        '{"op":"event","rp":"RP","epoch":"\\udc00","offset":1,"event":{}}',
        '{"op":"event","rp":"RP","epoch":"e","offset":3,"event":{},"cursor":5}',
        '{"op":"gap","rp":"RP","from":1,"to":2}',
        '{"op":"gap","rp":"RP","epoch":"e","from":1}',
        '{"op":"gap","rp":"RP","epoch":"e","from":null,"to":2}',
        '{"op":"gap","rp":"RP","epoch":"e","from":1,"to":2,"cursor":{}}',
        '{"op":"covered","rp":"RP","epoch":"e","from":1,"cursor":"e:2"}',
        '{"op":"covered","rp":"RP","epoch":"e","from":1,"to":2}',
        '{"op":"continued","rp":"RP","epoch":"x","offset":1,"cursor":"x:1"}',
        '{"op":"continued","rp":"RP","epoch":"x","offset":1,"cursor":"x:1","previous":{"epoch":"e"}}',
    ]
):  # fmt: skip
    scenario(
        f"a frame that is not understood costs the connection, not the place: {number} {garbage[:60]}",
        reading(),
        text(garbage.replace("RP", RP), *DROPPED),
        frame(event(1)),
        up(sends("subscribe", rp=NAME, from_="e:0")),
    )
for wrong in (
    {"rp": 5}, {"rp": None}, {"epoch": None}, {"epoch": ["e"]}, {"offset": "0"}, {"offset": None}, {"cursor": 1}, {"cursor": "\ud800"},
):  # fmt: skip
    scenario(
        f"an answer to a subscribe that is not understood costs the connection: {json.dumps(wrong)}",
        wants(),
        up(sends("subscribe", rp=NAME, from_="now")),
        frame({**subscribed(1), **wrong}, *DROPPED),
        up(sends("subscribe", rp=NAME, from_="now")),
    )
scenario(
    "a problem whose members are of other types than they should be is a problem without them",
    reading(),
    asks(2, ONE),
    asks(3, TWO),
    frame({**error(2, ""), "type": 5, "title": ["T"], "detail": {}, "status": "503"}, failed(2, "")),
    text('{"op":"error","id":$sent(3)}', failed(3, "")),
)
scenario(
    "a domain that sends nothing that is understood over five connections is given up",
    reading(),
    text("nonsense", DISCONNECT, again(50)),
    up(sends("subscribe", rp=NAME, from_="e:0")),
    text("nonsense", DISCONNECT, again(100)),
    up(sends("subscribe", rp=NAME, from_="e:0")),
    text("nonsense", DISCONNECT, again(200)),
    up(sends("subscribe", rp=NAME, from_="e:0")),
    frame(subscribed(4), live(1, "e:0")),
    frame(event(1), gets(1, 1)),
    text("nonsense", DISCONNECT, again(400)),
    up(sends("subscribe", rp=NAME, from_="e:1")),
    asks(2, ONE),
    frame(ok(6), settled(2)),
    *[
        one
        for ms in (800, 1600, 3200, 6400)
        for one in (
            text("nonsense", DISCONNECT, again(ms)),
            *up(sends("subscribe", rp=NAME, from_="e:1")),
        )
    ],
    text("nonsense", DISCONNECT, {"end": ""}),
)

# ---- ending, pausing ----

scenario(
    "what is unsubscribed delivers nothing more, wherever it stood",
    reading(),
    step("unsubscribe", sends("unsubscribe", rp=RP), key=1),
    step("unsubscribe", key=1),
    step("unsubscribe", key=77),
    frame(event(1)),
    frame(ok(2, rp=RP)),
    step("subscribe", sends("subscribe", rp=NAME, from_="earliest"), key=2, rp=NAME, from_="earliest"),
    frame(event(1)),
    step("unsubscribe", sends("unsubscribe", rp=NAME), key=2),
    frame(subscribed(3)),
    frame(event(1)),
    step("subscribe", sends("subscribe", rp=NAME, from_="last"), key=3, rp=NAME, from_="last"),
    frame(error(5, "unavailable"), {"retry_at": 50}),
    step("unsubscribe", key=3),
    step("wake", at=51),
    cut(at=60),
    step("subscribe", key=4, subscription="sub_x"),
    step("unsubscribe", key=4),
    up(),
)
scenario(
    "a durable subscription is unsubscribed by its id",
    durable(),
    step("unsubscribe", sends("unsubscribe", subscription="sub_x"), key=1),
    frame(error(2, "not-found")),
)
scenario(
    "an error for a reading that was accepted long ago ends it, by its id or by its rendezvous point",
    reading(),
    step("subscribe", sends("subscribe", rp=OTHER_NAME, from_="now"), key=2, rp=OTHER_NAME, from_="now"),
    frame(subscribed(2, 0, "x", OTHER), live(2, "x:0")),
    frame(error(2, "gone", rp=OTHER), ended(2, "gone")),
    frame(error(2, "gone", rp=OTHER)),
    frame(event(1, "x", OTHER)),
    frame(event(1), gets(1, 1)),
    frame({**error(1, "forbidden", rp=OTHER), "id": None}),
    frame({**error(1, "forbidden", rp=RP), "id": None}, ended(1, "forbidden")),
    frame(event(2)),
)
scenario(
    "a paused subscription holds its place and nothing else",
    reading(),
    frame(event(1), gets(1, 1)),
    step("pause", sends("unsubscribe", rp=RP), key=1),
    step("pause", key=1),
    frame(event(2)),
    cut(),
    up(),
    step("resume", sends("subscribe", rp=NAME, from_="e:1"), key=1),
    step("resume", key=1),
    frame(event(3)),
    frame(subscribed(3, 1), live(1, "e:1")),
    frame(event(2), gets(1, 2)),
    step("pause", sends("unsubscribe", rp=RP), key=1),
    cut(100),
    step("resume", key=1),
    up(sends("subscribe", rp=NAME, from_="e:2")),
    step("pause", sends("unsubscribe", rp=RP), key=1),
    frame(subscribed(5, 2)),
    step("resume", sends("subscribe", rp=NAME, from_="e:2"), key=1),
    frame(error(7, "unavailable"), {"retry_at": 50}),
    step("pause", key=1),
    step("wake", at=51),
    step("resume", sends("subscribe", rp=NAME, from_="e:2"), key=1),
    step("pause", key=77),
    step("resume", key=77),
)
scenario(
    "a second subscription at a rendezvous point is refused and does not disturb the first",
    reading(),
    step("subscribe", sends("subscribe", rp=RP, from_="earliest"), key=2, rp=RP, from_="earliest"),
    frame(error(2, "conflict", rp=RP), ended(2, "conflict")),
    frame(event(1), gets(1, 1)),
)
scenario(
    "a domain that lets one connection read a rendezvous point twice loses the connection, not the first reader",
    reading(),
    step("subscribe", sends("subscribe", rp=RP, from_="earliest"), key=2, rp=RP, from_="earliest"),
    frame(subscribed(2), ended(2, "conflict"), *DROPPED),
    up(sends("subscribe", rp=NAME, from_="e:0")),
    frame(subscribed(3), live(1, "e:0")),
    frame(event(1), gets(1, 1)),
)

# ---- durable subscriptions ----

scenario(
    "a durable subscription does not deliver again what was delivered and not acknowledged",
    durable(4),
    *[frame(event(offset), gets(1, offset)) for offset in (5, 6, 7)],
    cut(),
    up(sends("subscribe", subscription="sub_x")),
    frame(subscribed(2, 4), live(1, "e:7")),
    *[frame(event(offset)) for offset in (5, 6, 7)],
    frame(event(8), gets(1, 8)),
)
scenario(
    "of a gap behind what was acknowledged only what was not delivered is missing",
    durable(4),
    *[frame(event(offset), gets(1, offset)) for offset in (5, 6, 7)],
    cut(),
    up(sends("subscribe", subscription="sub_x")),
    frame(subscribed(2, 4, recovered=False), live(1, None)),
    frame(gap(5, 6)),
    frame(event(8), gets(1, 8)),
    cut(100),
    up(sends("subscribe", subscription="sub_x")),
    frame(subscribed(3, 4, recovered=False), live(1, None)),
    frame(gap(5, 9), misses(1, 9, 9)),
    frame(event(10), gets(1, 10)),
)
scenario(
    "a durable subscription whose first answer says that something is missing takes its place from the gap",
    durable(4, recovered=False),
    frame(gap(1, 2), misses(1, 1, 2)),
    frame(event(3), gets(1, 3)),
)
scenario(
    "a durable subscription in a new epoch is told the gap whole",
    durable(4),
    cut(),
    up(sends("subscribe", subscription="sub_x")),
    frame(subscribed(2, 0, "x", recovered=False), live(1, None)),
    frame(gap(1, 3, "x"), misses(1, 1, 3, "x", "e")),
    frame(event(4, "x"), gets(1, 4, "x")),
)

# ---- replicas of a rendezvous point ----


def at_replica(epoch: str, offset: int, f: int, g: int, id: str) -> JsonObject:
    """The frame of an event where the RP has replicas."""
    return event(offset, epoch, cursor=vector(epoch, offset, f, g), event=cloud(id))


def gets_at(epoch: str, offset: int, f: int, g: int, id: str) -> JsonObject:
    """Subscription 1 gets that event."""
    return gets(1, offset, epoch, cursor=vector(epoch, offset, f, g), value=cloud(id))


def at_another(
    begin: list[JsonObject], ask: JsonObject, epoch: str = "y", offset: int = 0, **members: Any
) -> list[JsonObject]:
    """After the event `one` of feed f in epoch x the connection comes up at a replica with another epoch."""
    answer = subscribed(2, offset, epoch, cursor=vector(epoch, offset, 1, 0), **members)
    return [
        *begin,
        frame(at_replica("x", 1, 1, 0, "one"), gets_at("x", 1, 1, 0, "one")),
        cut(),
        *up({"send": {**ask["send"], "from": vector("x", 1, 1, 0)}}),
        frame(answer, live(1, answer["cursor"] if answer["recovered"] else None)),
    ]


READER = (reading(0, "earliest", epoch="x", cursor=vector("x", 0, 0, 0)), sends("subscribe", rp=NAME))
HOLDER = (durable(0, epoch="x", cursor=vector("x", 0, 0, 0)), sends("subscribe", subscription="sub_x"))
scenario(
    "at another replica reading goes on from the vector, without a gap, and covered offsets are passed over",
    at_another(*READER),
    frame({"op": "covered", "rp": RP, "epoch": "y", "from": 1, "to": 3, "cursor": vector("y", 3, 1, 0)}),
    frame({"op": "covered", "rp": RP, "epoch": "y", "from": 1, "to": 2, "cursor": vector("y", 2, 1, 0)}),
    frame({"op": "covered", "rp": RP, "epoch": "x", "from": 1, "to": 9, "cursor": vector("x", 9, 1, 0)}),
    frame(at_replica("y", 4, 1, 1, "two"), gets_at("y", 4, 1, 1, "two")),
    cut(100),
    up(sends("subscribe", rp=NAME, from_=vector("y", 4, 1, 1))),
)
scenario(
    "a durable subscription takes its vector to another replica",
    at_another(*HOLDER),
    frame(at_replica("y", 1, 1, 1, "two"), gets_at("y", 1, 1, 1, "two")),
)
scenario(
    "what was lost between replicas is a gap with feeds; its cursor counts, and what is no pair of numbers is left out",
    at_another(*READER, offset=5, recovered=False),
    frame(
        gap(1, 5, "y", cursor=vector("y", 5, 4, 2), feeds={F: [2, 4], G: [1, 2], "a": "all", "b": [1], "c": [1, None], "d": [True, 2], "e": [1, 1.5]}),
        misses(1, 1, 5, "y", "x", cursor=vector("y", 5, 4, 2), feeds={F: [2, 4], G: [1, 2]}),
    ),
    frame(at_replica("y", 6, 5, 2, "two"), gets_at("y", 6, 5, 2, "two")),
)  # fmt: skip
for feeds in ([[1, 2]], "text", 5, None):
    scenario(
        f"feeds of a gap that are no object are none: {json.dumps(feeds)}",
        reading(),
        frame(gap(1, 2, feeds=feeds), misses(1, 1, 2)),
    )
scenario(
    "a hole in a feed of a durable subscription is told although no offset is missing",
    at_another(*HOLDER),
    frame(
        gap(1, 0, "y", cursor=vector("y", 0, 1, 6), feeds={G: [1, 6]}),
        misses(1, 1, 0, "y", cursor=vector("y", 0, 1, 6), feeds={G: [1, 6]}),
    ),
)
scenario(
    "an event that a publisher's retry doubled in another feed is delivered once; in the same feed as the domain gives it",
    at_another(*READER),
    frame(at_replica("y", 1, 1, 1, "one")),
    frame(at_replica("y", 2, 2, 1, "one"), gets_at("y", 2, 2, 1, "one")),
    frame(at_replica("y", 3, 2, 2, "one")),
    frame(event(4, "y", cursor=vector("y", 4, 2, 3), event={**cloud("one"), "source": "/other"}), gets(1, 4, "y", cursor=vector("y", 4, 2, 3), value={**cloud("one"), "source": "/other"})),
    frame(at_replica("y", 6, 3, 4, "new"), misses(1, 5, 5, "y"), gets_at("y", 6, 3, 4, "new")),
    frame(at_replica("y", 7, 3, 5, "new"), gets_at("y", 7, 3, 5, "new")),
    cut(100),
    up(sends("subscribe", rp=NAME, from_=vector("y", 7, 3, 5))),
)  # fmt: skip
scenario(
    "events whose ids are no text are delivered, and told apart all the same",
    at_another(*READER),
    frame(event(1, "y", cursor=vector("y", 1, 1, 1), event={"id": ["a"], "source": {}}), gets(1, 1, "y", cursor=vector("y", 1, 1, 1), value={"id": ["a"], "source": {}})),
    frame(event(2, "y", cursor=vector("y", 2, 2, 1), event={"id": ["a"], "source": {}})),
    frame(event(3, "y", cursor=vector("y", 3, 3, 1), event={"id": ["b"], "source": {}}), gets(1, 3, "y", cursor=vector("y", 3, 3, 1), value={"id": ["b"], "source": {}})),
)  # fmt: skip
scenario(
    "a rendezvous point may get replicas while it is read",
    reading(),
    frame(event(1), gets(1, 1)),
    frame(event(2, cursor=vector("e", 2, 2, 0)), gets(1, 2, cursor=vector("e", 2, 2, 0))),
    frame(event(3, cursor=vector("e", 3, 2, 1)), gets(1, 3, cursor=vector("e", 3, 2, 1))),
    frame(event(4, cursor=vector("e", 4, 3, 1), event=cloud("e3"))),
    cut(),
    up(sends("subscribe", rp=NAME, from_=vector("e", 4, 3, 1))),
)
scenario(
    "a request that was refused for the moment begins its back-off anew at another replica",
    step("request", key=1, frame=ONE),
    up({"send": ONE}),
    frame(error(1, "rate-limited"), {"retry_at": 50}),
    step("wake", {"send": ONE}, at=51),
    frame(error(2, "not-found"), {"elsewhere": 1}),
    step("go-on", from_=0, on=1, key=1),
    step("dial", connect(B), on=1, at=200),
    step("open", moved(A, B, "refuses (D)"), {"send": ONE}, on=1),
    frame(error(1, "rate-limited"), {"retry_at": 250}, on=1),
    urls=(A, B),
)
scenario(
    "a vector may hold any character",
    at_another(*READER),
    frame(event(1, "y", cursor="y:1~f=1.h~=1"), gets(1, 1, "y", cursor="y:1~f=1.h~=1")),
    frame(event(2, "y", cursor="y:2~f=1.h~=2"), gets(1, 2, "y", cursor="y:2~f=1.h~=2")),
    frame(event(3, "y", cursor="y:3~f=2.h~=2", event=cloud("y2"))),
)

# ---- other domains ----

PAIR: dict[str, Any] = {"urls": (A, B)}
scenario(
    "when the first domain goes away its readers go on at the next, and it is asked whether it is back",
    reading(),
    frame(event(1), gets(1, 1)),
    step("lost", again(100), code=1006),
    up(moved(A, B, "does not answer"), {"probe_at": 1600}, sends("subscribe", rp=NAME, from_="e:1"), url=B, at=100),
    frame(subscribed(2, 4, "x", recovered=False), live(1, None)),
    **PAIR,
)
scenario(
    "domains that a redirect names come after those that are known; what is no address of a domain is left out",
    reading(),
    frame({"op": "redirect", "rp": RP, "to": [5, None, {}, "nonsense", "http://insecure.example", A, B, C]}),
    frame({"op": "redirect", "rp": RP, "to": "https://text.example"}),
    frame({"op": "redirect", "rp": RP, "to": None}),
    frame({"op": "closing", "reason": "server-restarting", "retry": True}),
    cut(100, code=4000),
    up(moved(A, B, "is restarting"), {"probe_at": 1600}, sends("subscribe", rp=NAME, from_="e:0"), url=B, at=100),
    cut(100, at=200),
    step("dial", connect(C), at=300),
    step("lost", again(700), code=1006),  # the first rests for a second
    step("dial", connect(A), at=1000),
)
scenario(
    "with every domain away the one that rests least is next",
    wants(),
    step("dial", connect(A)),
    step("lost", again(100), code=1006),
    step("dial", connect(B), at=100),
    step("lost", again(900), code=1006),
    step("dial", connect(A), at=1000),
    step("lost", again(100), code=1006),
    step("dial", connect(B), at=1100),
    step("lost", again(900), code=1006),
    **PAIR,
)
scenario(
    "the preferred domain is gone back to once it answered twice and was away for a while, after what was sent is answered",
    reading(),
    cut(100),
    up(moved(A, B, "does not answer"), {"probe_at": 1600}, sends("subscribe", rp=NAME, from_="e:0"), url=B, at=100),
    step("probed", {"probe_at": 2600}, at=1600, good=True),
    step("probed", {"probe_at": 3600}, at=2600, good=True),
    asks(2, ONE),
    asks(3, TWO),
    step("probed", at=3600, good=True),
    step("request", key=4, frame=THREE),
    frame(ok(3), settled(2)),
    step("probed", at=3700, good=True),
    frame(ok(4), settled(3), DISCONNECT, again(0)),
    frame(event(1)),
    up(moved(B, A, "answers again", back=True), sends("subscribe", rp=NAME, from_="e:0"), {"send": THREE}, url=A),
    step("return"),
    step("probed", good=True),
    **PAIR,
)
scenario(
    "a probe without an answer begins the count anew, and the next ones are ever rarer",
    reading(),
    cut(100),
    up(moved(A, B, "does not answer"), {"probe_at": 1600}, sends("subscribe", rp=NAME, from_="e:0"), url=B, at=100),
    step("probed", {"probe_at": 4600}, at=3100, good=False),
    step("probed", {"probe_at": 7100}, at=4600, good=False),
    step("probed", {"probe_at": 8100}, at=7100, good=True),
    step("probed", {"probe_at": 9600}, at=8100, good=False),
    step("probed", {"probe_at": 10_600}, at=9600, good=True),
    step("probed", DISCONNECT, again(0), at=10_600, good=True),
    **PAIR,
)
scenario(
    "the preferred domain is gone back to later if the last return did not last, and soon again after one that did",
    reading(),
    cut(100),
    up(moved(A, B, "does not answer"), {"probe_at": 1600}, sends("subscribe", rp=NAME, from_="e:0"), url=B, at=100),
    step("probed", {"probe_at": 2600}, at=1600, good=True),
    step("probed", {"probe_at": 3600}, at=2600, good=True),
    step("probed", DISCONNECT, again(0), at=3100, good=True),
    up(moved(B, A, "answers again", back=True), sends("subscribe", rp=NAME, from_="e:0"), at=3100),
    cut(100, at=3200),
    up(moved(A, B, "does not answer"), {"probe_at": 4800}, sends("subscribe", rp=NAME, from_="e:0"), url=B, at=3300),
    step("probed", {"probe_at": 5800}, at=4800, good=True),
    step("probed", {"probe_at": 10_199}, at=9199, good=True),
    step("probed", DISCONNECT, again(0), at=9201, good=True),
    up(moved(B, A, "answers again", back=True), sends("subscribe", rp=NAME, from_="e:0"), at=9201),
    cut(100, at=70_000),
    up(
        moved(A, B, "does not answer"), {"probe_at": 71_600}, sends("subscribe", rp=NAME, from_="e:0"), url=B, at=70_100
    ),
    step("probed", {"probe_at": 72_600}, at=71_600, good=True),
    step("probed", DISCONNECT, again(0), at=73_000, good=True),
    **PAIR,
)
scenario(
    "what is not answered in time does not keep from going back, nor is anything sent again meanwhile",
    reading(),
    cut(100),
    up(moved(A, B, "does not answer"), {"probe_at": 1600}, sends("subscribe", rp=NAME, from_="e:0"), url=B, at=100),
    asks(2, ONE),
    asks(3, TWO),
    frame(error(3, "unavailable"), {"retry_at": 150}),
    step("probed", {"probe_at": 4100}, at=3100, good=True),
    step("probed", at=4100, good=True),
    step("wake", at=4101),
    step("wake", at=4102),
    step("return", DISCONNECT, again(0), at=9100),
    up(
        moved(B, A, "answers again", back=True),
        sends("subscribe", rp=NAME, from_="e:0"),
        {"send": ONE},
        {"send": TWO},
        url=A,
    ),
    **PAIR,
)
scenario(
    "a request that fails, or is answered elsewhere, is waited for no more",
    reading(),
    cut(100),
    up(moved(A, B, "does not answer"), {"probe_at": 1600}, sends("subscribe", rp=NAME, from_="e:0"), url=B, at=100),
    asks(2, ONE),
    step("probed", {"probe_at": 4100}, at=3100, good=True),
    step("probed", at=4100, good=True),
    frame(error(3, "invalid-event"), failed(2, "invalid-event"), DISCONNECT, again(0)),
    **PAIR,
)
scenario(
    "a domain that answers nothing but unavailable is left, if there is another",
    step("request", key=1, frame=ONE),
    up({"send": ONE}),
    frame(error(1, "unavailable"), {"retry_at": 50}),
    step("wake", {"send": ONE}, at=2000),
    frame(error(2, "unavailable"), {"retry_at": 2100}),
    asks(2, TWO, at=2990),
    frame(ok(3), settled(2)),
    step("wake", {"send": ONE}, at=3000),
    frame(error(4, "unavailable"), {"retry_at": 3200}),
    step("wake", {"send": ONE}, at=5999),
    frame(error(5, "unavailable"), {"retry_at": 6399}),
    step("wake", {"send": ONE}, at=6399),
    frame(error(6, "unavailable"), DISCONNECT, again(100)),
    up(moved(A, B, "is not available"), {"probe_at": 7999}, {"send": ONE}, url=B, at=6499),
    **PAIR,
)
scenario(
    "an event does not end a connection whose requests are refused for the moment",
    reading(),
    asks(2, ONE),
    frame(error(2, "unavailable", retry_after_s=10), {"retry_at": 10_050}),
    frame(event(1), gets(1, 1), at=5000),
    **PAIR,
)
scenario(
    "the answer to an unsubscribe shows that the domain is available",
    reading(),
    asks(2, ONE),
    frame(error(2, "unavailable"), {"retry_at": 50}),
    step("unsubscribe", sends("unsubscribe", rp=RP), key=1),
    frame(ok(3, rp=RP), at=2999),
    step("wake", {"send": ONE}, at=3000),
    frame(error(4, "unavailable"), {"retry_at": 3100}),
    **PAIR,
)
scenario(
    "the only domain is not left because it is unavailable",
    step("request", key=1, frame=ONE),
    up({"send": ONE}),
    frame(error(1, "unavailable"), {"retry_at": 50}),
    step("wake", {"send": ONE}, at=4000),
    frame(error(2, "unavailable"), {"retry_at": 4100}),
)
scenario(
    "a domain that ends the connection for good is passed over, and when all do the first answer counts",
    reading(),
    step("lost", again(100), code=4101),
    up(moved(A, B, "refuses (The token has been revoked)"), sends("subscribe", rp=NAME, from_="e:0"), url=B, at=100),
    step("lost", {"end": 4101}, code=4105),
    **PAIR,
)
scenario(
    "a domain that is not understood is left for another",
    reading(),
    text("nonsense", DISCONNECT, again(100)),
    up(moved(A, B, "does not work"), {"probe_at": 1600}, sends("subscribe", rp=NAME, from_="e:0"), url=B, at=100),
    **PAIR,
)

# ---- what one replica refuses and another may serve ----

for refusal in ("not-found", "gone", "forbidden", "unauthenticated", "token-revoked", "moved"):
    scenario(
        f"a subscription that one replica refuses as {refusal} goes on at another, and ends when all refuse",
        wants(from_="earliest"),
        *up(sends("subscribe", rp=NAME, from_="earliest")),
        frame(error(1, refusal), {"elsewhere": 1}),
        step("go-on", from_=0, on=1, key=1),
        step("dial", connect(B), on=1, at=100),
        step("open", moved(A, B, "does not serve it now" if refusal == "moved" else "refuses (D)"), sends("subscribe", rp=NAME, from_="earliest"), on=1),
        frame(error(1, "not-found"), ended(1, refusal), on=1),
        **PAIR,
    )  # fmt: skip
scenario(
    "a reading that a replica ends goes on at another where it stood",
    reading(0, epoch="x", cursor=vector("x", 0, 0, 0)),
    frame(at_replica("x", 1, 1, 0, "one"), gets_at("x", 1, 1, 0, "one")),
    frame(error(1, "gone", rp=RP), {"elsewhere": 1}),
    frame(at_replica("x", 2, 2, 0, "two")),
    step("go-on", from_=0, on=1, key=1),
    step("dial", connect(B), on=1, at=100),
    step("open", moved(A, B, "refuses (D)"), sends("subscribe", rp=NAME, from_=vector("x", 1, 1, 0)), on=1),
    frame(
        subscribed(1, 0, "y", cursor=vector("y", 0, 1, 0)),
        live(1, vector("y", 0, 1, 0)),
        on=1,
    ),
    frame(at_replica("y", 1, 1, 1, "one"), on=1),
    **PAIR,
)
scenario(
    "all requests about what is refused leave, in their order; those about something else stay",
    step("request", key=1, frame=ONE),
    step("request", key=2, frame=publish("other", OTHER_NAME)),
    step("request", key=3, frame=TWO),
    up({"send": ONE}, {"send": publish("other", OTHER_NAME)}, {"send": TWO}),
    frame(error(1, "not-found"), {"elsewhere": 1}, {"elsewhere": 3}),
    frame(error(3, "not-found")),
    frame(ok(2), settled(2)),
    step("go-on", from_=0, on=1, key=1),
    step("go-on", from_=0, on=1, key=3),
    step("dial", connect(B), on=1, at=100),
    step("open", moved(A, B, "refuses (D)"), {"send": ONE}, {"send": TWO}, on=1),
    frame(ok(1), settled(1), on=1),
    frame(error(2, "forbidden"), failed(3, "not-found"), on=1),
    **PAIR,
)
scenario(
    "what moved goes to the domains that are named, though no other was known, and may come back",
    durable(4),
    frame(error(1, "moved", rp=RP, to=[B]), {"elsewhere": 1}),
    step("go-on", from_=0, on=1, key=1),
    step("dial", connect(B), on=1, at=100),
    step("open", moved(A, B, "does not serve it now"), sends("subscribe", subscription="sub_x"), on=1),
    frame(error(1, "moved", rp=RP, to=[A]), {"elsewhere": 1}, on=1),
    step("go-on", sends("subscribe", subscription="sub_x"), from_=1, on=0, key=1),
)
scenario(
    "what moved to nowhere has ended",
    durable(4),
    frame(error(1, "moved", rp=RP, to=[]), ended(1, "moved")),
)
scenario(
    "a refusal that no replica would answer otherwise is final, and so is every one of the only replica",
    wants(),
    step("request", key=2, frame=ONE),
    up(sends("subscribe", rp=NAME, from_="now"), {"send": ONE}),
    frame(error(1, "invalid-cursor"), ended(1, "invalid-cursor")),
    frame(error(2, "too-large"), failed(2, "too-large")),
    **PAIR,
)
scenario(
    "a request that the only replica refuses has failed",
    step("request", key=2, frame=ONE),
    up({"send": ONE}),
    frame(error(1, "not-found"), failed(2, "not-found")),
)


def document() -> str:
    """The file: a step in a line, so that a change shows."""
    made = []
    for one in SCENARIOS:
        steps = ",\n".join(_line(step) for step in one["steps"])
        head = _line({name: value for name, value in one.items() if name != "steps"})
        made.append(f'{head[:-1]},"steps":[\n{steps}\n]}}')
    return '{"scenarios":[\n' + ",\n".join(made) + "\n]}\n"


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    FILE.write_text(document())
