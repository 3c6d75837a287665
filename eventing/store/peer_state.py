"""State of peers in Redis, shared by the processes of a domain: all keys `herald:peer:{NAME}:...` but the links
(log/watermarks.py).

The peer lock is the right of one process to forward to a peer; with it go the RPs with something to send
(replication/forwarding/wakeups.py). Notes are made of contacts, failures, supplies, nonces and comparisons. Traffic is
counted as received and sent; it is shown with the peer's delivery, and sampled (peering/traffic_samples.py). Broadcast
trees are judged by redundant copies per event (overlay/broadcast.py): `copies` beside `events`.

All functions but `contact_note` raise redis.RedisError.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from eventing.core.container import per_process
from eventing.store.client import client, run_script, run_script_all, script_read
from eventing.store.errors import RedisError
from eventing.store.keys import DELIVERIES_TOLD_KEY, PEERS_TRAFFIC_KEY, nonce_key, peer_key
from eventing.telemetry import metrics
from eventing.telemetry.metrics import peer_label

PAUSE_S_MAX = 3600
SUPPLIED_S = 10
PRUNES_MAX = 4096  # bound: feeds of a peer's last prunes that are remembered, for seconds; the oldest are forgotten
REPLAYS_KEPT_S = 86_400
CONTACT_S = 1.0  # least seconds between two notes of a process about one contact
CONTACTS_MAX = 2000  # twice the number of peers
log = logging.getLogger(__name__)
_CUT = b"cut"
TRAFFIC_NAMES = ("requests", "runs", "events", "copies", "sent")
"""Requests received from the peer, the runs in them, the new events of these, and the duplicate ones; events sent to
the peer in requests that it acknowledged.
"""
_FOLDER = Path(__file__).parent / "lua"
_WAKE = script_read(_FOLDER, "wake")
_BEGIN = script_read(_FOLDER, "forwarding_lock_acquire")
_TAKE = script_read(_FOLDER, "forwarding_take")
_END = script_read(_FOLDER, "forwarding_lock_release")
_NOTED = (
    "untaken", "dirty", "turn", "ring", "sent", "probe", "failing", "supplied", "paused", "links", "again", "traffic", "contact", "tally",
    "pruned", "flapped", "replays", "waiting", "announced",
)  # fmt: skip


def wakes_note(rps: Mapping[str, Iterable[str]], sent_s: int, *, anyway: bool = False) -> dict[str, bool | RedisError]:
    """Note that something happened at these RPs, by peer, in one round trip. Returns for each peer whether a task must be sent, which
    is noted for `sent_s`, or the error of its server.

    Args:
        anyway: send a task even if one was sent that has not begun.
    """
    wakes = [
        [*_keys(peer, "dirty", "turn", "ring", "sent"), sent_s * 1000, int(anyway), *some] for peer, some in rps.items()
    ]
    answers = run_script_all(_WAKE, wakes)
    return {
        peer: answer if isinstance(answer, RedisError) else bool(answer)
        for peer, answer in zip(rps, answers, strict=True)
    }


def is_dirty(peer: str) -> bool:
    """Return True if RPs are noted for the peer's next turn."""
    return bool(client().exists(peer_key(peer, "dirty")))


class TakenWork(NamedTuple):
    """Work that a turn of forwarding takes on.

    Attributes:
        rps: RPs that were dirty, or at which a timer of the link has expired; each is taken once.
        timer_at: when the next timer of a link expires, Unix seconds; None: none is set.
        vectors_since: since when a vector waits for the peer (waiting_vectors.py), Unix seconds; None: none waits.
        notified: whether a notification was taken with all this: `wait` returns True for later ones only.
    """

    rps: list[str]
    timer_at: float | None
    vectors_since: float | None
    notified: bool


