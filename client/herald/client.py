"""The client: one object per domain and token, with the connections that it needs.

Publishes have a connection of their own, so that a slow reader never delays a confirmation; subscriptions share others.
With several replicas each connection moves between them by itself (rollover.py); a target that one replica refuses and
another may serve is moved to a connection of its own (replica_locations.py).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from herald.alarms import Alarms
from herald.answers import MALFORMED, MalformedAnswer
from herald.best_server import BestServer
from herald.connection import Connection, ConnectionReader
from herald.contact_points import ContactPoints
from herald.defaults import URL_DEFAULT
from herald.dial import Address, Credentials, TokenSource
from herald.durable import DurableSubscriptions
from herald.errors import ClientClosed, ConnectionLost, HeraldError, Problem
from herald.events import Confirmation, Gap, JsonEvent, as_event, encode, is_event
from herald.flow import IN_FLIGHT_MAX, InFlight
from herald.hooks import Hooks
from herald.intakes import Intakes
from herald.loops import callers
from herald.operating import Operating
from herald.overlay import Overlay
from herald.peers import Peers
from herald.plan import PlacementPlans
from herald.rendezvous_points import RendezvousPoints
from herald.replica_locations import ReplicaLocations
from herald.replicas import Replicas
from herald.reports import Reports
from herald.rest import Rest, json_object, rp_path
from herald.rollover import Move, Rollover, learnable
from herald.server_choice import ServerChoice
from herald.session import Interest, SessionMachine, Target
from herald.starts import start_text
from herald.state import CursorStore, FileCursorStore
from herald.statistics import Counters, Disconnected, Reconnected, Statistics
from herald.subscription import Attached, Subscription

FIRST_PATIENCE_S = 10.0
LEARNED_MAX = 1000  # RPs whose replicas are looked up
CONFIRM_S_MAX = 300.0  # half of the time for which a domain recognises a repeated event, by default
log = logging.getLogger("herald")
_STRUCTURED = "application/cloudevents+json"
_BATCH = "application/cloudevents-batch+json"


class Client:
    """A client of one domain; use it as `async with Client(url, token=token) as client`.

    Arguments:
        url: the domain's address; or several, the preferred one first: domains with replicas of what is read and
            published. The client moves to another when one fails, and back to the first when that is available again.
            It learns further addresses from the domains themselves. Management (`rps`, `subscriptions`, ...) uses the
            first.
        token: a token, or a function that returns one (called again when it has expired); None for no token. It is sent
            to the given URLs, not to learned ones. For a token per URL: a mapping, or a function of the URL.
        on_move: called when the client moves to another replica.
        on_disconnect, on_reconnect: called when a connection is lost, and when another one replaces it. A client has one
            connection for publishing and one or more for reading; each reports for itself.
        source: the `source` of events without one; None for this host.
        first_patience_s: seconds to try before giving up when there is no connection yet; 0 for one attempt.
        patience_s: seconds to try after a connection was lost; None for ever.
        in_flight_max: publishes that may be unconfirmed at once; more wait.
        best_server: whether connections measure the domains that a gateway names as alternatives, move to a clearly better
            one, and follow redirects. Only domains are used at which the token is valid as well. False: only a failure
            makes them move.

    Attributes:
        rps: manages rendezvous points.
        subscriptions: manages durable subscriptions.
        intakes: manages addresses at which other systems' webhooks become events.
        hooks: manages webhooks.
        replicas: manages replicas of other domains' rendezvous points.

    Raises ValueError for a URL that is no address.
    """

    def __init__(
        self,
        url: str | Sequence[str] = URL_DEFAULT,
        *,
        token: TokenSource = None,
        on_move: Callable[[Move], None] | None = None,
        on_disconnect: Callable[[Disconnected], None] | None = None,
        on_reconnect: Callable[[Reconnected], None] | None = None,
        source: str | None = None,
        first_patience_s: float = FIRST_PATIENCE_S,
        patience_s: float | None = None,
        in_flight_max: int = IN_FLIGHT_MAX,
        best_server: bool = True,
    ) -> None:
        urls = [url] if isinstance(url, str) else list(url)
        if not urls:
            raise ValueError("no URL was given; give the address of a domain")
        addresses = [Address.parse(one) for one in dict.fromkeys(urls)]
        self._locations = ReplicaLocations([address.url for address in addresses])
        self._credentials = Credentials(token, frozenset(self._locations.urls))
        self._on_move = on_move
        self._on_disconnect = on_disconnect
        self._on_reconnect = on_reconnect
        self._counters = Counters()
        self._told: tuple[str, str] | None = None  # the last reported move
        self._learning: dict[str, asyncio.Task[None]] = {}
        self._source = source
        self._first_patience_s = first_patience_s
        self._patience_s = patience_s
        self._best_server = best_server
        self._rest = Rest(addresses, self._credentials, follows=best_server)
        self._random = random.Random()  # noqa: S311 - jitter, not a secret
        self._ids = itertools.count(1)  # of operations, in all connections
        self._publishers: list[Connection] = []
        self._readers: list[Connection] = []
        self._keys = itertools.count(1)
        self._open: dict[int, Subscription] = {}  # subscriptions that were started and not closed
        self._files: dict[Path, FileCursorStore] = {}
        self._places: dict[
            tuple[int, str], Subscription
        ] = {}  # by store and RP: the subscription that stores that position
        self._in_flight = InFlight(in_flight_max)
        self._unconfirmed: set[asyncio.Future[Any]] = set()
        self._closed = False
        self.rps = RendezvousPoints(self._rest)
        self.subscriptions = DurableSubscriptions(self._rest)
        self.intakes = Intakes(self._rest)
        self.replicas = Replicas(self._rest)
        self.peers = Peers(self._rest)
        self.overlay = Overlay(self._rest)
        self.plan = PlacementPlans(self._rest)
        self.operating = Operating(self._rest)
        self.alarms = Alarms(self._rest)
        self.contact_points = ContactPoints(self._rest)
        self.hooks = Hooks(self._rest)
        self.reports = Reports(self._rest)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._aclose(in_order=kind is None, frames=callers())

    def aclose(self) -> Coroutine[Any, Any, None]:
        """Close all subscriptions and connections. Loops over subscriptions end without error; unconfirmed publishes
        fail with ClientClosed.

        Positions of processed items are stored and acknowledged; see subscription.py for what counts as processed.

        Raises StateError, once everything is closed, if a position could not be stored.
        """
        # Not a coroutine function: an exception that the caller is handling is visible only during the call.
        return self._aclose(in_order=sys.exc_info()[1] is None, frames=callers())

    async def _aclose(self, *, in_order: bool, frames: frozenset[int]) -> None:
        self._closed = True
        for learning in self._learning.values():
            learning.cancel()
        reading = [
            subscription.close(in_hand_done=in_order and subscription.closes_in_order(frames))
            for subscription in list(self._open.values())
        ]
        try:
            outcomes = await asyncio.gather(*reading, return_exceptions=True)
        finally:
            connections = [*self._readers, *self._publishers]
            await asyncio.gather(*(connection.close() for connection in connections))
            await self._rest.aclose()
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    @property
    def stats(self) -> Statistics:
        """Return counters of connections, events and publishes, as they are now."""
        return self._counters.statistics(self._in_flight.count)

    # ---- publishing ----

    async def publish(
        self,
        rp: str,
        data: Any = None,
        *,
        type: str | None = None,
        source: str | None = None,
        id: str | None = None,
        time: datetime | None = None,
        datacontenttype: str | None = None,
        timeout_s: float = CONFIRM_S_MAX,
        **attributes: Any,
    ) -> Confirmation:
        """Publish one event and wait for its confirmation, across reconnections; it is stored once.

        Arguments:
            rp: id or name.
            data: a CloudEvent in JSON form (a mapping with `specversion`) or of the CloudEvents SDK, or the data of a
                new one: bytes, text or JSON.
            type, source, id, time, datacontenttype, attributes: of the new event; see `herald.event`.
            timeout_s: seconds to wait for the confirmation.

        Raises:
            Problem: the domain refused it; it is not stored.
            ConnectionLost: no confirmation in time. Publishing the same event (the same id and source) again is safe.
        """
        event = self._event(
            data, type=type, source=source, id=id, time=time, datacontenttype=datacontenttype, **attributes
        )
        try:
            async with asyncio.timeout(timeout_s):
                confirmations = await (await self.submit(rp, [event]))
        except TimeoutError:
            raise ConnectionLost(
                f"The event {event['id']} was not confirmed within {timeout_s:g} s. Publishing it again with the same "
                "id is safe."
            ) from None
        return confirmations[0]

    async def submit(self, rp: str, events: Iterable[Any]) -> asyncio.Future[list[Confirmation]]:
        """Send events in one frame, as one publish; return as soon as there is room for it, with a future of the
        confirmations.

        Use this for many concurrent publishes: submissions of one client reach an RP in the order made. One that
        the domain refuses for the moment is repeated, and may be stored behind later ones. `events` are
        CloudEvents or data. All are stored or none. Raises ValueError for what is not JSON or not an event.
        """
        if self._closed:
            raise ClientClosed("The client was closed.")
        whole = [self._event(event) for event in events]
        if not whole:
            raise ValueError("no event was given to publish")
        members = encode({"rp": rp, "event": whole[0]} if len(whole) == 1 else {"rp": rp, "events": whole})
        chars = len(members)
        await self._in_flight.enter(chars)
        try:
            target = ("rp", rp)
            answer = self._publishing(target).submit("publish", members, target)
        except BaseException:
            self._in_flight.leave(chars)
            raise
        return self._confirmed(answer, whole, chars)

    async def publish_many(
        self, rp: str, events: Iterable[Any], *, timeout_s: float = CONFIRM_S_MAX
    ) -> list[Confirmation]:
        """Publish events in one frame, all or none, and wait for their confirmations; otherwise as `publish`."""
        try:
            async with asyncio.timeout(timeout_s):
                return await (await self.submit(rp, events))
        except TimeoutError:
            raise ConnectionLost(
                f"The events were not confirmed within {timeout_s:g} s. Publishing them again with the same ids is safe."
            ) from None

    async def flush(self) -> None:
        """Wait until every submitted publish is confirmed or refused."""
        while self._unconfirmed:
            await asyncio.wait(self._unconfirmed)

    async def publish_http(self, rp: str, *events: Any) -> list[Confirmation]:
        """Publish by one HTTP request, all or none; for programs that publish rarely. Otherwise as `publish`."""
        whole = [self._event(event) for event in events]
        if not whole:
            raise ValueError("no event was given to publish")
        batch = len(whole) > 1
        response = await self._rest.request(
            "POST",
            rp_path(rp, "/events"),
            content=encode(whole if batch else whole[0]),
            headers={"Content-Type": _BATCH if batch else _STRUCTURED},
            again=True,
            anywhere=True,
        )
        self._counters.published += len(whole)
        return _confirmations(json_object(response), whole)

    # ---- subscribing ----

    def subscribe(
        self,
        rp: str,
        *,
        from_: str | datetime = "now",
        state: CursorStore | str | os.PathLike[str] | None = None,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> Subscription:
        """Return a subscription; `async for` over it yields `Received` and `Gap`, or start it with `await` or `async
        with`.

        Arguments:
            rp: id or name.
            from_: `now`, `earliest`, `last` (the newest event, then what follows), a cursor, or a time: a datetime, or
                `time:2026-11-24T02:50:00Z`, for the first event that the domain stored then or later.
            state: where the cursor is stored, so that the next process resumes from it (`from_` is then ignored): a
                file, or a store of your own.
            on_gap: called with each gap, in its place in the order, instead of yielding it.
        """
        key, target = next(self._keys), ("rp", rp)
        begin = start_text(from_)
        if state is None:
            return Subscription(key, target, begin, self._reading, on_gap=on_gap, on_closed=self._subscription_closed)
        store = self._file(state) if isinstance(state, str | os.PathLike) else state
        place = (id(store), rp)

        def connect(subscription: Subscription) -> Connection:
            self._hand_over(place)
            self._places[place] = subscription
            return self._reading(subscription)

        def closed(subscription: Subscription) -> None:
            if self._places.get(place) is subscription:
                del self._places[place]
            self._subscription_closed(subscription)

        self._hand_over(place)
        start = store.load(rp) or begin
        return Subscription(key, target, start, connect, save=partial(store.save, rp), on_gap=on_gap, on_closed=closed)

    def attach(
        self,
        subscription_id: str,
        *,
        auto_ack: bool = True,
        renew: bool = True,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> Attached:
        """Read a durable subscription over a WebSocket, from its acknowledged position; otherwise as `subscribe`.

        Arguments:
            auto_ack: acknowledge processed items automatically; else call `ack` of the result.
            renew: renew its lease at half of its time while attached, at whichever domain it is read.
        """

        async def granted_s(url: str) -> float:
            return (await self.subscriptions.get(subscription_id, at=url)).lease.granted_s

        return Attached(
            next(self._keys),
            subscription_id,
            self._reading,
            auto_ack=auto_ack,
            granted_s=granted_s if renew else None,
            on_gap=on_gap,
            on_closed=self._subscription_closed,
        )

    async def about(self) -> dict[str, Any]:
        """Return the domain's statement at `/.well-known/herald`: its `domain` name and more."""
        return await self._rest.members("GET", "/.well-known/herald", again=True)

    async def ready(self) -> None:
        """Return if everything that the domain needs is up. Raises Problem (503) with what is not."""
        try:
            await self._rest.request("GET", "/readyz", again=False)
        except Problem as problem:
            checks = problem.extra.get("checks")
            if not isinstance(checks, Mapping):
                raise
            missing = "; ".join(f"{name}: {state}" for name, state in checks.items() if state != "ok")
            raise Problem(title="The domain is not ready", status=problem.status, detail=missing) from problem

    async def create_token(
        self,
        *,
        subject: str,
        admin: bool = False,
        lease_s: int | None = None,
        ops: list[str] | None = None,
        scopes: list[dict[str, list[str]]] | None = None,
        audience: str | None = None,
    ) -> dict[str, Any]:
        """Have the domain sign a token; returns `token` and `expires_at`. Requires an administrator's token.

        `ops` narrows it to operations, `scopes` to rendezvous points and operations: `[{"rps": ["/a/b/*"], "ops":
        ["publish"]}]`. `audience` is the domain that accepts it, if another.
        """
        members: dict[str, Any] = {"subject": subject, "admin": admin}
        stated = {"lease_s": lease_s, "ops": ops, "scopes": scopes, "audience": audience}
        members.update({name: value for name, value in stated.items() if value is not None})
        return await self._rest.members("POST", "/api/v1/tokens", members, again=True)

    async def tokens(self, *, state: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """List the tokens that the domain issued in the last 30 days, newest first, without the tokens themselves.

        `state` None is any, else `valid`, `expired` or `revoked`. Requires the role administrator, operator or viewer.
        """
        cursor: str | None = None
        while True:
            stated = {"state": state, "cursor": cursor}
            query = {name: value for name, value in stated.items() if value is not None}
            page = await self._rest.page("/api/v1/tokens", query)
            for one in page["items"]:
                yield one
            cursor = page["next"]
            if cursor is None:
                return

    async def revoke(self, kind: str, value: str, *, issuer: str | None = None, reason: str = "") -> dict[str, Any]:
        """Revoke a `token` by its id, a `subject`, or a `key` by its id; `issuer` None is the domain.

        Requires an administrator's token, or revokes the very token in use.
        """
        members = {"kind": kind, "value": value, "issuer": issuer, "reason": reason}
        return await self._rest.members("POST", "/api/v1/revocations", members, again=True)

    async def lift_revocation(self, revocation_id: str) -> None:
        """Lift the revocation of a subject, by the `id` that `revoke` returned."""
        await self._rest.request("DELETE", f"/api/v1/revocations/{quote(revocation_id, safe='')}", again=False)

    async def create_biscuit(self) -> dict[str, Any]:
        """Have the domain make this client's token a Biscuit; returns `token` and `expires_at`; see herald.delegation."""
        return await self._rest.members("POST", "/api/v1/tokens/biscuit", {}, again=True)

    async def keys(self) -> list[dict[str, Any]]:
        """Return the domain's signing keys, newest first; requires an administrator's token."""
        return list((await self._rest.page("/api/v1/keys"))["items"])

    async def rotate_key(self, *, signs_after_s: int | None = None) -> dict[str, Any]:
        """Make and publish the next signing key; it signs `signs_after_s` seconds from now (None: the domain's
        default).
        """
        members = {} if signs_after_s is None else {"signs_after_s": signs_after_s}
        return await self._rest.members("POST", "/api/v1/keys/rotate", members, again=False)

    async def retire_key(self, kid: str, *, reason: str = "") -> dict[str, Any]:
        """End a signing key now: its signatures are refused from then on."""
        return await self._rest.members(
            "POST", f"/api/v1/keys/{quote(kid, safe='')}/retire", {"reason": reason}, again=True
        )

    async def audit(self, **query: Any) -> dict[str, Any]:
        """Return a page of the audit: `items` and `next`. `query` as of GET /api/v1/audit; None for not given.

        Requires an administrator's, operator's or viewer's token.
        """
        return await self._rest.page("/api/v1/audit", query)

    def audit_export(self, **query: Any) -> AsyncIterator[str]:
        """Yield all entries of the audit, oldest first, each a line of JSON; `query` as of GET /api/v1/audit/export."""
        return self._rest.lines("/api/v1/audit/export", query)

    # ---- proofs, and misbehaviour of other domains ----

    async def proof(self, rp: str, *, cursor: str | None = None, offset: int | None = None) -> dict[str, Any]:
        """Return the proof of one event, by its cursor or its offset; `herald.proofs.check` verifies it."""
        query = {"cursor": cursor, "offset": offset}
        return await self._rest.members("GET", rp_path(rp, "/proof"), params=query, again=True, anywhere=True)

    async def path(
        self, rp: str, *, cursor: str | None = None, offset: int | None = None, ask: bool = False
    ) -> dict[str, Any]:
        """Return the domains that one event passed, by its cursor or its offset, as they state it.

        Args:
            ask: whether the domains that these events are exchanged with are asked too; requires a viewer's token.
        """
        query = {"cursor": cursor, "offset": offset, "ask": "true" if ask else None}
        return await self._rest.members("GET", rp_path(rp, "/path"), params=query, again=True)

    async def misbehaviour(self, **query: Any) -> dict[str, Any]:
        """Return a page of misbehaviour of other domains: `items` and `next`. `query` as of GET /api/v1/misbehaviour."""
        return await self._rest.page("/api/v1/misbehaviour", query)

    async def quarantines(self) -> list[dict[str, Any]]:
        """Return the domains whose events are refused."""
        return list((await self._rest.page("/api/v1/quarantines"))["items"])

    async def lift_quarantine(self, origin: str) -> None:
        """Lift the quarantine of a domain. Requires an administrator's token."""
        await self._rest.request("DELETE", f"/api/v1/quarantines/{quote(origin, safe='')}", again=False)

    # ---- connections ----

    def _event(self, value: Any, **attributes: Any) -> JsonEvent:
        stated = {name: item for name, item in attributes.items() if item is not None}
        if self._source is not None and not is_event(value):
            stated.setdefault("source", self._source)
        return as_event(value, **stated)

    def _connection(self, target: Target) -> Connection:
        if self._closed:
            raise ClientClosed("The client was closed.")
        where = self._locations
        refused, now = where.refused(target), asyncio.get_running_loop().time()
        served = target in where.accepted
        rollover, owner = Rollover(where.candidates(target), self._random, refused, now), _Owner(self)
        best = BestServer(self._random, rollover.current) if self._best_server else None
        return Connection(
            rollover,
            self._credentials,
            SessionMachine(self._random, accepted=where.accepted, ids=self._ids),
            owner,
            choice=None if best is None else ServerChoice(best, owner, self._credentials, rollover.barred),
            first_patience_s=self._patience_s if refused and served else self._first_patience_s,
            patience_s=self._patience_s,
            instead=None if served else next(iter(refused.values()), None),
        )

    def _publishing(self, target: Target) -> Connection:
        self._publishers = [connection for connection in self._publishers if connection.ended is None]
        for connection in self._publishers:
            if self._fits(connection, target):
                return connection
        self._publishers.append(self._connection(target))
        return self._publishers[-1]

    def _reading(self, subscription: Subscription) -> Connection:
        connection = self._reading_at(subscription.target)
        self._open[subscription.key] = subscription
        return connection

    def _subscription_closed(self, subscription: Subscription) -> None:
        self._open.pop(subscription.key, None)

    def _file(self, path: str | os.PathLike[str]) -> FileCursorStore:
        """Return the one store of a file for all subscriptions: several would overwrite each other's cursors."""
        return self._files.setdefault(Path(path).absolute(), FileCursorStore(path))

    def _hand_over(self, place: tuple[int, str]) -> None:
        """Save a position in its present subscription, and leave it to another."""
        if (before := self._places.pop(place, None)) is not None:
            before.hand_over()

    def _reading_at(self, target: Target) -> Connection:
        self._readers = [connection for connection in self._readers if connection.ended is None]
        for connection in self._readers:
            if connection.takes(target) and self._fits(connection, target):
                return connection
        self._readers.append(self._connection(target))
        return self._readers[-1]

    def _fits(self, connection: Connection, target: Target) -> bool:
        """Return whether the replicas known to `connection` serve the target too."""
        return connection.rollover.barred == self._locations.refused(target).keys()

    def _learn(self, rp: str, connection: Connection) -> None:
        """Look up the replicas of an RP once, so that they are known when they are needed."""
        if rp in self._learning or len(self._learning) >= LEARNED_MAX or self._closed:
            return

        async def ask() -> None:
            connection.learn(await self._rest.replica_urls(connection.rollover.current, rp))

        self._learning[rp] = asyncio.get_running_loop().create_task(ask())

    def _confirmed(
        self, answer: asyncio.Future[Mapping[str, Any]], events: list[JsonEvent], chars: int
    ) -> asyncio.Future[list[Confirmation]]:
        confirmed: asyncio.Future[list[Confirmation]] = asyncio.get_running_loop().create_future()

        def settle(done: asyncio.Future[Mapping[str, Any]]) -> None:
            self._in_flight.leave(chars)
            if confirmed.done():
                return
            if done.cancelled():
                confirmed.cancel()
                return
            try:
                confirmed.set_result(_confirmations(done.result(), events))
                self._counters.published += len(events)
            except HeraldError as error:
                confirmed.set_exception(error)
                self._counters.refused += len(events)

        answer.add_done_callback(settle)
        confirmed.add_done_callback(lambda done: answer.cancel() if done.cancelled() else None)
        self._unconfirmed.add(confirmed)
        confirmed.add_done_callback(self._unconfirmed.discard)
        return confirmed


class _Owner:
    """The connections' interface to the client; see connection.Owner."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def collided(self, interest: Interest, reader: ConnectionReader) -> None:
        """Move the later of two subscriptions at one RP to a connection of its own: one connection cannot read an RP
        twice.
        """
        client = self._client
        connection = client._connection(interest.target)
        client._readers.append(connection)
        reader.move(connection)
        connection.adopt(interest, reader)

    def elsewhere(self, connection: Connection, target: Target, problem: Problem) -> Connection | HeraldError:
        """Return the connection for a target that one replica refuses and another may serve."""
        client = self._client
        end = client._locations.refuses(target, connection.rollover.current, problem)
        if end is not None or client._closed:
            return end or problem
        publishes = connection in client._publishers
        return client._publishing(target) if publishes else client._reading_at(target)

    def replicated(self, connection: Connection, rp: str) -> None:
        """Note that the RP has replicas."""
        self._client._learn(rp, connection)

    def redirected(self, connection: Connection, urls: object) -> None:
        """Note addresses that a domain named."""
        connection.learn(learnable(urls, self._client._locations.urls[0]))

    def moved(self, move: Move) -> None:
        """Report a move once, although publishes and subscriptions have connections of their own."""
        client = self._client
        log.info("%s", move)
        if client._told != (move.old, move.new):
            client._told = (move.old, move.new)
            if client._on_move is not None:
                client._on_move(move)

    @property
    def counters(self) -> Counters:
        """Return the client's counters."""
        return self._client._counters

    def lost(self, loss: Disconnected) -> None:
        """Report that a connection was lost. A callback that fails is reported by the event loop, and breaks nothing."""
        if self._client._on_disconnect is not None:
            asyncio.get_running_loop().call_soon(self._client._on_disconnect, loss)

    def replaced(self, return_: Reconnected) -> None:
        """Report that a lost connection was replaced, as `lost`."""
        if self._client._on_reconnect is not None:
            asyncio.get_running_loop().call_soon(self._client._on_reconnect, return_)

    def ready(self, url: str) -> Awaitable[bool]:
        """Return whether the domain is ready, by HTTP."""
        return self._client._rest.ready(url)

    def usable(self, urls: Sequence[object]) -> list[str]:
        """Return those URLs that a domain named that may be used, with the same rights."""
        client = self._client
        return [url for url in learnable(list(urls), client._locations.urls[0]) if client._credentials.cover(url)]

    def delay_ms(self, url: str) -> Awaitable[float | None]:
        """Return the round-trip time to a domain, by HTTP."""
        return self._client._rest.delay_ms(url)


def _confirmations(answer: Mapping[str, Any], events: list[JsonEvent]) -> list[Confirmation]:
    results = answer.get("results") or [answer]
    try:
        return [
            Confirmation(event["id"], event["source"], answer["epoch"], result["offset"], bool(result.get("duplicate")))
            for event, result in zip(events, results, strict=True)
        ]
    except MALFORMED as error:
        raise MalformedAnswer("A confirmation is malformed.") from error
