"""The forwarder of a small domain: periodic tasks and forwarding to peers on threads, without Celery's consumer.

The consumer polls its queue, its heart beats, its timers tick: half of what an idle domain may cost. Here one thread waits for the
next peer in one command of Redis (store/forward_queue.py), as soon as a thread is free to forward. The tasks are the same, run by
Celery's application in this process, and so measured, traced and logged as ever.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait

from django.db import close_old_connections

from eventing.conf import config
from eventing.replication.forwarding import wakeups
from eventing.replication.forwarding.measures import copy_in_flight
from eventing.replication.forwarding.sweeping import begin_anew
from eventing.sql.changes import sql_changes
from eventing.store.errors import RedisError
from eventing.store.forward_queue import forward_take
from eventing.store.presence import present
from eventing.telemetry.folder import process_name
from portal.celery import app
from workers.periodic import periodic_start
from workers.quiet_scheduler import QuietScheduler
from workers.schedule import FORWARD, PERIODS_S
from workers.tracing import trace_tasks

TAKE_S = 10.0
"""Longest wait of one command for a peer in Redis."""
PRESENT_S = 4.0
PAUSE_S = 0.5
END_S = 1.5
"""Seconds that turns have to end after `stop`; what they were at is found by the sweep."""
log = logging.getLogger(__name__)


class SmallForwarder:
    """The forwarder of this process."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Have `run` end soon. Called from another thread."""
        wakeups.stop()
        self._stopped.set()

    def run(self) -> None:
        """Forward, and run the periodic tasks, until `stop`."""
        begin_anew()
        trace_tasks(process_name())
        changes = sql_changes()
        if changes is None:
            periodic_start(app, has_workers=False, waiting=lambda: 0, stopping=wakeups.stopping)
        else:  # in SQLite, which this process has for itself: leases would only wake it
            QuietScheduler(app, tuple(PERIODS_S), wakeups.stopping, changes).start()
        queue = ForwardQueue(config().forwarders)
        queue.start()
        while not self._stopped.is_set():
            try:
                present("forwarder")
            except RedisError as error:
                log.debug("The presence of the forwarder is not noted: %s", error)
            copy_in_flight()
            self._stopped.wait(PRESENT_S)
        queue.wait(END_S)


class ForwardQueue:
    """Threads that forward, and the one that waits for peers.

    Args:
        threads: peers to which is forwarded at the same time.
    """

    def __init__(self, threads: int) -> None:
        self._free = threading.Semaphore(threads)
        self._turns: set[Future[None]] = set()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="forward")

    def start(self) -> None:
        """Begin to wait for peers."""
        threading.Thread(target=self._take_forever, name="forward-queue", daemon=True).start()

    def wait(self, within_s: float) -> bool:
        """Wait for the turns under way. Returns False if some take longer."""
        return not wait(set(self._turns), timeout=within_s).not_done

    def _take_forever(self) -> None:
        while not wakeups.stopping():
            self._free.acquire()  # a peer that waits is counted as waiting, in Redis
            peer = None
            while peer is None and not wakeups.stopping():
                try:
                    peer = forward_take(TAKE_S)
                except (RedisError, OSError) as error:
                    log.warning("The next peer to forward to cannot be read yet: %s", error)
                    time.sleep(PAUSE_S)
            if peer is None or wakeups.stopping():
                return  # a peer that was taken is found by the next process's sweep
            turn = self._pool.submit(self._forward, peer)
            self._turns.add(turn)
            turn.add_done_callback(self._turns.discard)

    def _forward(self, peer: str) -> None:
        try:
            app.tasks[FORWARD].apply(args=(peer,))  # Celery logs and counts failures of the task
        except Exception:
            log.exception("Forwarding to %s failed; the sweep begins it again", peer)
        finally:
            close_old_connections()
            self._free.release()
