"""The thread that runs the overlay, in one process of the domain at a time.

    wake (every few seconds, in the forwarder) -> no thread here: start one -> it takes the lease, or ends -> assembles the member ->
    takes messages, results of requests and timers in turn, until the lease is lost, the process ends, or this domain leaves

The thread sleeps until the next message or timer. Another thread waits in Redis for messages that gateways received. The lease
(store/lease.py) has an expiry: where this process dies or stalls, another one takes over; one that stalled finds out before it does
anything else.
"""

from __future__ import annotations

import logging
import os
import queue
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError, close_old_connections

from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.decoding import Undecodable
from eventing.membership.ports import process_stopping
from eventing.membership.process.assembly import member_make
from eventing.membership.process.journal import Journal
from eventing.membership.process.timers import Timers
from eventing.membership.process.transport import Exchanged, NotExchanged, OverlayTransport
from eventing.membership.process.upkeep import RunUpkeep, state_load
from eventing.membership.rules.link_counts import link_parameters
from eventing.membership.rules.observations import input_of, observations_read
from eventing.membership.selectors.directory import chain_of
from eventing.membership.selectors.membership import membership_get
from eventing.membership.services.happenings import links_end
from eventing.membership.services.own_record import own_record_problem
from eventing.membership.wire import codec
from eventing.overlay.directory_messages import REFRESH_DUE, RefreshDue
from eventing.overlay.gossip import RoundDue
from eventing.overlay.links import FindLinks, Leave
from eventing.overlay.machine import Down, Fired, MessageReceived, SendMessage, SetTimer
from eventing.overlay.scores import Noted, QueuesFull, VectorsShown
from eventing.store.errors import RedisError
from eventing.store.overlay_pictures import overlay_forget
from eventing.store.overlay_queues import AGAIN, LOOK, overlay_lease, overlay_take

HELD_S = 12.0
"""Lease of the overlay; another process takes over after it."""
RENEW_S = 4.0
TURN_S = 0.5
"""Inputs are taken for so long before timers and the lease are looked at: a whole directory takes seconds to verify."""
TAKE_S = 10.0
"""Longest wait of one command for messages in Redis."""
PAUSE_S = 1.0
"""Pause of the reading thread while Redis does not answer."""
EVENTS_MAX = 10_000  # bound: inputs that wait for the overlay's thread; the reading thread waits
log = logging.getLogger(__name__)


class LeaseLost(Exception):
    """Another process may run the overlay."""


