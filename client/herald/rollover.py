"""The choice among several replicas for a connection, and its return to the preferred one. No I/O, clock or random
source here.

Inputs are the methods, with the time in seconds of any steady clock; `next` states where to connect and when,
`probe_at` when to ask whether the preferred replica answers again. connection.py carries it out.

Laws:
 1. A failed replica rests, longer each time. Of those that are not resting the first in the given order is next, one
    that was not tried since the last connection before one that was.
 2. No replica is waited for while another does not rest.
 3. A replica that refuses is not asked again for `REFUSED_S` (`MOVED_S` if it named others); when all refuse, the
    connection ends (`verdict`).
 4. The client returns to the preferred replica only after it answered `PROBES_GOOD` times over a hold that doubles with
    each return that did not last: an unstable replica makes no client move back and forth.
 5. With one replica there is no choice: only the backoff remains.
"""

from __future__ import annotations

import random as random_module
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from herald.backoff import Backoff
from herald.dial import Address
from herald.errors import Closed, HeraldError, Problem

URLS_MAX = 16  # given and learned; as many as a domain names in one redirect
REST_S = 1.0  # least rest of a failed replica, if there are others
SPREAD_S = 0.2  # clients of a lost replica arrive at the next one spread over this
MOVED_S = 5.0  # the delivering holder of a shared subscription may soon change back
REFUSED_S = 300.0  # a replica's refusal is retried after this time; guess
PROBES_GOOD = 2
PROBE_S = 1.0  # between probes, at first; a replica that does not answer is probed less and less often
PROBE_S_MAX = 30.0
HOLD_S = 3.0  # from leaving the preferred replica to going back, at least
HOLD_S_MAX = 600.0
BACK = "answers again"
URL_CHARS_MAX = 2048  # of a URL that a domain names; longer ones are ignored
_NUMERIC = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
STAYED_S = 60.0  # after a return that lasted this long the hold is short again


@dataclass(frozen=True, slots=True)
class Move:
    """A client's move to another replica.

    Attributes:
        old, new: the URLs.
        reason: the reason, for people, about the old one; about the new one if `back`.
        back: whether this is a return to the preferred one.
    """

    old: str
    new: str
    reason: str
    back: bool = False

    def __str__(self) -> str:
        verb = "going back to" if self.back else "going on at"
        return f"{host(self.new if self.back else self.old)} {self.reason}; {verb} {host(self.new)}"


@dataclass(slots=True)
class ReplicaUrl:
    """One URL. It is not tried before `due_at`; `refusal` is its final answer, valid until then."""

    url: str
    backoff: Backoff
    due_at: float = 0.0
    tried: bool = False  # without success, since a connection was last open or shortly before
    refusal: HeraldError | None = None


