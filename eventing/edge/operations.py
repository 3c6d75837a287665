"""A herald.v1 session: the client's operations and their answers (docs/protocol.md lists them).

Operations take effect in the order they were sent. A publish to a known RP is handed to the appender the moment it is
parsed, many in flight; everything that may wait (a subscription, an RP not yet known) goes through a queue of the
session's own, and what comes after it waits behind it. Answers that are ready in one turn of the loop go out in one
write. When a client has too many unanswered publishes, or does not read its answers, it is read no further.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from eventing.core.cloudevents import Event, check_utf8, parse_many, parse_structured
from eventing.core.cursors import Cursor
from eventing.core.descriptor import Descriptor
from eventing.core.errors import Conflict, HeraldError, InvalidRequest, NotFound, Unavailable
from eventing.core.limits import Account
from eventing.core.origins import current_origin
from eventing.core.positions import parse_from
from eventing.core.principals import Principal
from eventing.edge import pull
from eventing.edge.access import as_told, require
from eventing.edge.auditing import refused_operation
from eventing.edge.close_codes import CLOSE_BAD_REQUEST, CLOSE_LOST, CLOSE_RESTARTING, CLOSE_TOKEN_REVOKED
from eventing.edge.database import in_database
from eventing.edge.flooding import Flooding
from eventing.edge.frames import HERALD, error_message, message, text_frame
from eventing.edge.gateway import Gateway
from eventing.edge.limits import bytes_of
from eventing.edge.publish import published
from eventing.edge.recording import Together
from eventing.edge.session import Follower, Session
from eventing.edge.sinks import Sink
from eventing.log.appender import Outcome
from eventing.records.rows import rp_or_nothing
from eventing.services import rendezvous_points, subscriptions
from eventing.services.access import require_writer

QUEUE_MAX = 20_000  # operations that wait behind one that takes time; reading stops long before
BAD_MESSAGES_MAX = 10  # messages that are not JSON or name no operation; then the connection is closed
CLOSE_NOT_TEXT = 1007
RECORDED = {
    "publish": "publish",
    "subscribe": "subscribe",
    "unsubscribe": "unsubscribe",
    "ack": "subscription.ack",
    "renew": "rp.renew",
}
"""What access records call the operations."""

log = logging.getLogger(__name__)

OpId = int | str | None


class Operation(msgspec.Struct, gc=False):
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


_decode = msgspec.json.Decoder(Operation).decode
_encode = msgspec.json.Encoder().encode


class HeraldSession(Session):
    """See the module.

    Args:
        close: closes the connection: code, reason, whether to connect again.
        pause_reading: stops (True) or resumes (False) reading from the client.
    """

    def __init__(
        self,
        gateway: Gateway,
        sink: Sink,
        principal: Principal,
        close: Callable[[int, str, bool], None],
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
        self._queue: deque[Operation] | tuple[()] = ()  # made when first needed: idle sessions are many
        self._worker: asyncio.Task[None] | None = None
        self._bad_messages = 0
        self._good: Together | None = None  # good publishes that are being answered
        self.account: Account
        self._flooding: Flooding | None = None  # made when first needed, too

    # From the client

    def handle(self, text: bytes) -> None:
        """Take one message of the client. Never blocks."""
        operation: Operation | None = None
        try:
            operation = self._parse(text)
            if self._worker is not None or operation.op != "publish" or not self._publish_at_once(operation):
                self._enqueue(operation)
        except HeraldError as error:
            self._refused(error, operation)
        self._mind_the_flow()

    def _parse(self, text: bytes) -> Operation:
        try:
            check_utf8(text)
            return _decode(text)
        except HeraldError:
            self._close(CLOSE_NOT_TEXT, "text frames are UTF-8", False)
            raise
        except (msgspec.DecodeError, RecursionError) as error:
            self._count_bad()
            raise InvalidRequest(f'A message is a JSON object with an "op": {str(error)[:200]}.') from None

    def _refused(self, raised: HeraldError, operation: Operation | None) -> None:
        error = as_told(raised, anonymous=self._who.anonymous)
        if operation is not None:
            refused_operation(self._origin, self._who, error, operation.op, operation.rp, operation.subscription)
        name, rp = ("unknown", "") if operation is None else (RECORDED.get(operation.op, "unknown"), operation.rp)
        if name == "rp.renew" and operation is not None and operation.subscription:
            name = "subscription.renew"
        self._gateway.records.refused(self, name, rp, error.code)
        self.answer(error_message(error, operation.id if operation else None))
        if self._flooding is None:
            self._flooding = Flooding(self._gateway.limits, self.account, self._mind_the_flow)
        self._flooding.refused(error)

    def _count_bad(self) -> None:
        self._bad_messages += 1
        if self._bad_messages >= BAD_MESSAGES_MAX:
            self._close(CLOSE_BAD_REQUEST, "too many messages that are not operations", False)

    def _enqueue(self, operation: Operation) -> None:
        if operation.op != "publish":
            self._gateway.limits.request(self.account)
        if len(self._queue) >= QUEUE_MAX:
            raise Unavailable("Too many operations wait for their answer.", retry_after_s=1)
        if not isinstance(self._queue, deque):
            self._queue = deque()
        self._queue.append(operation)
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        """Do the operations that take time, in order."""
        current_origin.set(self._origin)
        try:
            while isinstance(self._queue, deque) and self._queue:
                operation = self._queue.popleft()
                try:
                    await self._do(operation)
                except HeraldError as error:
                    self._refused(error, operation)
                self._mind_the_flow()
        except Exception:
            log.exception("An operation failed; the session is closed")
            self._close(1011, "internal error", True)
        finally:
            self._worker = None
            self._queue = ()

    async def _do(self, operation: Operation) -> None:
        match operation.op:
            case "publish":
                self._publish(operation, await self._gateway.descriptors.get(operation.rp))
            case "subscribe":
                await self._subscribe(operation)
            case "unsubscribe":
                await self._unsubscribe(operation)
            case "ack":
                await self._ack(operation)
            case "renew":
                await self._renew(operation)
            case "ping":
                self.answer(message({"op": "ok", "id": operation.id}))
            case _:
                self._count_bad()
                raise InvalidRequest("op is publish, subscribe, unsubscribe, ack, renew or ping.")

    # Publishing

    def _publish_at_once(self, operation: Operation) -> bool:
        descriptor = self._gateway.descriptors.peek(operation.rp)
        if descriptor is None:
            return False
        self._publish(operation, descriptor)
        return True

    def _publish(self, operation: Operation, descriptor: Descriptor) -> None:
        require(descriptor, self._who, "publish")
        self._gateway.refuse_foreign_admin(descriptor)
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
        self._gateway.limits.publish(self.account, descriptor.id, len(events), bytes_of(events))
        self._in_flight += 1
        rp, began = descriptor.id, self._gateway.clock()
        self._gateway.appender.append(
            descriptor, events, lambda outcome: self._published(operation.id, rp, began, events, batch, outcome)
        )

    def _published(
        self, op_id: OpId, rp: str, began: float, events: list[Event], batch: bool, outcome: Outcome
    ) -> None:
        self._in_flight -= 1
        if isinstance(outcome, HeraldError):
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
            self._record(rp, began, events)
        if not self._reading:
            self._mind_the_flow()

    def _record(self, rp: str, began: float, events: list[Event]) -> None:
        """Count a good publish into the record that goes with this turn's answers."""
        good = self._good
        if good is None or good.rp != rp:
            self._record_good()
            good = self._good = Together(rp)
        good.count += 1
        good.events += len(events)
        good.bytes += bytes_of(events)
        good.began += began

    def _record_good(self) -> None:
        if self._good is not None:
            self._gateway.records.published(self, self._good)
            self._good = None

    # Answers, and reading no faster than they go

    def answer(self, frame: bytes) -> None:
        """Write a frame together with whatever else becomes ready in this turn of the loop."""
        if not self._answers:
            asyncio.get_running_loop().call_soon(self._flush_answers)
        self._answers.append(frame)

    def _flush_answers(self) -> None:
        answers, self._answers = self._answers, []
        self._record_good()
        if answers:
            self.sink.write(answers[0] if len(answers) == 1 else b"".join(answers))

    def _mind_the_flow(self) -> None:
        full = (
            self._in_flight >= self._gateway.config.session_publishes_max
            or len(self._queue) >= QUEUE_MAX // 4
            or self.sink.paused
            or (self._flooding is not None and self._flooding.now)
        )
        if full == self._reading:
            self._reading = not full
            self._pause_reading(full)
            if self._room is not None and not full:
                self._room.set()

    async def room(self) -> None:
        """Return when the client may be read on; for servers where reading cannot be paused from here."""
        while not self._reading:
            self._room = asyncio.Event()
            await self._room.wait()

    def _resumed(self) -> None:
        super()._resumed()
        self._mind_the_flow()

    # Reading

    async def _subscribe(self, operation: Operation) -> None:
        gateway = self._gateway
        began = gateway.clock()
        if len(self.followers) >= gateway.config.session_subscriptions_max:
            raise Unavailable(f"A connection has at most {gateway.config.session_subscriptions_max} subscriptions.")
        floor, replays = 0, False
        if operation.subscription:
            durable = await pull.subscription_of(gateway, self._who, operation.subscription)
            rp = durable.rp
            descriptor = await gateway.descriptors.get(rp)
            wanted = parse_from(operation.begin) if operation.begin is not None else None
            wanted = wanted or await pull.held_cursor(gateway, durable)
            floor = await pull.floor_of(gateway, durable)
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
        follower, start = await gateway.hub.follow(self, rp, wanted, floor)
        follower.op_id = operation.id
        follower.subscription = operation.subscription or None
        follower.replays = replays
        members: dict[str, Any] = {"op": "ok", "id": operation.id, "rp": rp, "epoch": start.epoch}
        members |= {"offset": start.next - 1, "recovered": start.recovered}
        members["cursor"] = str(Cursor(start.epoch, start.next - 1))
        if operation.subscription:
            members["subscription"] = operation.subscription
        self._flush_answers()
        self.sink.write(message(members) + (HERALD.gap(rp, start.gap) if start.gap else b""))
        if self in gateway.hub.sessions:  # it may have ended while we waited
            self.begin(follower)
            gateway.records.joined(follower, began)
            gateway.reading_began(descriptor)

    async def _unsubscribe(self, operation: Operation) -> None:
        follower = await self._reading_of(operation)
        self.end(follower)
        self.answer(message({"op": "ok", "id": operation.id, "rp": follower.channel.rp}))

    async def _reading_of(self, operation: Operation) -> Follower:
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

    async def _ack(self, operation: Operation) -> None:
        if not operation.subscription:
            raise InvalidRequest('ack takes "subscription" and "cursor".')
        cursor, began = Cursor.parse(operation.cursor), self._gateway.clock()
        require_writer(self._who)
        durable = await pull.subscription_of(self._gateway, self._who, operation.subscription)
        held = await pull.acknowledge_at(self._gateway, durable, cursor)
        self._gateway.records.succeeded(self, "subscription.ack", durable.rp, began)
        self.answer(message({"op": "ok", "id": operation.id, "subscription": durable.id, "cursor": str(held)}))

    async def _renew(self, operation: Operation) -> None:
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
        """The connection has ended: what waits is not done."""
        super().closed()
        if self._flooding is not None:
            self._flooding.end()
        if self._worker is not None:
            self._worker.cancel()
        if self._room is not None:
            self._room.set()

    def abort(self, lost: bool = False) -> None:
        """Close so that the client connects again."""
        code, reason = (CLOSE_LOST, "heartbeat-lost") if lost else (CLOSE_RESTARTING, "server-restarting")
        self._close(code, reason, True)

    def revoked(self) -> None:
        """The client's token has been revoked: do nothing more for it, and close for good."""
        super().revoked()
        self._who = replace(self._who, admin=False, scopes=())  # what comes before the close is refused
        if self._worker is not None:
            self._worker.cancel()
        self._close(CLOSE_TOKEN_REVOKED, "token-revoked", False)

    def reading_ended(self, follower: Follower, error: HeraldError) -> None:
        """Tell the client which of its subscriptions has ended, and why; the others go on."""
        super().reading_ended(follower, error)
        self.sink.write(error_message(error, follower.op_id, rp=follower.channel.rp))
