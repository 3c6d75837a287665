"""Several domains as real processes, with a proxy of its own for every route between two of them.

    with Network(folder, "abc") as network:              # a.test, b.test, c.test: three complete `make run`;
                                                         # the fixture `network` is one that the tests of a run share
        network.shape(ring(network.names))               # who peers with whom, both administrators agreeing
        rp = network.create_rp("a"); network.join(rp, "b"); network.join(rp, "c")
        reader = network.reader(rp, "c")
        network.partition("a", "b"); network.publish(rp, "a", 10); network.heal()
        network.converged(rp); reader.has(network.published[rp])

A name is one letter or word here; the domain is called NAME.test. What a test publishes carries its place in its
publisher's order, so that each reader can check by itself that nothing is lost, doubled or out of order.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import httpx

from demo.harness.background import Background
from demo.harness.proxy import Proxy
from demo.harness.reader import Reader
from demo.harness.servers import Domain, wait_for

CONVERGED_WITHIN_S = 60.0
PEERED_WITHIN_S = 60.0
DELIVERY_LEASE_S = 8
"""Delivery lease of the network that tests share, seconds: a takeover takes this long; shorter leases lapse by mistake
on a busy machine.
"""
QUOTA_BYTES = 256 * 1024 * 1024
"""Quota of histories per domain in the network that tests share, bytes."""
BATCH = {"content-type": "application/cloudevents-batch+json"}
ADMIN = "root"
OPEN: list[dict[str, Any]] = [
    {"issuer": "anyone", "allow": ["describe", "publish", "subscribe", "history", "replicate"]},
]  # anyone may do everything but administer: for scenarios that are not about access

Pair = tuple[str, str]


def line(names: Sequence[str]) -> list[Pair]:
    """Return A - B - C: each peers with the next one."""
    return list(itertools.pairwise(names))


def ring(names: Sequence[str], *, chord: bool = False) -> list[Pair]:
    """Return pairs in which each peers with the next, the last with the first; with a chord across if requested."""
    pairs = [*line(names), (names[-1], names[0])] if len(names) > 2 else line(names)
    return [*pairs, (names[0], names[len(names) // 2])] if chord and len(names) > 3 else pairs


def mesh(names: Sequence[str]) -> list[Pair]:
    """Return pairs in which each peers with each."""
    return list(itertools.combinations(names, 2))


class NetworkDomain(Domain):
    """One domain of a network."""

    def __init__(self, folder: Path, short: str, *, seed: Path | None = None, **settings: Any) -> None:
        super().__init__(folder / short / "var", seed=seed, domain=f"{short}.test", allow_private_peers=1, **settings)
        self._http: httpx.Client | None = None

    @property
    def admin(self) -> httpx.Client:
        """Return an administrator's client, kept open."""
        if self._http is None:
            self._http = self.http(admin=True, subject=ADMIN)
        return self._http

    def ask(self, method: str, path: str, members: Any = None, *, expect: Iterable[int] = (200, 201, 202, 204)) -> Any:
        """Send a REST request as administrator; return its JSON. Fails when the status is none of `expect`."""
        answer = self.admin.request(method, path, json=members)
        assert answer.status_code in expect, f"{self.name}: {method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else {}

    def close(self) -> None:
        """Close the administrator's client."""
        if self._http is not None:
            self._http.close()
            self._http = None


class Guest(Protocol):
    """A domain that is not one of the network's processes, such as a lying peer."""

    port: int


class Publisher(threading.Thread):
    """Publishes one event after another at a domain until `stop`; refusals and broken connections are retried."""

    def __init__(self, network: Network, rp: str, at: str, every_s: float) -> None:
        super().__init__(name=f"publisher-{at}", daemon=True)
        self._network, self._rp, self._at, self._every_s = network, rp, at, every_s
        self._ended = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._ended.is_set():
            self._network.publish(self._rp, self._at)
            self._ended.wait(self._every_s)

    def stop(self) -> None:
        """Stop; return when the last event is stored."""
        self._ended.set()
        self.join(30)