@dataclass(slots=True)
class Rollover:
    """The replicas of one connection; see the module. The first of `urls` is preferred.

    Arguments:
        refused: refusals that replicas of `urls` have answered already, so that the others are asked first.
        now: the time from which these answers count.
    """

    urls: Iterable[str]
    random: random_module.Random
    refused: Mapping[str, HeraldError] = field(default_factory=dict)
    now: float = 0.0
    current: str = field(init=False)  # dialled last
    reason: str = field(init=False, default="does not answer")
    barred: frozenset[str] = field(init=False)
    _replicas: dict[str, ReplicaUrl] = field(init=False, default_factory=dict)
    _opened_at: float | None = field(init=False, default=None)
    _left_at: float = field(init=False, default=0.0)
    _hold_s: float = field(init=False, default_factory=lambda: HOLD_S)
    _returned_at: float | None = field(init=False, default=None)
    _good: int = field(init=False, default=0)
    _probe_at: float | None = field(init=False, default=None)
    _probing: Backoff = field(init=False)

    def __post_init__(self) -> None:
        self.barred = frozenset(self.refused)
        self._probing = Backoff(self.random, PROBE_S, PROBE_S_MAX)
        for url in list(dict.fromkeys(self.urls))[:URLS_MAX]:
            self._replicas[url] = ReplicaUrl(url, Backoff(self.random))
        for url, answer in self.refused.items():
            if url in self._replicas:
                self._refuse(self._replicas[url], answer, self.now)
        if self.refused:  # by now many may be sent from one replica to another
            soon = self.now + self.random.uniform(0.0, SPREAD_S)
            for replica in self._replicas.values():
                replica.due_at = max(replica.due_at, soon)
        if (refusal := next(iter(self._replicas.values())).refusal) is not None:
            self.reason = _refusing(refusal)
        self.current = self.preferred

    # ---- where ----

    @property
    def known(self) -> list[str]:
        """Return all URLs, the preferred one first."""
        return list(self._replicas)

    @property
    def many(self) -> bool:
        """Return whether there is a choice."""
        return len(self._replicas) > 1

    @property
    def preferred(self) -> str:
        """Return the first that does not refuse; the first of all if every one does."""
        open_ones = (replica.url for replica in self._replicas.values() if replica.refusal is None)
        return next(open_ones, next(iter(self._replicas)))

    def learn(self, urls: Iterable[str]) -> None:
        """Add replicas after the known ones, up to the bound."""
        for url in urls:
            if len(self._replicas) < URLS_MAX and url not in self._replicas:
                self._replicas[url] = ReplicaUrl(url, Backoff(self.random))

    def next(self, now: float) -> tuple[str, float]:
        """Return where to connect, and in how many seconds."""
        rest = [one for one in self._replicas.values() if one.refusal is None or one.due_at <= now]
        ready = [one for one in rest if one.due_at <= now]
        fresh = [one for one in ready if not one.tried]
        if fresh or ready:
            return (fresh or ready)[0].url, 0.0
        chosen = min(rest or self._replicas.values(), key=lambda one: one.due_at)
        return chosen.url, max(0.0, chosen.due_at - now)

    def wait_s(self, now: float) -> float | None:
        """Return the seconds until the next attempt, if every replica has been tried without success; None while one
        has not.
        """
        if any(not replica.tried and replica.refusal is None for replica in self._replicas.values()):
            return None
        return self.next(now)[1]

    def verdict(self) -> HeraldError | None:
        """Return the error to end with if every replica refuses; else None."""
        refusals = {replica.url: replica.refusal for replica in self._replicas.values() if replica.refusal is not None}
        return named(refusals) if len(refusals) == len(self._replicas) else None

    # ---- what happened ----

    def dialled(self, url: str) -> None:
        """Record that a connection to `url` is being opened."""
        self.current = url

    def failed(self, now: float, reason: str = "does not answer", retry_after_s: float | None = None) -> None:
        """Record that the current replica did not answer, was lost, or asked for a pause."""
        self._left(now, reason)
        replica = self._replicas[self.current]
        pause_s = replica.backoff.next(retry_after_s)
        replica.due_at = now + (max(pause_s, REST_S) if self.many else pause_s)
        replica.tried = True

    def refuses(self, error: HeraldError, now: float) -> None:
        """Record that the current replica refuses."""
        self._refuse(self._replicas[self.current], error, now)
        self._left(now, _refusing(error))

    def again(self, now: float) -> None:
        """Have the current replica tried again at once, with another token."""
        replica = self._replicas[self.current]
        replica.due_at, replica.refusal = now, None

    def opened(self, now: float) -> None:
        """Record that a connection to the current replica is open."""
        self._opened_at = now
        current = self._replicas[self.current]
        current.due_at, current.refusal = now, None
        for replica in self._replicas.values():
            replica.tried = replica.due_at > now
        self._good = 0
        self._probing.reset()
        if self.current == self.preferred:
            self._probe_at = None
        else:
            self._probe_at = now + self._probing.next() + PROBE_S

    # ---- going back ----

    @property
    def probe_at(self) -> float | None:
        """Return when to ask the preferred replica whether it is ready; None if it is the one in use, or none is."""
        return self._probe_at

    def probed(self, good: bool, now: float) -> bool:
        """Record the answer of the preferred replica. True: go back to it now (and report that by `returning`)."""
        self._good = self._good + 1 if good else 0
        if good:
            self._probing.reset()
        back = self._good >= PROBES_GOOD and now - self._left_at >= self._hold_s
        self._probe_at = now + self._probing.next() + PROBE_S / 2
        return back

    def returning(self, now: float) -> None:
        """Record that the connection is being closed in order to go back."""
        self._probe_at = None
        self._opened_at = None
        self._returned_at = now
        self.reason = BACK
        preferred = self._replicas[self.preferred]
        preferred.due_at, preferred.tried = now, False
        preferred.backoff.reset()

    def chosen(self, url: str, now: float, reason: str) -> None:
        """Record that a connection to `url` is open and replaces the present one, which works: `url` is preferred from now on."""
        if url not in self._replicas and len(self._replicas) >= URLS_MAX:
            del self._replicas[next(one for one in reversed(self._replicas) if one != self.current)]
        replica = self._replicas.pop(url, None) or ReplicaUrl(url, Backoff(self.random))
        replica.due_at, replica.tried, replica.refusal = now, False, None
        self._replicas = {url: replica, **self._replicas}
        self._probe_at = self._opened_at = self._returned_at = None
        self._hold_s = HOLD_S
        self.reason = reason

    # ---- inside ----

    def _refuse(self, replica: ReplicaUrl, error: HeraldError, now: float) -> None:
        replica.refusal = error
        replica.tried = True
        replica.due_at = now + (MOVED_S if is_moved(error) else REFUSED_S)

    def _left(self, now: float, reason: str) -> None:
        self.reason = reason
        self._probe_at = None
        opened_at, self._opened_at = self._opened_at, None
        if opened_at is not None:
            self._replicas[self.current].backoff.lived(now - opened_at)
        if not self.many:
            return
        if self.current == next(iter(self._replicas)):
            self._hold(now)
        soon = now + self.random.uniform(0.0, SPREAD_S)  # the same for all, so that their order counts
        for replica in self._replicas.values():
            if replica.refusal is None and replica.due_at <= now:
                replica.due_at = soon

    def _hold(self, now: float) -> None:
        """Record that the preferred replica is left: no return for a while, longer if the last return did not last."""
        self._left_at = now
        if self._returned_at is None:
            return
        brief = now - self._returned_at < STAYED_S
        self._hold_s = min(HOLD_S_MAX, self._hold_s * 2) if brief else HOLD_S
        self._returned_at = None