class PeerLock(NamedTuple):
    """The lock of a peer: the right to forward to it, of the task with this token. Each step compares the token.

    Args:
        duration_s: after `acquire` and each `take` the lock expires.
    """

    peer: str
    token: str
    duration_s: int

    def acquire(self) -> bool:
        """Take the lock; False if another task has it, which then forwards what is dirty, or while the peer is paused."""
        keys = _keys(self.peer, "turn", "sent", "paused")
        return bool(run_script(_BEGIN, [*keys, self.token, self.duration_s * 1000]))

    def take(self, now: float, count_max: int) -> TakenWork | None:
        """Renew the lock, and take what there is to do, at most so many RPs of each kind; None if the lock was lost meanwhile: the
        caller must stop."""
        keys = _keys(self.peer, "turn", "dirty", "ring", "again", "waiting")
        found: Any = run_script(_TAKE, [*keys, self.token, self.duration_s * 1000, int(now * 1000), count_max])
        if found is None:
            return None
        dirty, expired, timer_ms, since, rung = found
        rps = [rp.decode() for rp in dict.fromkeys([*dirty, *expired])]
        timer_at = float(timer_ms) / 1000 if timer_ms else None
        return TakenWork(rps, timer_at, float(since) if since else None, bool(rung))

    def release(self, *, whatever: bool = False) -> bool:
        """Release the lock; False if something is dirty (the caller continues then), unless `whatever` is set."""
        keys = _keys(self.peer, "dirty", "turn", "ring")
        return bool(run_script(_END, [*keys, self.token, int(whatever)]))

    def put_back(self, rps: Collection[str]) -> None:
        """Make RPs dirty again that could not be forwarded."""
        if rps:
            client().sadd(peer_key(self.peer, "dirty"), *rps)

    def wait(self, timeout_s: float) -> bool:
        """Wait until an RP is dirty, at most `timeout_s`; return whether one is."""
        return client().blpop([peer_key(self.peer, "ring")], timeout=max(0.01, timeout_s)) is not None


def peer_lock_drop(peer: str) -> None:
    """Release the lock of any owner, at the start of the forwarder, whose killed predecessor may have it.
    One that lives after all stops at its next `take`."""
    _delete(peer, "turn", "ring", "sent", "paused")


def probe_note(peer: str, kept_s: int) -> bool:
    """Request a probe of the peer; False if one was requested within `kept_s` and none has begun."""
    return bool(client().set(peer_key(peer, "probe"), "1", nx=True, ex=kept_s))


def probed(peer: str) -> bool:
    """Return True if a probe was requested since the last call."""
    return bool(client().delete(peer_key(peer, "probe")))


def pause(peer: str, pause_s: float) -> None:
    """Pause forwarding to the peer (at most PAUSE_S_MAX) at its request. Work found by the sweep meanwhile waits too."""
    since_and_s = f"{time.time()!r} {pause_s!r}"  # peering/selectors/standing.py shows it
    client().set(peer_key(peer, "paused"), since_and_s, px=_pause_ms(pause_s))
    hold_off(peer, pause_s)


def paused(peer: str) -> bool:
    """Return True if forwarding to the peer is paused."""
    return bool(client().exists(peer_key(peer, "paused")))


def pause_end(peer: str) -> None:
    """End the pause of the peer."""
    _delete(peer, "paused")


def hold_off(peer: str, pause_s: float) -> None:
    """Send no task for the peer for `pause_s` (at most PAUSE_S_MAX), whatever happens: it would only find that it must wait."""
    client().set(peer_key(peer, "sent"), "1", px=_pause_ms(pause_s))


@per_process
def _contacts() -> dict[tuple[str, str], float]:
    """Monotonic seconds of the last notes of contacts, by peer and kind."""
    return {}


def contact_note(peer: str, what: Literal["request", "answer"]) -> None:
    """Note that the peer has just sent an authenticated request, or the answer to one; at most once in CONTACT_S by each
    process. If Redis does not answer, this is only logged.
    """
    noted, now = _contacts(), time.monotonic()
    if now - noted.get((peer, what), -CONTACT_S) < CONTACT_S:
        return
    if len(noted) > CONTACTS_MAX:
        noted.clear()
    noted[peer, what] = now
    try:
        client().hset(peer_key(peer, "contact"), what, repr(time.time()))
    except RedisError as error:
        log.debug("The contact with %s could not be recorded: %s", peer, error)


