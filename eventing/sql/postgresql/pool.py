"""Bounded pool of connections to PostgreSQL: psycopg's, with three differences.

- While the server refuses connections, requests fail at once instead of after CONNECTION_WAIT_S each; the first request after the
  server is back gets a connection. psycopg's pool would try again after 1, 2, 4 seconds and so on.
- A connection is tested when it is lent: by its socket, which is readable once the server has closed it, and by a round trip
  after IDLE_S without use. A query for each loan would double the round trips of short requests.
- A connection that a thread has not returned is returned when the thread ends.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import sys
import threading
from time import monotonic
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

CONNECTION_WAIT_S = 5.0  # bound: seconds that a request waits for a connection of the pool; it fails as unavailable
CONNECTION_LIFE_S = (
    30 * 60.0
)  # bound: seconds of a connection; it is replaced after its use, so that servers can be exchanged
CONNECTION_IDLE_S = 10 * 60.0  # bound: seconds without need of a connection; one is closed
IDLE_S = 5.0  # seconds without use after which a connection is tested by a round trip
TURN_S = 0.25  # seconds between two looks of a waiting request whether the server refuses connections
REFUSED_S = 0.25  # seconds after a refused connection in which the server is not asked again
OPENERS = 2  # threads of a pool that open connections


class PooledConnection(psycopg.Connection[Any]):
    """A connection of the pool.

    Attributes:
        loan: number of the loan; 0: in the pool.
        used_at: monotonic seconds of its last return.
    """

    loan = 0
    used_at = 0.0


class _Loan:
    """A loan of a thread, held by the thread's local storage: it is deleted when the thread ends."""

    __slots__ = ("connection", "number", "pool")

    def __init__(self, pool: BoundedPool, connection: PooledConnection, number: int) -> None:
        self.pool, self.connection, self.number = pool, connection, number

    @property
    def open(self) -> bool:
        """True until the connection was returned."""
        return self.connection.loan == self.number

    def __del__(self) -> None:
        if self.open and not sys.is_finalizing():
            with contextlib.suppress(ValueError):  # of another pool by now
                self.pool.putconn(self.connection)


class _ThreadLoans(threading.local):
    """Loans of this thread."""

    def __init__(self) -> None:
        self.loans: list[_Loan] = []


class BoundedPool(ConnectionPool[PooledConnection]):
    """See the module. The server is asked for the first connection by the first request.

    Args:
        max_size: most connections.
        kwargs, configure: as in psycopg_pool.
    """

    def __init__(self, *, max_size: int, kwargs: dict[str, Any], configure: Any) -> None:
        super().__init__(
            connection_class=PooledConnection,
            kwargs=kwargs,
            configure=configure,
            min_size=0,
            max_size=max_size,
            open=False,
            timeout=CONNECTION_WAIT_S,
            max_lifetime=CONNECTION_LIFE_S,
            max_idle=CONNECTION_IDLE_S,
            reconnect_timeout=0.0,  # a request that waits asks again
            reconnect_failed=self._note_refusal,
            num_workers=OPENERS,
        )
        self._numbers = itertools.count(1)
        self._thread = _ThreadLoans()
        self._lent_at = self._refused_at = float("-inf")

    def getconn(self, timeout: float | None = None) -> PooledConnection:
        """Lend a connection that works. Raises psycopg.OperationalError where the server refuses connections, PoolTimeout (one
        of these) where none became free within `timeout` seconds; None: CONNECTION_WAIT_S.
        """
        began = monotonic()
        wait_s = CONNECTION_WAIT_S if timeout is None else timeout
        while (left_s := began + wait_s - monotonic()) > 0:
            if not self._pool and self._refused_at > max(self._lent_at, monotonic() - REFUSED_S):
                raise psycopg.OperationalError("the server refuses connections")
            try:
                found = super().getconn(min(left_s, TURN_S))
            except PoolTimeout:
                if self._refused_at > max(self._lent_at, began):
                    raise psycopg.OperationalError("the server refuses connections") from None
                continue
            if self._works(found):
                return self._lent(found)
            found.close()
            super().putconn(found)  # the pool opens another one
        raise PoolTimeout(f"none of at most {self.max_size} connections became free within {wait_s:g} s")

    def putconn(self, conn: PooledConnection) -> None:
        """Take a connection back."""
        conn.loan, conn.used_at = 0, monotonic()
        super().putconn(conn)

    def _lent(self, connection: PooledConnection) -> PooledConnection:
        self._lent_at = monotonic()
        connection.loan = next(self._numbers)
        self._thread.loans = [loan for loan in self._thread.loans if loan.open]
        self._thread.loans.append(_Loan(self, connection, connection.loan))
        return connection

    def _works(self, connection: PooledConnection) -> bool:
        """Test a connection."""
        try:
            poll = select.poll()
            poll.register(connection.fileno(), select.POLLIN)
            if poll.poll(0) or monotonic() - connection.used_at > IDLE_S:
                connection.execute("")
        except (psycopg.Error, OSError):
            return False
        return True

    def _note_refusal(self, _: ConnectionPool[PooledConnection]) -> None:
        self._refused_at = monotonic()