def host(url: str) -> str:
    """Return a URL's host, with the port if it has one, as people call it."""
    return urlsplit(url).netloc or url


def named(refusals: Mapping[str, HeraldError]) -> HeraldError:
    """Return one error for the refusals of several replicas, with their names; for a single one its own. The first
    prevails.
    """
    first = next(iter(refusals.values()))
    if len(refusals) == 1:
        return first
    said = " ".join(f"{host(url)}: {_said(error)}." for url, error in refusals.items())
    if isinstance(first, Problem):
        after_s = first.retry_after_s
        return Problem(first.type, first.title, first.status, said, retry_after_s=after_s, extra=first.extra)
    return Closed(first.code, said) if isinstance(first, Closed) else HeraldError(said)


def learnable(urls: object, like: str) -> list[str]:
    """Return those URLs named by a domain that may be used: addresses of domains, https unless `like` (the first given)
    is http; none inside a private network unless `like` is there.
    """
    if not isinstance(urls, list | tuple):
        return []
    found: list[str] = []
    for url in urls[:URLS_MAX]:
        try:
            address = Address.parse(url) if isinstance(url, str) and len(url) <= URL_CHARS_MAX else None
        except ValueError:
            continue
        if address is None or "@" in address.url or not (address.url.startswith("https:") or like.startswith("http:")):
            continue
        if not _is_private(address.url) or _is_private(like):
            found.append(address.url)
    return found


def _is_private(url: str) -> bool:
    """Return whether a URL's host is an address, or the name, of this host or a private network, or cannot be distinguished from one."""
    name = (urlsplit(url).hostname or "").rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return not ip_address(name).is_global
    except ValueError:
        return _NUMERIC.fullmatch(name.rpartition(".")[2]) is not None  # resolvers read 0x7f.1 as an address


def _refusing(error: HeraldError) -> str:
    return "does not serve it now" if is_moved(error) else f"refuses ({_said(error)})"


def is_moved(error: HeraldError) -> bool:
    """Return whether a replica states that others serve the target."""
    return isinstance(error, Problem) and error.code == "moved"


def _said(error: HeraldError) -> str:
    text = (error.detail or error.title) if isinstance(error, Problem) else ""
    return (text or str(error)).rstrip(".")