def standing_notes(peers: Sequence[str]) -> list[tuple[Sequence[bytes | None], bytes | None, bytes | None]]:
    """Return for each peer the times of the last request and answer, the pause with its duration, and since when it
    refuses everything."""
    pipeline = client().pipeline(transaction=False)
    for peer in peers:
        pipeline.hmget(peer_key(peer, "contact"), "request", "answer")
        pipeline.get(peer_key(peer, "paused"))
        pipeline.get(peer_key(peer, "untaken"))
    found: list[Any] = pipeline.execute()
    return list(zip(found[::3], found[1::3], found[2::3], strict=True))


def failing_set(peer: str, failing: bool, *, cut: bool = False) -> None:
    """Note whether the delivery to the peer fails, so that the handler of a request from that peer need not read SQL.

    Args:
        cut: whether there was no answer at all, so that the route to the peer is probed
            (replication/forwarding/probing.py).
    """
    if failing:
        client().set(peer_key(peer, "failing"), _CUT if cut else b"1")
    else:
        client().delete(peer_key(peer, "failing"))


def failing(peer: str) -> bool:
    """Return the note of `failing_set`."""
    return bool(client().exists(peer_key(peer, "failing")))


def cut_off(peers: Sequence[str]) -> list[str]:
    """Return those of these peers for which `failing_set` noted that there was no answer at all."""
    pipeline = client().pipeline(transaction=False)
    for peer in peers:
        pipeline.get(peer_key(peer, "failing"))
    return [peer for peer, value in zip(peers, pipeline.execute(), strict=True) if value == _CUT]


def supplied(peer: str) -> bool:
    """Return True if the peer sent new events within SUPPLIED_S: a peer that is only slow does not lie about what it holds."""
    return bool(client().exists(peer_key(peer, "supplied")))


def taken_note(peer: str, taken: bool) -> None:
    """Note that the peer accepted some of the events sent, or none; since when it accepts none is stored."""
    if taken:
        client().delete(peer_key(peer, "untaken"))
    else:
        client().set(peer_key(peer, "untaken"), repr(time.time()), nx=True)


def prunes_note(peer: str, feeds: Sequence[str], at: float, kept_s: float) -> None:
    """Note for `kept_s` that the peer pruned these feeds, each named with its RP, at a time (Unix seconds)."""
    key = peer_key(peer, "pruned")
    pipeline = client().pipeline(transaction=False)
    pipeline.zadd(key, dict.fromkeys(feeds[:PRUNES_MAX], at))
    pipeline.zremrangebyrank(key, 0, -PRUNES_MAX - 1)
    pipeline.pexpire(key, _pause_ms(kept_s))
    pipeline.execute()


def prunes_since(peer: str, feeds: Sequence[str], since: float) -> list[str]:
    """Return those of these feeds that the peer has pruned since a time."""
    noted: Any = client().zmscore(peer_key(peer, "pruned"), list(feeds))
    return [feed for feed, at in zip(feeds, noted, strict=True) if at is not None and at >= since]


def flap_begin(peer: str, kept_s: float) -> bool:
    """Return True if no other flap of the peer's feeds was counted within `kept_s`."""
    return bool(client().set(peer_key(peer, "flapped"), "1", nx=True, px=_pause_ms(kept_s)))


def replay_note(peer: str, rp: str) -> None:
    """Note for a day that an operator has the events of an RP sent to the peer again."""
    key = peer_key(peer, "replays")
    pipeline = client().pipeline(transaction=False)
    pipeline.sadd(key, rp)
    pipeline.expire(key, REPLAYS_KEPT_S)
    pipeline.execute()


def replays_taken(peer: str, rps: Sequence[str]) -> list[str]:
    """Return those of these RPs whose events an operator had sent to the peer again since the last call."""
    key = peer_key(peer, "replays")
    pipeline = client().pipeline(transaction=False)
    for rp in rps:
        pipeline.srem(key, rp)
    return [rp for rp, noted in zip(rps, pipeline.execute(), strict=True) if noted]


def nonce_note(domain: str, nonce: str, kept_s: int) -> bool:
    """Note the nonce of a request of `domain` for `kept_s`; False if it was already noted. One costs about 150 bytes."""
    return bool(client().set(nonce_key(domain, nonce), b"1", nx=True, px=kept_s * 1000))


