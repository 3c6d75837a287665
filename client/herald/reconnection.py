"""What a lost socket or a refused handshake means: which replica is next and when, or the end. No I/O, clock or random source here.

The choice between replicas is rollover.py's; connection.py opens and closes the sockets. Times are seconds of any steady clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from herald.answers import MalformedAnswer
from herald.errors import FORBIDDEN, RP_GONE, TOKEN_EXPIRED, Closed, HeraldError, Problem, is_terminal
from herald.rollover import BACK, Move, Rollover
from herald.session import Drop, Session

DROPS_MAX = 5  # sockets in a row that ended by frames that are not understood, without anything that is; then it ends
_RESTARTING = frozenset({1001, 1012, 4000})


@dataclass(slots=True)
class Reconnection:
    """See the module. `refused`, `dropped` and `lost` raise the HeraldError to end with when every replica refuses.

    Arguments:
        renewable: whether asking again may give another token, so that an expired one is no end.
    """

    rollover: Rollover
    session: Session
    renewable: bool
    _token_renewed: bool = False  # since something was last accepted
    _drops: int = 0  # sockets in a row that were dropped
    _open_at: str = ""  # the URL of the last connection that was open

    def dialled(self, url: str) -> None:
        """A connection to `url` is being opened."""
        if url != self.rollover.current:
            self._token_renewed = False
        self.rollover.dialled(url)

    def opened(self, now: float) -> Move | None:
        """A connection is open; the move, if the one before was at another replica."""
        self.rollover.opened(now)
        here, before = self.rollover.current, self._open_at or self.rollover.known[0]
        self._open_at = here
        reason = self.rollover.reason
        return Move(before, here, reason, reason == BACK) if here != before else None

    def accepted(self) -> None:
        """The domain accepted an operation or a subscription: the token is good."""
        self._token_renewed = False

    def understood(self) -> None:
        """The domain answered an operation or gave an item."""
        self._drops = 0

    def refused(self, problem: Problem, now: float) -> None:
        """The handshake was answered with a problem."""
        if problem.passing or problem.status >= 500:
            self.rollover.failed(now, "is not available", problem.retry_after_s)
        elif problem.status != 401 or not self._renew_token(now):
            self._refused_by_replica(problem, now)

    def dropped(self, drop: Drop, now: float) -> None:
        """The session gave the connection up."""
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
        """The socket was closed by the other side, or broke. What the domain announced counts more than the code.

        Arguments:
            about: what is said of the domain when another is gone on at; empty for what the code means.
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
            self.rollover.failed(now, about or ("is restarting" if code in _RESTARTING else "does not answer"))

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
