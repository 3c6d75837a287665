"""Refusals on their way into the audit: gathered, so that each one of a flood costs a dictionary look-up, and all
together a few rows.

Life of a refusal: `note` counts it under (who, token, action, object, problem, reason, origin) -> the next `flush`
writes the first of its kind in a window of WINDOW_S (each second in a gateway, gateway/admission/auditing.py) -> equal
ones that follow are only counted, and written as one more entry with their `count` at the end of the window. A crash
loses the counts of its open windows, never a kind.

Bounds: KINDS_PER_WHO_MAX kinds for one requester, beyond which the object is left out (`on` is "*"); KINDS_MAX in all,
beyond which refusals are counted in one entry, `refusals.overflow`. So at most 2 * (KINDS_MAX + 1) rows are written per
window and process, whatever the load, and none is dropped silently.

In a process without flushes (a command, a server that runs Django without the gateway's router), `note` writes at once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import Error

from eventing.audit.services import REFUSED, AuditAct, audit_record_all
from eventing.core.container import per_process
from eventing.core.errors import ApplicationError
from eventing.core.principals import Principal
from eventing.core.request_origin import NO_REQUEST, Origin, current_origin

WINDOW_S = 60.0  # bound: seconds in which equal refusals share an entry; the repetitions become one more entry
# bound: kinds of refusals told apart per minute; the others are counted in one entry, `refusals.overflow`
# The hash chain takes about 100 rows a second on a slow disk; this is 17 in the worst case.
KINDS_MAX = 500
KINDS_PER_WHO_MAX = 20  # bound: kinds of refusals of one requester; further refusals are not told apart by their object
ON_CHARS_MAX = 255  # as the column; a longer reference is cut before it is held
# bound: kinds of refusals told apart in one second's event; the others are counted without their object
# Read every second.
COUNTED_MAX = 200
MANY = "*"
STATUSES = frozenset({401, 403, 429})
CODES = frozenset({"quota-exceeded"})
log = logging.getLogger(__name__)

Key = tuple[str, str, str, str, str, str, str]


def is_refusal(error: ApplicationError) -> bool:
    """Return True if this answer is a refusal, and not a client's mistake or a failure of the domain."""
    return error.status in STATUSES or error.code in CODES


@dataclass(slots=True)
class _Kind:
    """Equal refusals of one window: the act to be recorded, and the number not yet written."""

    act: AuditAct
    until: float
    unwritten: int = 1
    count_at: float = 0.0  # when the unwritten ones may be written; 0: at once


class Refusals:
    """Refusals of one process. Thread-safe.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.flushed = False  # whether `flush` is called each second
        self._clock = clock
        self._kinds: dict[Key, _Kind] = {}
        self._of_who: Counter[str] = Counter()
        self._overflow = 0
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._flushing = threading.Lock()
        self._lock = threading.Lock()

    def note(
        self,
        *,
        action: str,
        error: ApplicationError,
        principal: Principal | None = None,
        who: str = "",
        on: tuple[str, str] = ("", ""),
        origin: Origin | None = None,
    ) -> None:
        """Count one refusal; arguments as for `audit_record`. Blocks on nothing but memory, unless there are no
        flushes. Raises nothing."""
        origin = origin or current_origin.get()
        if origin is not NO_REQUEST:
            origin.refusal_recorded = True
        if principal is not None and principal.anonymous:
            principal = None
        asker = principal.identity if principal is not None else who or origin.address
        token = f"{principal.issuer} {principal.token_id}" if principal is not None else ""
        kind, on_id = on[0], on[1][:ON_CHARS_MAX]
        where = f"{origin.via} {origin.address}"
        key = (asker, token, action, f"{kind} {on_id}", error.code, error.detail, where)
        with self._lock:
            if self.flushed:
                self._count((action, error.code, on_id))
            known = self._kinds.get(key)
            if known is None and self._of_who[asker] >= KINDS_PER_WHO_MAX:
                on_id = MANY
                key = (asker, "", action, f"{kind} {on_id}", error.code, "", where)
                known = self._kinds.get(key)
            if known is not None:
                known.unwritten += 1
                return
            if len(self._kinds) >= KINDS_MAX:
                self._overflow += 1
                return
            act = AuditAct(
                action,
                REFUSED,
                principal,
                asker,
                (kind, on_id),
                error,
                origin=origin,
                at=datetime.now(UTC),
            )
            self._kinds[key] = _Kind(act, self._clock() + WINDOW_S)
            self._of_who[asker] += 1
        if not self.flushed:
            self.flush(everything=True)

    def _count(self, key: tuple[str, str, str]) -> None:
        if key not in self._counts and len(self._counts) >= COUNTED_MAX:
            key = (key[0], key[1], MANY)
        self._counts[key] += 1

    def counted(self) -> Counter[tuple[str, str, str]]:
        """Return how often each (action, code, object as the client wrote it) was refused since the last call: for load samples."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return counts

    @property
    def busy(self) -> bool:
        """True if anything is held."""
        return bool(self._kinds or self._overflow)

    def flush(self, *, everything: bool = False) -> int:
        """Write new kinds, and counts whose window has passed (`everything`: all). Returns the number of rows.

        Raises nothing: entries that the database refuses now are kept and retried.
        """
        with self._flushing:
            due = self._due(everything)
            try:
                audit_record_all([act for _, act in due])
            except Error as error:
                log.error(
                    "%d refusals are not in the audit yet, because the database does not answer: %s", len(due), error
                )
                self._put_back(due)
                return 0
            return len(due)

    def _due(self, everything: bool) -> list[tuple[Key | None, AuditAct]]:
        """Take out the acts to be written now, and drop kinds whose window has passed."""
        now = self._clock()
        due: list[tuple[Key | None, AuditAct]] = []
        with self._lock:
            over = []
            for key, kind in self._kinds.items():
                ended = everything or now >= kind.until
                if kind.unwritten and (ended or kind.count_at == 0.0):
                    at = kind.act.at if kind.count_at == 0.0 else datetime.now(UTC)
                    due.append((key, _counted(kind.act, kind.unwritten, at)))
                    kind.unwritten, kind.count_at = 0, kind.until
                if ended:
                    over.append(key)
            for key in over:
                del self._kinds[key]
                self._of_who[key[0]] -= 1
                if not self._of_who[key[0]]:
                    del self._of_who[key[0]]
            if self._overflow:
                reason = f"More than {KINDS_MAX} kinds of refusals within {WINDOW_S:g} s; these are only counted."
                due.append(
                    (
                        None,
                        AuditAct(
                            "refusals.overflow",
                            REFUSED,
                            reason=reason,
                            who=MANY,
                            count=self._overflow,
                            origin=NO_REQUEST,
                        ),
                    )
                )
                self._overflow = 0
        return due

    def _put_back(self, due: list[tuple[Key | None, AuditAct]]) -> None:
        with self._lock:
            for key, act in due:
                known = self._kinds.get(key) if key is not None else None
                if known is not None:
                    known.unwritten += act.count
                    known.count_at = 0.0
                elif key is not None and len(self._kinds) < KINDS_MAX:
                    self._kinds[key] = _Kind(act, self._clock() + WINDOW_S, act.count)
                    self._of_who[key[0]] += 1
                else:
                    self._overflow += act.count


def _counted(act: AuditAct, count: int, at: datetime | None) -> AuditAct:
    return AuditAct(
        act.action, act.outcome, act.principal, act.who, act.on, act.error, origin=act.origin, at=at, count=count
    )


refusals = per_process(Refusals)
