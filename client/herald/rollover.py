"""Which of several replicas a connection uses, and when it goes back to its preferred one. No I/O, clock or random source here.

What happened goes in through the methods, with the time in seconds of any steady clock; `next` says where to connect and
when, `probe_at` when to ask whether the preferred replica answers again. connection.py carries it out.

Laws:
 1. A failure lets a replica rest, longer each time. Of those that are not resting the first in the given order is next,
    one that was not tried since the last connection before one that was.
 2. No replica is waited for while another does not rest.
 3. A replica that refuses is not asked again for `REFUSED_S` (`MOVED_S` if it named others); when all refuse, that is the end (`verdict`).
 4. The preferred one is gone back to only after it answered `PROBES_GOOD` times over a hold that doubles with each return
    that did not last: a replica that comes and goes makes no client come and go with it.
 5. With one replica there is nothing to choose: only the backoff is left.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from herald.backoff import Backoff
from herald.dial import Address
from herald.errors import Closed, HeraldError, Problem

URLS_MAX = 16  # given and learned; as many as a domain names in one redirect
REST_S = 1.0  # how long a replica rests at least that failed, where there are others
SPREAD_S = 0.2  # clients of a lost replica arrive at the next one spread over this
MOVED_S = 5.0  # where a shared subscription is delivered may change back as soon as its holders notice
REFUSED_S = 300.0  # a replica that refused may have changed its mind by then; guess
PROBES_GOOD = 2
PROBE_S = 1.0  # between probes, at first; a replica that does not answer is asked less and less often
PROBE_S_MAX = 30.0
HOLD_S = 3.0  # from leaving the preferred replica to going back, at least
HOLD_S_MAX = 600.0
BACK = "answers again"
STAYED_S = 60.0  # a return that lasted this long was good: the hold is short again


@dataclass(frozen=True, slots=True)
class Move:
    """A client goes on at another replica.

    Attributes:
        old, new: the URLs.
        reason: why, for people, about the old one; about the new one if `back`.
        back: it is the preferred one that is gone back to.
    """

    old: str
    new: str
    reason: str
    back: bool = False

    def __str__(self) -> str:
        verb = "going back to" if self.back else "going on at"
        return f"{host(self.new if self.back else self.old)} {self.reason}; {verb} {host(self.new)}"


@dataclass(slots=True)
class Replica:
    """One URL. It is not tried before `due_at`; `refusal` is its final answer, good until then."""

    url: str
    backoff: Backoff
    due_at: float = 0.0
    tried: bool = False  # in vain, since a connection was last open or not long before
    refusal: HeraldError | None = None


@dataclass(slots=True)
class Rollover:
    """See the module. The first of `urls` is preferred.

    Arguments:
        refused: what replicas of `urls` answered already, so that the others are asked first.
        now: the time from which these answers count.
    """

    urls: Iterable[str]
    random: random_module.Random
    refused: Mapping[str, HeraldError] = field(default_factory=dict)
    now: float = 0.0
    current: str = field(init=False)  # dialled last
    reason: str = field(init=False, default="does not answer")
    barred: frozenset[str] = field(init=False)
    _replicas: dict[str, Replica] = field(init=False, default_factory=dict)
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
            self._replicas[url] = Replica(url, Backoff(self.random))
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
        """All URLs, the preferred one first."""
        return list(self._replicas)

    @property
    def many(self) -> bool:
        """Whether there is anything to choose."""
        return len(self._replicas) > 1

    @property
    def preferred(self) -> str:
        """The first that does not refuse; the first of all if every one does."""
        open_ones = (replica.url for replica in self._replicas.values() if replica.refusal is None)
        return next(open_ones, next(iter(self._replicas)))

    def learn(self, urls: Iterable[str]) -> None:
        """There are other replicas too; they come after those known, up to the bound."""
        for url in urls:
            if len(self._replicas) < URLS_MAX and url not in self._replicas:
                self._replicas[url] = Replica(url, Backoff(self.random))

    def next(self, now: float) -> tuple[str, float]:
        """Where to connect, and in how many seconds."""
        rest = [one for one in self._replicas.values() if one.refusal is None or one.due_at <= now]
        ready = [one for one in rest if one.due_at <= now]
        fresh = [one for one in ready if not one.tried]
        if fresh or ready:
            return (fresh or ready)[0].url, 0.0
        chosen = min(rest or self._replicas.values(), key=lambda one: one.due_at)
        return chosen.url, max(0.0, chosen.due_at - now)

    def wait_s(self, now: float) -> float | None:
        """Seconds until the next attempt, if every replica has been tried in vain; None while one has not."""
        if any(not replica.tried and replica.refusal is None for replica in self._replicas.values()):
            return None
        return self.next(now)[1]

    def verdict(self) -> HeraldError | None:
        """What to end with if every replica refuses; else None."""
        refusals = {replica.url: replica.refusal for replica in self._replicas.values() if replica.refusal is not None}
        return named(refusals) if len(refusals) == len(self._replicas) else None

    # ---- what happened ----

    def dialled(self, url: str) -> None:
        """A connection to `url` is being opened."""
        self.current = url

    def failed(self, now: float, reason: str = "does not answer", retry_after_s: float | None = None) -> None:
        """The current replica did not answer, was lost, or sent us away for a while."""
        self._left(now, reason)
        replica = self._replicas[self.current]
        pause_s = replica.backoff.next(retry_after_s)
        replica.due_at = now + (max(pause_s, REST_S) if self.many else pause_s)
        replica.tried = True

    def refuses(self, error: HeraldError, now: float) -> None:
        """The current replica does not take us."""
        self._refuse(self._replicas[self.current], error, now)
        self._left(now, _refusing(error))

    def again(self, now: float) -> None:
        """The current replica is to be tried again at once, with another token."""
        replica = self._replicas[self.current]
        replica.due_at, replica.refusal = now, None

    def opened(self, now: float) -> None:
        """A connection to the current replica is open."""
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
        """When to ask the preferred replica whether it is ready; None if it is the one in use, or nothing is."""
        return self._probe_at

    def probed(self, good: bool, now: float) -> bool:
        """The preferred replica was asked. True: go back to it now (and say so by `returning`)."""
        self._good = self._good + 1 if good else 0
        if good:
            self._probing.reset()
        back = self._good >= PROBES_GOOD and now - self._left_at >= self._hold_s
        self._probe_at = now + self._probing.next() + PROBE_S / 2
        return back

    def returning(self, now: float) -> None:
        """The connection is being closed in order to go back."""
        self._probe_at = None
        self._opened_at = None
        self._returned_at = now
        self.reason = BACK
        preferred = self._replicas[self.preferred]
        preferred.due_at, preferred.tried = now, False
        preferred.backoff.reset()

    # ---- inside ----

    def _refuse(self, replica: Replica, error: HeraldError, now: float) -> None:
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
        """The preferred replica is left: not to be gone back to for a while, longer if the last return did not last."""
        self._left_at = now
        if self._returned_at is None:
            return
        brief = now - self._returned_at < STAYED_S
        self._hold_s = min(HOLD_S_MAX, self._hold_s * 2) if brief else HOLD_S
        self._returned_at = None


def host(url: str) -> str:
    """A URL as people call it: its host, with the port where one is written."""
    return urlsplit(url).netloc or url


def named(refusals: Mapping[str, HeraldError]) -> HeraldError:
    """One error for the refusals of several replicas, saying whose they are; of a single one its own. The first counts."""
    first = next(iter(refusals.values()))
    if len(refusals) == 1:
        return first
    said = " ".join(f"{host(url)}: {_said(error)}." for url, error in refusals.items())
    if isinstance(first, Problem):
        after_s = first.retry_after_s
        return Problem(first.type, first.title, first.status, said, retry_after_s=after_s, extra=first.extra)
    return Closed(first.code, said) if isinstance(first, Closed) else HeraldError(said)


def learnable(urls: object, like: str) -> list[str]:
    """Of the URLs that a domain named, those to be used: addresses of domains, https unless `like` (the first given) is http."""
    if not isinstance(urls, list | tuple):
        return []
    found: list[str] = []
    for url in urls[:URLS_MAX]:
        try:
            address = Address.parse(url) if isinstance(url, str) else None
        except ValueError:
            continue
        if address is not None and (address.url.startswith("https:") or like.startswith("http:")):
            found.append(address.url)
    return found


def _refusing(error: HeraldError) -> str:
    return "does not serve it now" if is_moved(error) else f"refuses ({_said(error)})"


def is_moved(error: HeraldError) -> bool:
    """Whether a replica says that others serve it."""
    return isinstance(error, Problem) and error.code == "moved"


def _said(error: HeraldError) -> str:
    text = (error.detail or error.title) if isinstance(error, Problem) else ""
    return (text or str(error)).rstrip(".")
