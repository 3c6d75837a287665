"""Refusals on their way into the audit: gathered, so that a flood of them costs a dictionary look-up each and a few rows.

The life of a refusal: `note` counts it under (who, token, action, on what, problem, reason, where from) -> the first of its kind
in a window of WINDOW_S is written by the next `flush` (each second in a gateway, gateway/admission/auditing.py) -> equal ones that
follow are only counted, and written as one more entry with their `count` when the window has passed. A crash loses the
counts of its open windows, never a kind.

Bounds: KINDS_PER_WHO_MAX kinds for one asker, beyond which what they asked for is told no more (`on` is "*"); KINDS_MAX in
all, beyond which refusals are counted in one entry, `refusals.overflow`. So at most 2 * (KINDS_MAX + 1) rows are written
per window and process, whatever is thrown at it, and none is dropped silently.

Where nobody flushes (a command, a server that runs Django without our router), `note` writes at once.
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

from eventing.audit.services import REFUSED, Act, audit_record_all
from eventing.core.errors import HeraldError
from eventing.core.principals import Principal
from eventing.core.request_origin import NO_REQUEST, Origin, current_origin

WINDOW_S = 60.0
KINDS_MAX = 500  # some 100 rows a second would be the chain's limit on a slow disk; this is 17 in the worst case
KINDS_PER_WHO_MAX = 20
ON_CHARS_MAX = 255  # as the column; a longer reference is cut before it is held
COUNTED_MAX = 200  # kinds told apart in what `counted` gives; it is asked each second
MANY = "*"
STATUSES = frozenset({401, 403, 429})
CODES = frozenset({"quota-exceeded"})
log = logging.getLogger(__name__)

Key = tuple[str, str, str, str, str, str, str]


def is_refusal(error: HeraldError) -> bool:
    """Whether this answer is a refusal, and not a mistake of the client's or a failure of ours."""
    return error.status in STATUSES or error.code in CODES


@dataclass(slots=True)
class _Kind:
    """Equal refusals of one window: the act as it will be recorded, and how many of it are not written yet."""

    act: Act
    until: float
    unwritten: int = 1
    count_at: float = 0.0  # when the unwritten ones may be written; 0: at once


class Refusals:
    """The refusals of one process. Safe to use from any thread.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.flushed = False  # whether somebody calls `flush` each second
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
        error: HeraldError,
        principal: Principal | None = None,
        who: str = "",
        on: tuple[str, str] = ("", ""),
        origin: Origin | None = None,
    ) -> None:
        """Count one refusal. Never blocks on anything but memory, unless nobody flushes. Raises nothing."""
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
            act = Act(
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
        """How often (action, code, on what, as the client wrote it) was refused since the last call: for load samples."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return counts

    @property
    def busy(self) -> bool:
        """Whether anything is held."""
        return bool(self._kinds or self._overflow)

    def flush(self, *, everything: bool = False) -> int:
        """Write what is due: kinds that are new, and counts whose window has passed (`everything`: all). Returns the rows.

        Raises nothing: what the database refuses now is kept and tried again.
        """
        with self._flushing:
            due = self._due(everything)
            try:
                audit_record_all([act for _, act in due])
            except Error as error:
                log.error("%d refusals are not in the audit yet, the database does not answer: %s", len(due), error)
                self._put_back(due)
                return 0
            return len(due)

    def _due(self, everything: bool) -> list[tuple[Key | None, Act]]:
        """What is to be written now, taken out; kinds whose window has passed are forgotten."""
        now = self._clock()
        due: list[tuple[Key | None, Act]] = []
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
                reason = f"More than {KINDS_MAX} kinds of refusals within {WINDOW_S:g} s; these are counted only."
                due.append(
                    (
                        None,
                        Act(
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

    def _put_back(self, due: list[tuple[Key | None, Act]]) -> None:
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


def _counted(act: Act, count: int, at: datetime | None) -> Act:
    return Act(
        act.action, act.outcome, act.principal, act.who, act.on, act.error, origin=act.origin, at=at, count=count
    )


_refusals = Refusals()


def refusals() -> Refusals:
    """This process's refusals."""
    return _refusals