def compare_again(peers: Iterable[str]) -> None:
    """Request an immediate comparison of everything shared with these peers."""
    pipeline = client().pipeline(transaction=False)
    for peer in peers:
        pipeline.delete(peer_key(peer, "compared"))
    pipeline.execute()


def deliveries_reported() -> dict[str, bytes]:
    """Return the digest of the last reported state of delivery, by peer."""
    known: Any = client().hgetall(DELIVERIES_TOLD_KEY)
    return {peer.decode(): digest for peer, digest in known.items()}


def deliveries_reported_set(changed: Mapping[str, bytes], gone: Collection[str]) -> None:
    """Note the digests of reported states of delivery, and drop those of peers without one."""
    if changed:
        client().hset(DELIVERIES_TOLD_KEY, items=[part for pair in changed.items() for part in pair])
    if gone:
        client().hdel(DELIVERIES_TOLD_KEY, *gone)


def request_noted(peer: str, counts: Mapping[str, int], *, supplied: bool) -> bool:
    """Note a request of the peer in one round trip; return the note of `failing_set`.

    Args:
        counts: what to add to the counts of the peer, by TRAFFIC_NAMES.
        supplied: whether it brought anything new: `supplied` is true for SUPPLIED_S.
    """
    label = peer_label(peer)
    metrics.RECEIVED_RUNS.labels(label).inc(counts.get("runs", 0))
    metrics.RECEIVED.labels(label).inc(counts.get("events", 0))
    metrics.REDUNDANT.labels(label).inc(counts.get("copies", 0))
    pipeline = client().pipeline(transaction=False)
    for name, amount in counts.items():
        if amount:
            pipeline.hincrby(peer_key(peer, "traffic"), name, amount)
    if supplied:
        pipeline.set(peer_key(peer, "supplied"), "1", ex=SUPPLIED_S)
    pipeline.exists(peer_key(peer, "failing"))
    return bool(pipeline.execute()[-1])


def traffic_sent_count(peer: str, events: int) -> None:
    """Add an acknowledged request's events to the count of events sent to the peer."""
    if events:
        client().hincrby(peer_key(peer, "traffic"), "sent", events)


def traffic_taken(peer: str) -> dict[str, int]:
    """Return the peer's counts since it became a peer, by TRAFFIC_NAMES."""
    return traffic_totals([peer])[peer]


def traffic_totals(peers: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return the counts of several peers, in one round trip."""
    pipeline = client().pipeline(transaction=False)
    for peer in peers:
        pipeline.hmget(peer_key(peer, "traffic"), TRAFFIC_NAMES)
    found = zip(peers, pipeline.execute(), strict=True)
    return {
        peer: {name: int(value or 0) for name, value in zip(TRAFFIC_NAMES, row, strict=True)} for peer, row in found
    }


def traffic_samples_keep(rows: Mapping[str, str], kept_s: int) -> None:
    """Store the last sample of traffic with each peer for `kept_s`."""
    pipeline = client().pipeline()
    pipeline.hset(PEERS_TRAFFIC_KEY, items=[part for pair in rows.items() for part in pair])
    pipeline.expire(PEERS_TRAFFIC_KEY, kept_s)
    pipeline.execute()


def traffic_samples_kept() -> dict[str, bytes]:
    """Return the last samples, by peer."""
    kept: Any = client().hgetall(PEERS_TRAFFIC_KEY)
    return {peer.decode(): row for peer, row in kept.items()}


def forget(peer: str) -> None:
    """Remove all notes about a domain that is no longer a peer."""
    _delete(peer, *_NOTED)


def _pause_ms(pause_s: float) -> int:
    return max(1, min(int(pause_s * 1000), PAUSE_S_MAX * 1000))


def _keys(peer: str, *what: str) -> list[Any]:
    """Make key count and keys of a script."""
    return [len(what), *(peer_key(peer, one) for one in what)]


def _delete(peer: str, *what: str) -> None:
    client().delete(*(peer_key(peer, one) for one in what))
