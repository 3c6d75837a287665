"""Tallies of links: how often a request to a domain delivered its events in time, how often there was an answer at all, and how long it took.

Each process gathers what it sees (`delivery_note`, `probe_note`: no round trip) and adds it to the tallies in Redis once in FLUSH_S
(`tallies_flush`). There, counts decay with a half-life of a day, so that a tally is an estimate of the present, survives restarts, and is
bounded: it never exceeds some 1.44 days of counts, and ends KEPT_S after the last.

A request is one trial whatever it carries: what one request carries is lost together. Trials with events (`delivered`, `lost`) are kept apart
from those without (`answered`, `silent`: vectors, probes of the overlay), because a link may drop the one and answer the other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eventing.core.container import per_process
from eventing.store.client import client, run_script_all, script_read
from eventing.store.keys import peer_key

HALF_LIFE_S = 86_400.0
"""Of counts."""
KEPT_S = 7 * 86_400  # bound: seconds after its last trial that a tally is kept; the link counts as never measured
GATHERED_MAX = (
    4096  # bound: domains whose trials a process gathers between two flushes; trials of others are not counted
)
FLUSH_S = 5.0
"""Between two flushes of a process; a crash loses so many seconds of trials."""
TALLY_SCRIPT = script_read(Path(__file__).parent / "lua", "link_tally")
_FIELDS = ("at", "delivered", "lost", "answered", "silent", "delay_ms", "jitter_ms")


class LinkTally(NamedTuple):
    """Counts of trials of a link, decayed until now.

    Attributes:
        delivered, lost: requests with events, by whether all of these were acknowledged in time.
        answered, silent: requests without events.
        delay_ms, jitter_ms: smoothed duration of answered requests, and its smoothed change from one to the next.
    """

    delivered: float = 0.0
    lost: float = 0.0
    answered: float = 0.0
    silent: float = 0.0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0


UNMEASURED = LinkTally()


class _Gathered:
    """Trials of one domain since the last flush."""

    __slots__ = ("begins", "counts", "delay_ms", "jitter_ms", "last_ms", "samples")

    def __init__(self) -> None:
        self.counts = [0, 0, 0, 0]
        self.samples = 0
        self.delay_ms = self.jitter_ms = 0.0
        self.last_ms: float | None = None
        self.begins = False

    def took(self, ms: float) -> None:
        self.samples += 1
        self.delay_ms += ms
        self.jitter_ms += 0.0 if self.last_ms is None else abs(ms - self.last_ms)
        self.last_ms = ms


class _Tallying:
    """The tallies that this process has gathered, held under `lock`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.of: dict[str, _Gathered] = {}
        self.flushed_at = float("-inf")


_tallying = per_process(_Tallying)


def delivery_note(peer: str, *, delivered: bool, took_s: float | None) -> None:
    """Count a request with events; `took_s` until its answer, None without one."""
    _note(peer, 0 if delivered else 1, took_s, begins=True)


def probe_note(peer: str, *, answered: bool, took_s: float | None, begins: bool = True) -> None:
    """Count a request without events.

    Args:
        begins: whether it begins a tally; a probe of the overlay counts for links that have one.
    """
    _note(peer, 2 if answered else 3, took_s, begins=begins)


def _note(peer: str, count: int, took_s: float | None, *, begins: bool) -> None:
    tallying = _tallying()
    with tallying.lock:
        gathered = tallying.of.get(peer)
        if gathered is None:
            if len(tallying.of) >= GATHERED_MAX:
                return
            gathered = tallying.of[peer] = _Gathered()
        gathered.counts[count] += 1
        gathered.begins = gathered.begins or begins
        if took_s is not None:
            gathered.took(took_s * 1000)


def tallies_flush(*, at_once: bool = False) -> None:
    """Add what this process gathered to the tallies, once in FLUSH_S. Raises redis.RedisError; what was gathered is lost then."""
    tallying, now = _tallying(), time.monotonic()
    with tallying.lock:
        if not at_once and now - tallying.flushed_at < FLUSH_S:
            return
        tallying.flushed_at = now
        gathered, tallying.of = tallying.of, {}
    entries: list[list[Any]] = []
    for peer, one in gathered.items():
        samples = max(1, one.samples)
        changes = max(1, one.samples - 1)
        arguments: list[Any] = [time.time(), HALF_LIFE_S, KEPT_S * 1000, int(one.begins), *one.counts]
        arguments += [one.samples, one.delay_ms / samples, one.jitter_ms / changes]
        entries.append([1, peer_key(peer, "tally"), *arguments])
    for answer in run_script_all(TALLY_SCRIPT, entries):
        if isinstance(answer, Exception):
            raise answer


def tallies_read(peers: Sequence[str]) -> dict[str, LinkTally]:
    """Return the tallies of links, decayed until now; UNMEASURED where there is none. Raises redis.RedisError."""
    if not peers:
        return {}
    pipeline = client().pipeline(transaction=False)
    for peer in peers:
        pipeline.hmget(peer_key(peer, "tally"), _FIELDS)
    now = time.time()
    return {peer: _tally(row, now) for peer, row in zip(peers, pipeline.execute(), strict=True)}


def _tally(row: Iterable[bytes | None], now: float) -> LinkTally:
    at, *values = [float(value or 0) for value in row]
    if not at:
        return UNMEASURED
    decay = 0.5 ** (max(0.0, now - at) / HALF_LIFE_S)
    return LinkTally(*(count * decay for count in values[:4]), *values[4:])
