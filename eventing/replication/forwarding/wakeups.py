"""Waking: who has something for a peer says so in Redis, and sees to it that one task, and one only, forwards it.

Per peer there are a set of RPs that something happened at (`dirty`), the turn of the one task that forwards (`turn`, its
token, with an expiry that the task renews), a list by which a task that waits is rung (`ring`), and a note that a task was
sent and has not begun (`sent`). Each step is one script, so that no wake-up falls between two of them:

    woken:   note the RPs; a task has the turn -> ring it; none was sent -> send one
    begun:   take the turn, unless somebody has it
    ended:   give the turn back, unless something was noted meanwhile: then go on

A task that dies keeps the turn until it expires (TURN_S) and takes what it had taken out of `dirty` with it; the sweep
(outbound.py) finds both by comparing vectors, and needs none of these keys. A task that ends because Redis is away cannot
give its turn back: its process remembers the turn, and the sweep ends it when Redis is back (`turns_recover`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from redis.exceptions import RedisError

from eventing.log import control
from eventing.log.scripts import script_of
from eventing.store.keys import peer_key

TURN_S = 30  # longer than a request to a peer may take; renewed before each
SENT_S = 20  # a task that has not begun by then is taken for lost, and the next wake-up sends another
SUPPLIED_S = 10
RPS_MAX = 1000  # RPs of one request (wire.py)

_CUT = "cut"

Send = Callable[[str], None]
Waiting = Callable[[], int]


class _Sender:
    """How a task is sent: set by whoever starts this process (portal), because nobody below knows the task queue."""

    def __init__(self) -> None:
        self.send: Send | None = None
        self.waiting: Waiting | None = None
        self.stopping = threading.Event()


_sender = _Sender()


def stop() -> None:
    """This process is asked to end: turns end with what they are at."""
    _sender.stopping.set()


def stopping() -> bool:
    """Whether `stop` was called."""
    return _sender.stopping.is_set()


def sender_set(send: Send | None, waiting: Waiting | None = None) -> None:
    """Have `send(peer)` start `workers.tasks.forward`; None: nothing is sent, the sweep forwards. `waiting()` says how many such
    tasks wait for a thread; None: it is not known."""
    _sender.send, _sender.waiting = send, waiting


def others_wait() -> bool:
    """Whether the tasks of other peers wait for a thread. Raises redis.RedisError."""
    return _sender.waiting is not None and _sender.waiting() > 0


# KEYS: dirty, turn, ring, sent   ARGV: how long `sent` holds (ms), 1 to send a task though one was sent, RPs
_WAKE = script_of("""
if #ARGV > 2 then
  for at = 3, #ARGV, 1000 do redis.call('SADD', KEYS[1], unpack(ARGV, at, math.min(at + 999, #ARGV))) end
end
if redis.call('EXISTS', KEYS[2]) == 1 then
  if redis.call('LLEN', KEYS[3]) == 0 then redis.call('RPUSH', KEYS[3], '1'); redis.call('PEXPIRE', KEYS[3], ARGV[1]) end
  return 0
