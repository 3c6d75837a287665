"""Reaction to a lost socket or a refused handshake: the next replica and when, or the end. No I/O, clock or random
source here.

rollover.py chooses between replicas; connection.py opens and closes the sockets. Times are seconds of any steady clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from herald.answers import MalformedAnswer
from herald.errors import (
    FORBIDDEN,
    RP_GONE,
    TOKEN_EXPIRED,
    Closed,
    HeraldError,
    Problem,
    is_terminal,
    parse_retry_after_ms,
)
from herald.rollover import BACK, Move, Rollover
from herald.session import Drop, SessionMachine

DROPS_MAX = 5  # consecutive sockets that ended by malformed frames without a valid one; then the connection ends
_RESTARTING = frozenset({1001, 1012, 4000})


@dataclass(slots=True)
class Reconnection:
    """The reconnection of one connection. `refused`, `dropped` and `lost` raise the HeraldError to end with when every
    replica refuses.

    Arguments:
        renewable: whether the token source may give another token, so that an expired one is no end.
    """

    rollover: Rollover
    session: SessionMachine
    renewable: bool
    _token_renewed: bool = False  # since something was last accepted
    _drops: int = 0  # consecutive dropped sockets
    _open_at: str = ""  # the URL of the last connection that was open

    def dialled(self, url: str) -> None:
        """Record that a connection to `url` is being opened."""
        if url != self.rollover.current:
            self._token_renewed = False
        self.rollover.dialled(url)

    def opened(self, now: float) -> Move | None:
        """Record that a connection is open; return the move, if the one before was at another replica."""
        self.rollover.opened(now)
        here, before = self.rollover.current, self._open_at or self.rollover.known[0]
        self._open_at = here
        reason = self.rollover.reason
        return Move(before, here, reason, reason == BACK) if here != before else None

    def accepted(self) -> None:
        """Record that the domain accepted an operation or a subscription: the token is valid."""
        self._token_renewed = False

    def understood(self) -> None:
        """Record that the domain answered an operation or delivered an item."""
        self._drops = 0

    def refused(self, problem: Problem, now: float) -> None:
        """Record that the handshake was answered with a problem."""
        if problem.passing or problem.status >= 500:
            self.rollover.failed(now, "is not available", problem.retry_after_s)
        elif problem.status != 401 or not self._renew_token(now):
            self._refused_by_replica(problem, now)

    def dropped(self, drop: Drop, now: float) -> None:
        """Record that the session dropped the connection."""
        if drop.unavailable:
            self.lost(1006, drop.reason, now, "is not available")
            return
        self._drops += 1
        if self._drops < DROPS_MAX:
            self.lost(1006, drop.reason, now, "does not work")
            return
        self._drops = 0
        self._refused_by_replica(MalformedAnswer(drop.reason), now)

    def lost(self, code: int, reason: str, now: float, about: str = "") -> None:
        """Record that the other side closed the socket, or that it broke. The domain's announcement prevails over the
        code.

        Arguments:
            about: the reason to report for a move to another domain; empty for the meaning of the code.
        """
        if code == TOKEN_EXPIRED and self._renew_token(now):
            return
        announced = self.session.closing or {}
        retry = announced.get("retry")
        one_of_many = code in (FORBIDDEN, RP_GONE) and len(self.session.interests) > 1
        if not retry if isinstance(retry, bool) else is_terminal(code) and not one_of_many:
            said = announced.get("reason")
            self._refused_by_replica(Closed(code, reason or (said if isinstance(said, str) else "")), now)
        else:
            said = about or ("is restarting" if code in _RESTARTING else "does not answer")
            self.rollover.failed(now, said, parse_retry_after_ms(announced.get("retry_after_ms")))

    def _renew_token(self, now: float) -> bool:
        """Try this replica again at once with another token, if there may be one."""
        if not self.renewable or self._token_renewed:
            return False
        self._token_renewed = True
        self.rollover.again(now)
        return True

    def _refused_by_replica(self, error: HeraldError, now: float) -> None:
        self.rollover.refuses(error, now)
        if (verdict := self.rollover.verdict()) is not None:
            raise verdict
