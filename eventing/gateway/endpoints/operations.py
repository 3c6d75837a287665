"""Sessions of herald.v1: the client's operations and their answers (docs/protocol.md lists them).

Operations take effect in the order they were sent. A publish to a cached RP is passed to the appender as soon as it is
parsed, many in flight, and so are acknowledgements; every operation that may wait (a subscription, an uncached RP) is
put into a queue of the session's own, after the acknowledgements before it, and later operations wait behind it. Answers
that are ready in one turn of the loop are sent in one write. When a client has too many unanswered publishes, or does
not read its answers, no further frames are read from it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import msgspec

from eventing.access.rules.limits import Account
from eventing.core.decoding import Undecodable, json_reader, placed
from eventing.core.errors import ApplicationError, Conflict, InvalidRequest, Moved, NotFound, Unavailable
from eventing.core.events.cloudevents import Event, check_utf8, parse_many, parse_structured
from eventing.core.events.positions import parse_from
from eventing.core.principals import Principal
from eventing.core.request_origin import current_origin
from eventing.gateway.admission.access import redacted_for, require
from eventing.gateway.admission.auditing import refused_operation
from eventing.gateway.admission.limits import bytes_of
from eventing.gateway.delivery.acknowledgements import Outcome as AckOutcome
from eventing.gateway.delivery.close_codes import (
    CLOSE_BAD_REQUEST,
    CLOSE_DISCONNECTED,
    CLOSE_DISCONNECTED_RETRY,
    CLOSE_LOST,
    CLOSE_RESTARTING,
    CLOSE_TOKEN_REVOKED,
)
from eventing.gateway.delivery.frames import HERALD, error_message, message, text_frame
from eventing.gateway.delivery.redirects import alternatives_of, redirect_frame
from eventing.gateway.delivery.session import Follower, Session
from eventing.gateway.delivery.sinks import Sink
from eventing.gateway.endpoints import pull
from eventing.gateway.endpoints.flooding import Flooding
from eventing.gateway.endpoints.publish import published
from eventing.gateway.endpoints.session_acknowledgements import ACKS_MAX, SessionAcknowledgements
from eventing.gateway.gateway import Gateway
from eventing.gateway.recording import Together
from eventing.log.appender import Outcome
from eventing.records.rows import rp_or_nothing
from eventing.rps.rules.descriptor import Descriptor
from eventing.rps.services import rendezvous_points
from eventing.sql.threads import in_database
from eventing.subscriptions.services import subscriptions

QUEUE_MAX = 20_000  # bound: waiting operations of a connection; `unavailable`; reading stops long before
# One operation may be as large as a batch.
QUEUE_BYTES_MAX = 1024 * 1024  # bound: bytes of waiting operations of a connection; reading stops
# bound: gathered answers to waiting operations; the answers are written, and the next ones wait for room
ANSWERS_MAX = 256
HINTED_MAX = 100  # bound: RPs for which a publisher is sent alternatives; none are sent for the others
BAD_MESSAGES_MAX = 10  # bound: invalid messages of a connection; the connection is closed: 4104
CLOSE_NOT_TEXT = 1007
RECORDED = {
    "publish": "publish",
    "subscribe": "subscribe",
    "unsubscribe": "unsubscribe",
    "ack": "subscription.ack",
    "renew": "rp.renew",
}
"""Names of the operations in access records."""

log = logging.getLogger(__name__)

OpId = int | str | None


class ClientMessage(msgspec.Struct, gc=False):
    """One message of a client. Members that an operation does not use are ignored."""

    op: str
    id: OpId = None
    rp: str = ""
    begin: Any = msgspec.field(default=None, name="from")
    event: msgspec.Raw = msgspec.Raw()
    events: list[msgspec.Raw] | None = None
    subscription: str = ""
    cursor: str = ""
    lease_s: int | None = None


_decode = json_reader(ClientMessage)
_encode = msgspec.json.Encoder().encode


class SessionClose(Protocol):
    """Closes the connection of a session."""

    def __call__(self, code: int, reason: str, retry: bool, retry_after_ms: int | None = None, /) -> None:
        """See `_Connection.close` (websocket.py)."""


class HeraldSession(Session):
    """One herald.v1 session.

    Args:
        close: closes the connection: code, reason, whether to connect again and, if that is stated, after how many milliseconds.
        pause_reading: stops (True) or resumes (False) reading from the client.

    Attributes:
        account: account whose rates its operations use; set by the binding.
    """

    __slots__ = (
        "_acked",
        "_acks",
        "_answers",
        "_bad_messages",
        "_close",
        "_flooding",
        "_gateway",
        "_good",
        "_hinted",
        "_in_flight",
        "_origin",
        "_pause_reading",
        "_publishes_at",
        "_queue",
        "_queue_bytes",
        "_reading",
        "_room",
        "_sent_on",
        "_who",
        "_worker",
        "account",
    )
    account: Account

    def __init__(
        self,
        gateway: Gateway,
        sink: Sink,
        principal: Principal,
        close: SessionClose,
        pause_reading: Callable[[bool], None],
    ) -> None:
        super().__init__(gateway.hub, sink, HERALD)
        self.principal = principal
        self._who = principal
        self._origin = current_origin.get()
        self._gateway = gateway
        self._close = close
        self._pause_reading = pause_reading
        self._reading = True
        self._room: asyncio.Event | None = None
        self._in_flight = 0
        self._answers: list[bytes] = []
        self._queue: deque[tuple[ClientMessage, int]] | tuple[()] = ()  # made when first needed: idle sessions are many
        self._queue_bytes = 0
        self._worker: asyncio.Task[None] | None = None
        self._bad_messages = 0
        self._sent_on = False  # redirected to other replicas, because the gateway stops
        self._good: Together | None = None  # successful publishes being answered
        self._acked: Together | None = None  # acknowledgements likewise
        self._acks: SessionAcknowledgements[tuple[ClientMessage, float]] | None = None  # made when first needed
        self._publishes_at: Descriptor | None = None  # the last RP published at, permitted to this token
        self._hinted: tuple[str, ...] = ()  # RPs published at, whose alternatives were sent
        self._flooding: Flooding | None = None  # made when first needed

    # From the client

    def handle(self, text: bytes) -> None:
        """Handle one message of the client. Never blocks."""
        operation: ClientMessage | None = None
        try:
            operation = self._parse(text)
            if self._worker is None and operation.op == "ack":
                self._gateway.limits.request(self.account)
                self._ack(operation, len(text))
            elif self._worker is not None or operation.op != "publish" or not self._publish_at_once(operation):
                self._enqueue(operation, len(text))
        except ApplicationError as error:
            self._refused(error, operation)
        self._apply_backpressure()

    def _parse(self, text: bytes) -> ClientMessage:
        try:
            check_utf8(text)
            return _decode(text)
        except ApplicationError:
            self._close(CLOSE_NOT_TEXT, "text frames are UTF-8", False)
            raise
        except Undecodable as error:
            self._count_bad()
            wrong, place = placed(error, text)
            raise InvalidRequest(f'A message is a JSON object with an "op": {wrong}.', **place) from None

    def _refused(self, raised: ApplicationError, operation: ClientMessage | None) -> None:
        error = redacted_for(raised, anonymous=self._who.anonymous)
        if operation is not None:
            refused_operation(self._origin, self._who, error, operation.op, operation.rp, operation.subscription)
        name, rp = ("unknown", "") if operation is None else (RECORDED.get(operation.op, "unknown"), operation.rp)
        if name == "rp.renew" and operation is not None and operation.subscription:
            name = "subscription.renew"
        self._gateway.records.refused(self, name, rp, error.code)
        if isinstance(error, Moved):
            self.answer(redirect_frame(error.extra["rp"], error.extra["to"]))
        self.answer(error_message(error, operation.id if operation else None))
        if self._flooding is None:
            self._flooding = Flooding(self._gateway.limits, self.account, self._apply_backpressure)
        self._flooding.refused(error)

    def _count_bad(self) -> None:
        self._bad_messages += 1
        if self._bad_messages >= BAD_MESSAGES_MAX:
            self._close(CLOSE_BAD_REQUEST, "too many messages that are not operations", False)

    def _enqueue(self, operation: ClientMessage, size: int) -> None:
        if operation.op != "publish":
            self._gateway.limits.request(self.account)
        if len(self._queue) >= QUEUE_MAX:
            raise Unavailable("Too many operations are waiting for their answers.", retry_after_s=1)
        if not isinstance(self._queue, deque):
            self._queue = deque()
        self._queue.append((operation, size))
        self._queue_bytes += size
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        """Execute the operations that take time, in order."""
        current_origin.set(self._origin)
        try:
            while isinstance(self._queue, deque) and self._queue:
                operation, size = self._queue.popleft()
                self._queue_bytes -= size
                try:
                    await self._do(operation, size)
                except ApplicationError as error:
                    self._refused(error, operation)
                self._apply_backpressure()
                if len(self._answers) >= ANSWERS_MAX:
                    self._flush_answers()
                await self.drained()  # a client that does not read its answers gets no more of them
        except Exception:
            log.exception("An operation failed; the session is closed")
            self._close(1011, "internal error", True)
        finally:
            self._worker = None
            self._queue = ()
            self._queue_bytes = 0

    async def _do(self, operation: ClientMessage, size: int) -> None:
        if self._acks is not None and operation.op not in ("ack", "publish"):
            await self._acks.settled()
        match operation.op:
            case "publish":
                descriptor = await self._gateway.descriptors.get(operation.rp)
                if descriptor.audience:
                    await self._gateway.audiences.check(descriptor)
                self._publish(operation, descriptor)
            case "subscribe":
                await self._subscribe(operation)
            case "unsubscribe":
                await self._unsubscribe(operation)
            case "ack":
                self._ack(operation, size)
            case "renew":
                await self._renew(operation)
            case "ping":
                self.answer(message({"op": "ok", "id": operation.id}))
            case _:
                self._count_bad()
                raise InvalidRequest("op is publish, subscribe, unsubscribe, ack, renew or ping.")

    # Publishing

    def _publish_at_once(self, operation: ClientMessage) -> bool:
        descriptor = self._gateway.descriptors.peek(operation.rp)
        if descriptor is None or (descriptor.audience and self._gateway.audiences.missing(descriptor) != ()):
            return False
        self._publish(operation, descriptor)
        return True

    def _may_publish(self, descriptor: Descriptor) -> None:
        """Check as `require` does, with the result cached for the present descriptor; always for a narrowed token, and
        at an RP with an audience."""
        if self._publishes_at is descriptor:
            return
        require(descriptor, self._who, "publish")
        self._gateway.require_taken(descriptor)
        if self.hops is not None and descriptor.id not in self._hinted and len(self._hinted) < HINTED_MAX:
            self._publishing_began(descriptor)
        self._publishes_at = None if self._who.narrowed or descriptor.audience else descriptor

    def _publishing_began(self, descriptor: Descriptor) -> None:
        """Send a publisher the alternatives for an RP, none if it has no replicas, and move it if its readers move."""
        rp = descriptor.id
        self._hinted += (rp,)
        if descriptor.home or descriptor.links:
            self._gateway.redirects.when_known(rp, lambda: self._hint(rp))
            self._gateway.reader_moves.began(self, rp)
        else:
            self._hint(rp)

    def _hint(self, rp: str) -> None:
        if self in self._gateway.hub.sessions:
            self.answer(message({"op": "alternatives", "rp": rp, "alternatives": self._alternatives(rp)}))

    def _alternatives(self, rp: str) -> list[dict[str, str | int]]:
        key = self._gateway.reader_moves.key_of(self)
        return alternatives_of(self._gateway.redirects.alternatives(rp, key))

    def _publish(self, operation: ClientMessage, descriptor: Descriptor) -> None:
        self._may_publish(descriptor)
        config = self._gateway.config
        batch = operation.events is not None
        if operation.events is not None:
            events = parse_many(operation.events, bytes_max=config.event_bytes_max, events_max=config.batch_events_max)
        elif operation.event:
            events = [parse_structured(operation.event, bytes_max=config.event_bytes_max, checked=True)]
        else:
            raise InvalidRequest('publish takes "event" or "events".')
        if not events:
            raise InvalidRequest("events holds at least one event.")
        size = bytes_of(events)
        self._gateway.limits.publish(self.account, descriptor.id, len(events), size)
        self._in_flight += 1
        began = self._gateway.clock()
        done = partial(self._published, operation.id, descriptor.id, began, events, size, batch)
        self._gateway.appender.append(descriptor, events, done)

    def _published(
        self, op_id: OpId, rp: str, began: float, events: list[Event], size: int, batch: bool, outcome: Outcome
    ) -> None:
        self._in_flight -= 1
        if isinstance(outcome, ApplicationError):
            self._gateway.records.refused(self, "publish", rp, outcome.code)
            self.answer(error_message(outcome, op_id))
            events = []
        elif batch:
            self.answer(message({"op": "ok", "id": op_id, **published(events, outcome, True)}))
        else:
            offset = b"%d" % outcome.offsets[0]
            epoch = outcome.epoch.encode()
            duplicate = b',"duplicate":true}' if outcome.duplicates[0] else b"}"
            parts = (b'{"op":"ok","id":', _encode(op_id), b',"epoch":"', epoch, b'","offset":', offset, duplicate)
            self.answer(text_frame(b"".join(parts)))
        if events and self._gateway.records.on:
            self._record(rp, began, len(events), size)
        if not self._reading:
            self._apply_backpressure()

    def _record(self, rp: str, began: float, events: int, size: int) -> None:
        """Count a successful publish into the record of this turn's answers."""
        good = self._good
        if good is None or good.rp != rp:
            self._record_good()
            good = self._good = Together(rp)
        good.count += 1
        good.events += events
        good.bytes += size
        good.began += began

    def _record_good(self) -> None:
        if self._good is not None:
            self._gateway.records.published(self, self._good)
            self._good = None
        if self._acked is not None:
            self._gateway.records.acknowledged(self, self._acked)
            self._acked = None

    # Answers, and backpressure

    def answer(self, frame: bytes) -> None:
        """Write a frame together with others that become ready in this turn of the loop."""
        if not self._answers:
            self._gateway.loop.call_soon(self._flush_answers)
        self._answers.append(frame)

    def _flush_answers(self) -> None:
        answers, self._answers = self._answers, []
        self._record_good()
        if answers:
            self.sink.write(answers[0] if len(answers) == 1 else b"".join(answers))

    def _apply_backpressure(self) -> None:
        full = (
            self._in_flight >= self._gateway.config.session_publishes_max
            or len(self._queue) >= QUEUE_MAX // 4
            or self._queue_bytes >= QUEUE_BYTES_MAX
            or (self._acks is not None and (len(self._acks) >= ACKS_MAX or self._acks.bytes >= QUEUE_BYTES_MAX))
            or self.sink.paused
            or (self._flooding is not None and self._flooding.now)
        )
        if full == self._reading:
            self._reading = not full
            self._pause_reading(full)
            if self._room is not None and not full:
                self._room.set()

    async def room(self) -> None:
        """Return when the client may be read further; for servers where reading cannot be paused from here."""
        while not self._reading:
            self._room = asyncio.Event()
            await self._room.wait()

    def _resumed(self) -> None:
        super()._resumed()
        self._apply_backpressure()

    # Reading

    async def _subscribe(self, operation: ClientMessage) -> None:
        gateway = self._gateway
        began = gateway.clock()
        if len(self.followers) >= gateway.config.session_subscriptions_max:
            raise Unavailable(f"A connection has at most {gateway.config.session_subscriptions_max} subscriptions.")
        oldest, replays, durable = 0, False, None
        if operation.subscription:
            durable = await pull.subscription_of(gateway, self._who, operation.subscription)
            rp = durable.rp
            descriptor = await gateway.descriptors.get(rp)
            wanted = parse_from(operation.begin) if operation.begin is not None else None
            wanted = wanted or await pull.held_cursor(gateway, durable)
            oldest = await pull.oldest_granted(gateway, durable)
        else:
            descriptor = await gateway.descriptors.get(operation.rp)
            rp = descriptor.id
            wanted = parse_from(operation.begin) if operation.begin is not None else "now"
            require(descriptor, self._who, "subscribe")
            replays = wanted != "now"
            if replays:
                require(descriptor, self._who, "history")
        if rp in self.followers:
            raise Conflict("This connection already reads that rendezvous point; unsubscribe first.", rp=rp)
        if replicated := bool(descriptor.home or descriptor.links):
            await gateway.redirects.looked_up(rp)
        follower, start = await gateway.hub.follow(self, rp, wanted, oldest)
        follower.op_id = operation.id
        follower.subscription = operation.subscription or None
        follower.replays = replays
        members: dict[str, Any] = {"op": "ok", "id": operation.id, "rp": rp, "epoch": start.epoch}
        members |= {"offset": start.next - 1, "recovered": start.recovered}
        members["cursor"] = str(start.cursor)
        if replicated:
            members["alternatives"] = self._alternatives(rp)
        if operation.subscription:
            members["subscription"] = operation.subscription
        self._flush_answers()
        self.sink.write(message(members) + (HERALD.gap(rp, start.gap) if start.gap else b""))
        if self in gateway.hub.sessions:  # it may have ended meanwhile
            self.begin(follower)
            gateway.records.joined(follower, began)
            gateway.reading_began(descriptor)
            gateway.reader_moves.began(self, rp)
            gateway.shared.began(follower, durable)
            if durable is not None:
                gateway.uses.attached(follower, durable)

    async def _unsubscribe(self, operation: ClientMessage) -> None:
        follower = await self._reading_of(operation)
        self.end(follower)
        self.answer(message({"op": "ok", "id": operation.id, "rp": follower.channel.rp}))

    async def _reading_of(self, operation: ClientMessage) -> Follower:
        if operation.subscription:
            found = [f for f in self.followers.values() if f.subscription == operation.subscription]
        else:
            known = self.followers.get(operation.rp)
            if known is None:
                known = self.followers.get((await self._gateway.descriptors.get(operation.rp)).id)
            found = [known] if known else []
        if not found:
            raise NotFound("This connection does not read that rendezvous point.")
        return found[0]

    def _ack(self, operation: ClientMessage, size: int) -> None:
        if self._acks is None:
            self._acks = SessionAcknowledgements(self._gateway.acknowledgements, self._ack_answered)
        received = (operation, self._gateway.clock())
        self._acks.add(received, size, self._who, operation.subscription, operation.cursor)

    def _ack_answered(self, received: tuple[ClientMessage, float], outcome: AckOutcome) -> None:
        operation, began = received
        if isinstance(outcome, ApplicationError):
            self._refused(outcome, operation)
        else:
            held = message(
                {"op": "ok", "id": operation.id, "subscription": operation.subscription, "cursor": str(outcome.cursor)}
            )
            self.answer(held)
            self._record_ack(outcome.rp, began)
        if not self._reading:
            self._apply_backpressure()

    def _record_ack(self, rp: str, began: float) -> None:
        """Count an acknowledgement into the record of this turn's answers."""
        if self._acked is None or self._acked.rp != rp:
            self._record_good()
            self._acked = Together(rp)
        self._acked.count += 1
        self._acked.began += began

    async def _renew(self, operation: ClientMessage) -> None:
        who, lease_s, began = self._who, operation.lease_s, self._gateway.clock()
        if operation.subscription:
            renew = in_database(subscriptions.subscription_renew)
            lease = await renew(subscription_id=operation.subscription, principal=who, lease_s=lease_s)
        elif operation.rp:
            renew_rp = in_database(rendezvous_points.rendezvous_point_renew)
            lease = await renew_rp(reference=operation.rp, principal=who, lease_s=lease_s)
        else:
            raise InvalidRequest('renew takes "rp" or "subscription".')
        renewed = "subscription.renew" if operation.subscription else "rp.renew"
        self._gateway.records.succeeded(self, renewed, rp_or_nothing(operation.rp), began)
        self.answer(message({"op": "ok", "id": operation.id, "lease": lease}))

    # Ends

    def closed(self) -> None:
        """Discard waiting operations after the end of the connection."""
        super().closed()
        if self._flooding is not None:
            self._flooding.end()
        if self._acks is not None:
            self._acks.forget()
        if self._worker is not None:
            self._worker.cancel()
        if self._room is not None:
            self._room.set()

    def abort(self, lost: bool = False) -> None:
        """Close so that the client connects again, to another replica where possible."""
        if self._gateway.stopping and not self._sent_on:
            self._sent_on = True
            for rp in self.followers:
                if urls := self._gateway.redirects.known(rp, self._gateway.reader_moves.key_of(self)):
                    self.sink.write(redirect_frame(rp, urls))
        if lost:
            self._close(CLOSE_LOST, "heartbeat-lost", True)
        else:
            after_ms = self._gateway.return_after_ms() if self._gateway.stopping else None
            self._close(CLOSE_RESTARTING, "server-restarting", True, after_ms)

    def uses(self, rp: str) -> bool:
        """Return whether it reads the RP, or has published there."""
        return rp in self.followers or rp in self._hinted

    def redirect(self, rp: str, urls: list[str], *, hops: int, valid_s: float) -> None:
        """Send a `redirect` that the client may follow."""
        self.answer(redirect_frame(rp, urls, hops=hops, valid_s=valid_s))

    def revoked(self) -> None:
        """Stop all operations after revocation of the client's token, and close permanently."""
        super().revoked()
        self._silence()
        self._close(CLOSE_TOKEN_REVOKED, "token-revoked", False)

    def _silence(self) -> None:
        """Refuse messages received before the close."""
        self._who = replace(self._who, admin=False, scopes=())
        self._publishes_at = None
        if self._acks is not None:
            self._acks.withdraw()
        if self._worker is not None:
            self._worker.cancel()

    def disconnect(self, retry: bool) -> None:
        """Close at an operator's request. A session that shall not reconnect stops as if its token were revoked."""
        super().disconnect(retry)
        if not retry:
            self._silence()
        self._close(CLOSE_DISCONNECTED_RETRY if retry else CLOSE_DISCONNECTED, "disconnected", retry)

    def reading_ended(self, follower: Follower, error: ApplicationError) -> None:
        """Report which of the client's subscriptions has ended, and why; the others continue."""
        super().reading_ended(follower, error)
        if isinstance(error, Moved):
            self.sink.write(redirect_frame(follower.channel.rp, error.extra["to"]))
        self.sink.write(error_message(error, follower.op_id, rp=follower.channel.rp))