end
if ARGV[2] == '1' then redis.call('DEL', KEYS[4]) end
return redis.call('SET', KEYS[4], '1', 'NX', 'PX', ARGV[1]) and 1 or 0
""")

# KEYS: turn, sent, paused   ARGV: token, how long the turn holds (ms). Safe to repeat where its answer was lost.
_BEGIN = script_of("""
if redis.call('GET', KEYS[1]) == ARGV[1] then return 1 end
if redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
redis.call('DEL', KEYS[2])
return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0
""")

# KEYS: dirty, turn, ring   ARGV: token, whether to end whatever is dirty
_END = script_of("""
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 1 end
if ARGV[2] == '0' and (redis.call('SCARD', KEYS[1]) > 0 or redis.call('LLEN', KEYS[3]) > 0) then return 0 end
redis.call('DEL', KEYS[2], KEYS[3])
return 1
""")

# KEYS: turn   ARGV: token, how long the turn holds (ms)
_RENEW = script_of("""
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
""")


_key = peer_key


def wake(peer: str, rps: Iterable[str] = (), *, anyway: bool = False) -> None:
    """Note that something happened at these RPs, and have it forwarded to the peer. Raises redis.RedisError.

    Args:
        anyway: send a task though one was sent that has not begun: it may be lost, or held off (`hold_off`).
    """
    keys = [_key(peer, what) for what in ("dirty", "turn", "ring", "sent")]
    if control.call(_WAKE, [4, *keys, SENT_S * 1000, int(anyway), *rps]) and _sender.send is not None:
        _sender.send(peer)


def probe(peer: str) -> None:
    """The peer is there, as a request of it shows: try it at once, if it was failing (see `failing`)."""
    if control.client().set(_key(peer, "probe"), "1", nx=True, ex=SENT_S) and _sender.send is not None:
        _sender.send(peer)


def probed(peer: str) -> bool:
    """Whether somebody asked for a probe since the last time this was asked."""
    return bool(control.client().delete(_key(peer, "probe")))


def failing_set(peer: str, failing: bool, *, cut: bool = False) -> None:
    """Note whether the delivery to the peer fails, where a request of that peer sees it without asking SQL.

    Args:
        cut: whether there was no answer at all, so that the way to the peer is looked at (probing.py).
    """
    if failing:
        control.client().set(_key(peer, "failing"), _CUT if cut else "1")
    else:
        control.client().delete(_key(peer, "failing"))


def cut_off(peers: Sequence[str]) -> list[str]:
    """Of these peers, those of which `failing_set` noted that there was no answer at all. Raises redis.RedisError."""
    noted: Any = control.client().mget([_key(peer, "failing") for peer in peers]) if peers else []
    return [peer for peer, value in zip(peers, noted, strict=True) if value == _CUT.encode()]


def failing(peer: str) -> bool:
    """What `failing_set` noted."""
    return bool(control.client().exists(_key(peer, "failing")))


def supplied_set(peer: str) -> None:
    """Note that the peer has just sent events that were new here."""
    control.client().set(_key(peer, "supplied"), "1", ex=SUPPLIED_S)


def supplied(peer: str) -> bool:
    """Whether it has within SUPPLIED_S: a peer that is only slow does not lie about what it holds."""
    return bool(control.client().exists(_key(peer, "supplied")))


_abandoned: dict[str, str] = {}
"""Tokens of turns that this process holds and cannot end, because Redis was away when their tasks ended; by peer."""


class Turn:
    """The right to forward to a peer, held by one task of the domain."""

    def __init__(self, peer: str, token: str) -> None:
        self.peer = peer
        self._token = token

    @classmethod
    def begin(cls, peer: str) -> Turn | None:
        """Take the turn; None if somebody has it, who then looks after what is dirty, or while the peer is paused."""
        token = os.urandom(8).hex()
        keys = [_key(peer, what) for what in ("turn", "sent", "paused")]
        try:
            taken = control.call(_BEGIN, [3, *keys, token, TURN_S * 1000])
        except RedisError:
            _abandoned[peer] = token  # the turn may have been taken, and only the answer was lost
            raise
        return cls(peer, token) if taken else None

    def renew(self) -> bool:
        """Keep the turn for another TURN_S; False if it was lost meanwhile: stop then."""
        return bool(control.call(_RENEW, [1, _key(self.peer, "turn"), self._token, TURN_S * 1000]))

    def take(self) -> list[str]:
        """The RPs that something happened at, at most RPS_MAX; they are noted no longer."""
        found: Any = control.client().spop(_key(self.peer, "dirty"), RPS_MAX)
        return [rp.decode() for rp in found or ()]

    def waiting(self) -> int:
        """How many RPs are noted."""
        return int(control.client().scard(_key(self.peer, "dirty")))

    def put_back(self, rps: Iterable[str]) -> None:
        """Note RPs again: what was taken could not be forwarded."""
        back = list(rps)
        if back:
            control.client().sadd(_key(self.peer, "dirty"), *back)

    def wait(self, timeout_s: float) -> bool:
        """Wait until something is noted, at most so long; whether something was."""
        return control.client().blpop([_key(self.peer, "ring")], timeout=max(0.01, timeout_s)) is not None

    def end(self, *, whatever: bool = False) -> bool:
        """Give the turn back; False if something is dirty (go on then), unless `whatever` is."""
        return _end(self.peer, self._token, whatever=whatever)

    def abandon(self) -> None:
        """Give the turn back whatever is dirty, now or, where Redis is away, when it is back (`turns_recover`)."""
        try:
            self.end(whatever=True)
        except RedisError:
            _abandoned[self.peer] = self._token


def _end(peer: str, token: str, *, whatever: bool) -> bool:
    keys = [_key(peer, what) for what in ("dirty", "turn", "ring")]
    return bool(control.call(_END, [3, *keys, token, int(whatever)]))


def turns_recover() -> list[str]:
    """End the turns of this process's tasks that ended while Redis was away. Returns their peers, at which anything may be
    lacking. Raises redis.RedisError."""
    ended = []
    for peer, token in list(_abandoned.items()):
        _end(peer, token, whatever=True)
        if _abandoned.get(peer) == token:
            del _abandoned[peer]
        ended.append(peer)
    return ended


def turn_drop(peer: str) -> None:
    """Take the turn from whoever has it: at the start of the process that forwards, from its predecessor that was killed.
    One that lives after all stops at its next `renew`."""
    control.client().delete(*[_key(peer, what) for what in ("turn", "ring", "sent", "paused")])


def pause(peer: str, pause_s: float) -> None:
    """Leave the peer alone for so long (at most an hour): it asked for that. What the sweep finds meanwhile waits too."""
    since_and_s = f"{time.time()!r} {pause_s!r}"  # peering/selectors/standing.py shows it
    control.client().set(_key(peer, "paused"), since_and_s, px=max(1, min(int(pause_s * 1000), 3_600_000)))
    hold_off(peer, pause_s)


def paused(peer: str) -> bool:
    """Whether the peer is left alone."""
    return bool(control.client().exists(_key(peer, "paused")))


def pause_end(peer: str) -> None:
    """Leave the peer alone no longer."""
    control.client().delete(_key(peer, "paused"))


def taken_note(peer: str, taken: bool) -> None:
    """Note that the peer took something of what it was sent, or nothing; kept is since when it takes nothing."""
    if taken:
        control.client().delete(_key(peer, "untaken"))
    else:
        control.client().set(_key(peer, "untaken"), repr(time.time()), nx=True)


def hold_off(peer: str, pause_s: float) -> None:
    """Send no task for the peer for so long (at most an hour), whatever happens: it would only find that it must wait."""
    control.client().set(_key(peer, "sent"), "1", px=max(1, min(int(pause_s * 1000), 3_600_000)))


def forget(peer: str) -> None:
    """Drop everything that is noted for a domain that is no peer any more."""
    names = (
        "untaken",
        "dirty",
        "turn",
        "ring",
        "sent",
        "probe",
        "failing",
        "supplied",
        "paused",
        "links",
        "again",
        "traffic",
        "contact",
    )
    control.client().delete(*[_key(peer, what) for what in names])