class Network:
    """Domains by their short names. `settings` are HERALD_* of all of them, by their field names; `seed` as of Domain.

    Without `proxied` domains peer by their own addresses: no route can be cut, and readers are pointed to the domains themselves.
    """

    def __init__(
        self, folder: Path, names: Sequence[str], *, seed: Path | None = None, proxied: bool = True, **settings: Any
    ) -> None:
        self.names = list(names)
        self._proxied = proxied
        self.members = {name: NetworkDomain(folder, name, seed=seed, **settings) for name in names}
        self.background = Background()
        self.guests: dict[str, Guest] = {}
        self.proxies: dict[Pair, Proxy] = {}
        self.published: dict[str, list[str]] = {}
        self._counts: dict[Pair, itertools.count[int]] = {}
        self._readers: list[Reader] = []
        self._made: list[Pair] = []
        self._joined: dict[str, list[str]] = {}
        self._misbehaved_before: dict[str, dict[Row, int]] = {}
        self._lock = threading.Lock()

    # -- start and stop ---------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getitem__(self, name: str) -> NetworkDomain:
        return self.members[name]

    def start(self, *names: str, ready: Callable[[str], None] | None = None) -> Self:
        """Start domains (all by default) concurrently, and wait until each is ready; `ready` is called for each."""
        starting = names or self.names
        for name in starting:  # in this thread: processes die with the thread that started them
            self.members[name].spawn()
        for name in starting:
            self.members[name].wait_up()
            if ready is not None:
                ready(name)
        return self

    def stop(self, *names: str) -> None:
        """Send Ctrl-C to domains (all by default) concurrently."""
        threads = [threading.Thread(target=self.members[name].stop) for name in names or self.names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def kill(self, name: str, process: str | None = None) -> None:
        """Send SIGKILL to the whole domain or to one of its processes (which its supervisor starts again)."""
        member = self.members[name]
        if process is not None:
            member.kill(process)
            return
        member.kill_everything()

    def close(self) -> None:
        """Stop everything, in any state."""
        try:
            self._stop_readers()
            self.stop()
        finally:
            for member in self.members.values():
                member.kill_everything()
                member.close()
            for proxy in self.proxies.values():
                proxy.close()
            self.background.stop()

    # -- one test after another -------------------------------------------------------------------------------------

    def begin(self, pairs: Iterable[Pair] = ()) -> None:
        """Prepare a test on a network that others used: all run, and exactly these are peers. Counts start anew."""
        down = [name for name in self.names if not self.members[name].is_running]
        if down:
            self.start(*down)
        self.reshape(pairs)
        self._misbehaved_before = {name: _by_kind(self._misbehaviour(name)) for name in self.names}

    def end(self) -> None:
        """Clean up after a test: routes are restored, its readers stop, its rendezvous points are deleted where they
        run.
        """
        self._stop_readers()
        self.heal()
        for rp, home in self._made:
            if self.members[home].is_running:
                with contextlib.suppress(httpx.TransportError):  # its gateway may be starting
                    self.members[home].admin.delete(f"/api/v1/rps/{rp}")
        self._made.clear()

    def _stop_readers(self) -> None:
        while self._readers:
            self._readers.pop().stop()

    def logs(self) -> str:
        """Return everything that all domains printed and logged, for a failure's report."""
        return "\n".join(f"===== {name}\n{member.logs()}" for name, member in self.members.items())

    # -- the network ------------------------------------------------------------------------------------------------

    def proxy(self, origin: str, to: str) -> Proxy:
        """Return the route of `origin`'s requests to `to`; made when first requested."""
        if (origin, to) not in self.proxies:
            self.proxies[origin, to] = Proxy(self.background, lambda: (self.guests.get(to) or self.members[to]).port)
        return self.proxies[origin, to]

    def partition(self, one: str, other: str, *, one_way: bool = False, blackhole: bool = False) -> None:
        """Cut the route from `one` to `other`, and back unless `one_way`."""
        for way in [(one, other)] if one_way else [(one, other), (other, one)]:
            self.proxy(*way).cut(blackhole=blackhole)

    def isolate(self, name: str) -> None:
        """Partition a domain from all others."""
        for origin, to in list(self.proxies):
            if name in (origin, to):
                self.proxy(origin, to).cut()

    def delay(self, one: str, other: str, delay_s: float) -> None:
        """Delay the traffic between both, in either direction, by this time."""
        for way in ((one, other), (other, one)):
            self.proxy(*way).delay_s = delay_s

    def heal(self, *names: str) -> None:
        """Undo partitions, delays and drops: between two domains, of one domain with all others, or of all by default."""
        for way, proxy in list(self.proxies.items()):
            if set(names) <= set(way):
                proxy.heal()

    # -- peers and replicas -----------------------------------------------------------------------------------------

    def peer(self, one: str, other: str) -> None:
        """Peer both domains, as their administrators do; return when the peering is active on both sides."""
        for name, of in ((one, other), (other, one)):
            self.add_peer(name, of)
        for name, of in ((one, other), (other, one)):
            wait_for(
                lambda name=name, of=of: self.peer_state(name, of) == "active",  # type: ignore[misc]
                PEERED_WITHIN_S,
                every_s=0.1,
                about=f"{of} is an active peer of {name}",
            )

    def add_peer(self, at: str, of: str, **stated: Any) -> None:
        """Look up the other domain, compare its fingerprint, add it: the acts of the administrator of `at`."""
        url = self.proxy(at, of).url if self._proxied else self.members[of].url
        seen = self.members[at].ask("POST", "/api/v1/peers/look", {"url": url})
        assert seen["domain"] == f"{of}.test", seen
        self.members[at].ask(
            "POST", "/api/v1/peers", {"url": url, "fingerprint": seen["fingerprint"], **TRUSTED, **stated}
        )

    def peer_state(self, at: str, of: str) -> str:
        """Return the state of the peer `of` at `at`; empty if it is none."""
        answer = self.members[at].admin.get(f"/api/v1/peers/{of}.test")
        return str(answer.json()["state"]) if answer.status_code == 200 else ""

    def shape(self, pairs: Iterable[Pair]) -> None:
        """Peer all pairs."""
        for one, other in pairs:
            self.peer(one, other)

    def reshape(self, pairs: Iterable[Pair]) -> None:
        """Peer these pairs, where they are not, and end the peering of all others."""
        wanted = {frozenset(pair) for pair in pairs}
        for one, other in mesh(self.names):
            peered = self.peer_state(one, other) == self.peer_state(other, one) == "active"
            if {one, other} not in wanted:
                self._part(one, other)
            elif not peered:
                self.peer(one, other)

    def _part(self, one: str, other: str) -> None:
        for _ in range(2):  # the second time for what the other's notice brought back
            for at, of in ((one, other), (other, one)):
                if self.peer_state(at, of):
                    self.forget(at, f"{of}.test")

    def forget(self, at: str, domain: str) -> None:
        """Remove a peer at `at`, by its whole name; no effect if it is none."""
        self.members[at].ask("DELETE", f"/api/v1/peers/{domain}", expect=(200, 204, 404))

    def create_rp(self, at: str, **asked: Any) -> str:
        """Create an RP whose home is `at`; anyone may use and replicate it unless a policy is given. Returns its id."""
        made = str(self.members[at].ask("POST", "/api/v1/rps", {"policy": OPEN, **asked})["id"])
        self._made.append((made, at))
        self._joined[made] = [at]
        return made

    def join(self, rp: str, at: str, via: str | None = None, *, lease_s: int = 3600) -> dict[str, Any]:
        """Have `at` join `rp`, asking its peer `via` (by default whichever it finds itself)."""
        asked = {"rp": rp, "lease_s": lease_s, **({"via": f"{via}.test"} if via else {})}
        joined: dict[str, Any] = self.members[at].ask("POST", "/api/v1/replicas", asked)
        self._joined[rp].append(at)
        return joined

    def replicated_rp(self, home: str, *at: str, via: str | None = None, **asked: Any) -> str:
        """Return a new RP with replicas at these domains."""
        rp = self.create_rp(home, **asked)
        for name in at:
            self.join(rp, name, via or home)
        return rp

    # -- events -----------------------------------------------------------------------------------------------------

    def publish(self, rp: str, at: str, count: int = 1, *, data: Any = None, within_s: float = 30.0) -> list[str]:
        """Publish events at a domain, as its one publisher; return their ids. Retried until they are stored."""
        with self._lock:
            numbers = self._counts.setdefault((rp, at), itertools.count(1))
            events = [_event(at, next(numbers), data) for _ in range(count)]
        for begin in range(0, count, 500):
            content = json.dumps(events[begin : begin + 500])
            self._stored(rp, at, content, within_s)
        ids = [str(one["id"]) for one in events]
        self.published.setdefault(rp, []).extend(ids)
        return ids

    def publisher(self, rp: str, at: str, *, every_s: float = 0.05) -> Publisher:
        """Return a thread that publishes until it is stopped."""
        return Publisher(self, rp, at, every_s)

    def reader(
        self, rp: str, at: str, *, from_: str = "earliest", subject: str = "reader", also: Iterable[str] = ()
    ) -> Reader:
        """Return a subscriber over the client library at a domain, subscribed when this returns.

        Args:
            also: other domains to which it may send its token.
        """
        urls = [self.members[name].url for name in (at, *also)]
        reader = Reader(self.background, urls, self.members[at].token(subject=subject), rp, from_)
        self._readers.append(reader)
        return reader

    def _stored(self, rp: str, at: str, content: str, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while True:
            try:
                answer = self.members[at].admin.post(f"/api/v1/rps/{rp}/events", content=content, headers=BATCH)
                problem = answer.text
                if answer.status_code == 201:
                    return
                assert answer.status_code in (429, 500, 502, 503), f"{at} refuses to publish: {problem}"
            except httpx.TransportError as error:
                problem = repr(error)
            assert time.monotonic() < deadline, f"{at} stored nothing within {within_s:g} s: {problem}"
            time.sleep(0.1)

    # -- held events and detected misbehaviour ---------------------------------------------------------------------

    def vector(self, rp: str, at: str) -> dict[str, int]:
        """Return a domain's vector of an RP."""
        document = self.members[at].ask("GET", f"/api/v1/rps/{rp}")
        own = next((replica for replica in document["replicas"] if replica["domain"] == f"{at}.test"), None)
        assert own is not None, f"{at} does not list itself among the replicas of {rp}: {document}"
        return {feed: sequence for feed, sequence in own["vector"].items() if sequence}

    def participants(self, rp: str, at: str) -> set[str]:
        """Return the participants of an RP, by their whole names, as a domain states them."""
        return {str(one["domain"]) for one in self.members[at].ask("GET", f"/api/v1/rps/{rp}")["replicas"]}

    def vectors(self, rp: str, *at: str) -> dict[str, dict[str, int]]:
        """Return the vectors of an RP by domain (by default all that it was made at or joined from here)."""
        return {name: self.vector(rp, name) for name in at or self._joined[rp]}

    def converged(self, rp: str, *at: str, within_s: float = CONVERGED_WITHIN_S) -> dict[str, int]:
        """Wait until the domains (as of `vectors`) hold everything that was published; return the vector."""
        expected = len(self.published.get(rp, ()))
        seen: dict[str, dict[str, int]] = {}

        def equal() -> bool:
            seen.update(self.vectors(rp, *at))
            first = next(iter(seen.values()))
            return all(vector == first for vector in seen.values()) and sum(first.values()) >= expected

        try:
            wait_for(equal, within_s, every_s=0.1)
        except AssertionError:
            raise AssertionError(f"not converged within {within_s:g} s to {expected} events: {seen}") from None
        return next(iter(seen.values()))

    def misbehaviour(self, at: str) -> list[dict[str, Any]]:
        """Return a domain's counts since `begin`: rows of kind, carrier, origin, count."""
        before = self._misbehaved_before.get(at, {})
        rows = [{**row, "count": row["count"] - before.get(_kind(row), 0)} for row in self._misbehaviour(at)]
        return [row for row in rows if row["count"]]

    def _misbehaviour(self, at: str) -> list[dict[str, Any]]:
        return list(self.members[at].ask("GET", "/api/v1/misbehaviour")["items"])

    def counted(self, at: str, kind: str, *, carrier: str | None = None) -> int:
        """Return how often `at` has counted this kind of misbehaviour (by this domain, by its whole name)."""
        return sum(
            int(row["count"])
            for row in self.misbehaviour(at)
            if row["kind"] == kind and (carrier is None or row["carrier"] == carrier)
        )

    def quarantined(self, at: str) -> set[str]:
        """Return the domains that `at` has quarantined."""
        return {str(row["origin"]) for row in self.members[at].ask("GET", "/api/v1/quarantines")["items"]}


TRUSTED = {"push": True, "host": True, "gossip": True}
Row = tuple[str, str, str]


def _kind(row: dict[str, Any]) -> Row:
    return str(row["kind"]), str(row["carrier"]), str(row["origin"])


def _by_kind(rows: Iterable[dict[str, Any]]) -> dict[Row, int]:
    return {_kind(row): int(row["count"]) for row in rows}


def _event(at: str, number: int, data: Any) -> dict[str, Any]:
    """Return an event with its place in its publisher's order."""
    made = {"specversion": "1.0", "id": f"{at}-{number}", "source": f"/{at}", "type": "test"}
    return {**made, "data": {"n": number} if data is None else data}