class OverlayRun:
    """One run, from taking the lease to losing it. `run` returns whether another run should follow at once.

    Args:
        stopping: whether the process ends.
    """

    def __init__(self, stopping: Callable[[], bool]) -> None:
        self._stopping = stopping
        self._lease = overlay_lease(os.urandom(8).hex(), int(HELD_S * 1000))
        self._held_until = 0.0
        self._inputs: queue.Queue[Any] = queue.Queue(EVENTS_MAX)
        self._timers = Timers()
        self._chance = random.SystemRandom()
        self._ended = threading.Event()

    def run(self) -> bool:
        """Run until the end. Raises redis.RedisError, DatabaseError."""
        if membership_get() is None or not self._lease.acquire():
            return False
        self._held_until = time.monotonic() + HELD_S
        self._began = time.monotonic()
        membership = (
            membership_get()
        )  # again: a command after the lease was taken arrives, one before it is about what is read here
        problem = "" if membership is None else own_record_problem()
        if problem:
            log.error("The overlay cannot run. %s", problem)
        if membership is None or problem:
            self._lease.release()
            return False
        self._joined_at = membership.joined_at
        links_end("stopped")
        self._second_over()
        started_s = time.time() - (time.monotonic() - self._began)
        self._member, self._routes, timers = member_make(self._held, started_s, self._chance)
        state_load(self._member, started_s)
        self._journal = Journal(self._routes.anchors, lambda: list(map(str, self._member.links.chosen)))
        self._transport = OverlayTransport(
            config().domain,
            self._routes,
            can_be_called=config().overlay_callable,
            chain=lambda: chain_of(config().domain),
            deliver=self._inputs.put,
        )
        self._upkeep = RunUpkeep(self._member, started_s, self._transport.rtt_ms, self._take)
        threading.Thread(target=self._read, name="overlay-inbox", daemon=True).start()
        try:
            for timer in timers:
                self._timers.set(timer.timer, timer.after_s)
            contacts = (membership.sponsor,) if membership.sponsor else tuple(sorted(self._routes.peers))
            self._take(FindLinks(contacts, tuple(membership.known)))
            return self._loop()
        finally:
            self._ended.set()
            self._transport.close()

    def _loop(self) -> bool:
        while not self._stopping():
            self._keep()
            try:
                given = self._inputs.get(timeout=self._wait_s())
            except queue.Empty:
                given = None
            self._require_lease()
            turn_ends = time.monotonic() + TURN_S
            while given is not None:
                if given == AGAIN:
                    return self._end()
                if given == LOOK:
                    self._upkeep.pictures.soon(self._now())
                self._input(given)
                try:
                    given = self._inputs.get_nowait() if time.monotonic() < turn_ends else None
                except queue.Empty:
                    given = None
            now = self._now()
            for timer in self._timers.due(now):
                self._take(Fired(timer))
            self._transport.due(now)
            self._journal.flush(now)
            self._upkeep.due(now)
        self._end()
        return False

    def _end(self) -> bool:
        """End the links in order if this domain left, store what happened, and release the lease.

        A domain that left and joined again meanwhile has another membership, which takes nothing over of the former one.
        """
        membership = membership_get()
        left = membership is None or membership.joined_at != self._joined_at
        if left:
            self._take(Leave())
            deadline = time.monotonic() + PAUSE_S
            while time.monotonic() < deadline and self._transport.calling:
                try:
                    self._input(self._inputs.get(timeout=0.1))
                except queue.Empty:
                    continue
            overlay_forget()
        else:
            self._journal.flush(self._now(), anyway=True)
            self._upkeep.store(self._now())
        self._lease.release()
        return membership is not None

    def _second_over(self) -> None:
        """Wait until the second in which this run began is over, which takes less than two.

        Versions of records and rows are seconds. Whatever a run before this one signed, and should nothing of it be remembered, it signed
        in this second or before: what is signed from now on has another version, and contradicts nothing.
        """
        began = int(time.time())
        while int(time.time()) <= began and not self._stopping():
            time.sleep(1.0 - time.time() % 1.0)

    # Inputs

    def _input(self, given: Any) -> None:
        now = self._now()
        match given:
            case (str() as peer, list() as received):
                self._transport.received(peer, now)
                self._heard(peer, received, now)
            case Exchanged():
                self._transport.exchanged(given, now)
                self._heard(given.peer, given.messages, now)
            case NotExchanged():
                self._transport.not_exchanged(given, now)
            case Down() | Noted() | VectorsShown() | QueuesFull():
                self._take(given)

    def _heard(self, peer: str, received: list[Any], now: float) -> None:
        """Take in the messages of an exchange, which is a sign of life also where it carries none that is understood."""
        self._member.liveness.heard(peer, now)
        if self._member.suspicion is not None:
            self._member.suspicion.heard(peer, now)
        for message in received:
            self._take(MessageReceived(peer, message))

    def _take(self, given: Any) -> None:
        """Have the member handle an input, and carry out its outputs."""
        now = self._now()
        try:
            outputs = self._member.handle(given, now, self._chance)
        except (DatabaseError, RedisError):
            raise
        except Exception:  # an input that the machines do not understand must not end the overlay
            log.exception("The overlay could not handle %s", type(given).__name__)
            return
        patient = type(given) is Fired and type(given.timer) is RoundDue
        for output in outputs:
            kind = type(output)
            if kind is SendMessage:
                self._transport.send(output, now, patient=patient)
            elif kind is SetTimer:
                self._timers.set(output.timer, now + output.after_s)
        if self._journal.note(outputs, now):
            self._upkeep.pictures.soon(now)

    def _held(self, record: Any) -> None:
        if hasattr(self, "_journal"):
            self._journal.record(record, self._now())

    # Time and lease

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _wait_s(self) -> float:
        now = self._now()
        times = [self._timers.next_at(), self._transport.next_at(), self._journal.next_at(), self._upkeep.next_at()]
        next_at = min([at for at in times if at is not None], default=now + RENEW_S)
        return max(0.0, min(next_at - now, RENEW_S))

    def _keep(self) -> None:
        """Renew the lease, and read what administrators may have changed, when it is time."""
        now = time.monotonic()
        if now >= self._held_until - HELD_S + RENEW_S:
            try:
                if not self._lease.renew():
                    raise LeaseLost
                self._held_until = now + HELD_S
            except RedisError as error:
                log.warning("overlay: the lease could not be renewed yet: %s", error)
                self._require_lease()
        if self._routes.read(self._now()):
            outputs = self._member.handle(Fired(REFRESH_DUE), self._now(), self._chance)
            for output in outputs:
                if type(output) is SetTimer and type(output.timer) is not RefreshDue:
                    self._timers.set(output.timer, self._now() + output.after_s)
        links = self._member.links
        links.anchors = self._routes.anchors()
        links.parameters = link_parameters(self._member.directory.count)

    def _require_lease(self) -> None:
        if time.monotonic() >= self._held_until:
            raise LeaseLost

    def _read(self) -> None:
        """Wait for messages that gateways received, on a thread of its own."""
        while not self._ended.is_set() and not self._stopping():
            try:
                entries = overlay_take(self._lease.owner, TAKE_S)
            except RedisError as error:
                log.warning("overlay: Redis does not answer: %s", error)
                self._ended.wait(PAUSE_S)
                continue
            for sender, data in entries:
                try:
                    if sender:
                        self._inputs.put((sender, codec.decode_own(data)))
                    elif (command := data.decode(errors="replace")) in (AGAIN, LOOK):
                        self._inputs.put(command)
                    else:
                        for observation in observations_read(data):
                            self._inputs.put(input_of(observation))
                except Undecodable:
                    log.warning("overlay: messages of %s are of another version", sender)


class OverlayRunner:
    """The runs of this process, one at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def wake(self, stopping: Callable[[], bool]) -> bool:
        """Start a thread that tries to run the overlay, unless one runs here. Returns whether it was started."""
        with self._lock:
            if stopping() or (self._thread is not None and self._thread.is_alive()):
                return False
            if membership_get() is None:
                return False
            self._thread = threading.Thread(target=self._run, args=(stopping,), name="overlay", daemon=True)
            self._thread.start()
            return True

    def _run(self, stopping: Callable[[], bool]) -> None:
        try:
            while OverlayRun(stopping).run():
                pass
        except LeaseLost:
            log.warning("overlay: the lease was lost; another process may run the overlay")
        except (RedisError, DatabaseError) as error:
            log.warning("overlay: ended, and is started again: %s", error)
        except Exception:
            log.exception("The overlay failed, and is started again")
        finally:
            close_old_connections()


overlay_runner = per_process(OverlayRunner)


def overlay_keep() -> int:
    """Have this process run the overlay if this domain takes part in one and no other process runs it. Returns 1 if a run was tried."""
    return int(overlay_runner().wake(process_stopping))
