"""One HTTP/1.1 connection to an endpoint, one exchange at a time: bytes in, an answer or a reason out.

httptools parses answers; this class bounds them. What an endpoint sends is read until the verdict is certain, which the
end of the header section is, and then for a short excerpt of the body: an answer that drips, never ends or is huge
costs its bounds and the connection.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import httptools

from eventing.subscriptions.push.rules.verdicts import NoAnswer, PushAnswer
from eventing.subscriptions.push.wire.resolution import Unreached

ANSWER_S = 15.0  # bound: seconds from the sent request to the end of the answer's header section; the attempt fails
# Standard Webhooks advises 15 to 30 s.
SEND_S = 15.0  # bound: seconds until the kernel has taken a request; the attempt fails
BODY_S = 2.0  # bound: seconds for an answer's body; the rest is not read, and the connection is closed
HEAD_BYTES_MAX = 16 * 1024  # bound: bytes of an answer's header section; the attempt fails: `malformed-answer`
BODY_BYTES_MAX = 64 * 1024  # bound: bytes of an answer's body that are read; the connection is closed
KEPT_BYTES_MAX = 4096  # bound: bytes of an answer's body that are returned; the rest is discarded
INFORMATIONAL_MAX = 4  # bound: answers 1xx before the final one; the attempt fails: `malformed-answer`


class EndpointConnection(asyncio.Protocol):
    """A connection; `exchange` sends a request and returns the answer. Not for several exchanges at once."""

    __slots__ = (
        "_body", "_body_bytes", "_done", "_fields", "_head_bytes", "_informational", "_keep_alive", "_kept_names", "_loop",
        "_parser", "_status", "_timer", "_whole", "_writable", "address", "made_at", "transport", "used",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, address: str) -> None:
        self._loop = loop
        self.address = address
        self.made_at = loop.time()
        self.transport: asyncio.Transport | None = None
        self.used = 0
        self._parser: Any = None
        self._done: asyncio.Future[PushAnswer] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._writable = True
        self._kept_names: tuple[str, ...] = ()
        self._fields: list[tuple[str, str]] = []
        self._body = b""
        self._status = self._head_bytes = self._body_bytes = self._informational = 0
        self._whole = self._keep_alive = False

    @property
    def is_open(self) -> bool:
        """True while another exchange can be begun."""
        return self.transport is not None and not self.transport.is_closing()

    def exchange(self, request: bytes, kept_names: tuple[str, ...]) -> asyncio.Future[PushAnswer]:
        """Send a request. The future has the answer, or Unreached.

        Args:
            kept_names: fields of the answer that are returned, in lower case.
        """
        transport = cast(asyncio.Transport, self.transport)
        self.used += 1
        self._done = self._loop.create_future()
        self._kept_names = kept_names
        self._parser = httptools.HttpResponseParser(self)
        self._fields, self._body = [], b""
        self._status = self._head_bytes = self._body_bytes = self._informational = 0
        self._whole = self._keep_alive = False
        transport.write(request)
        self._timer = self._loop.call_later(ANSWER_S if self._writable else SEND_S, self._late)
        return self._done

    def close(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self.transport = cast(asyncio.Transport, transport)

    def pause_writing(self) -> None:
        """Note that the kernel does not take the request."""
        self._writable = False

    def resume_writing(self) -> None:
        """Give the answer its time from now on."""
        self._writable = True
        if self._done is not None and self._timer is not None:
            self._timer.cancel()
            self._timer = self._loop.call_later(ANSWER_S, self._late)

    def data_received(self, data: bytes) -> None:
        """Parse a part of an answer."""
        if self._done is None:  # nothing was asked
            self.close()
            return
        if not self._status:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(NoAnswer.MALFORMED)
            return
        except httptools.HttpParserError:
            if self._status:  # the verdict is known
                self._keep_alive = False
                self._finish()
            else:
                self._fail(NoAnswer.MALFORMED)
            return
        if self._parser is None:  # the exchange ended meanwhile
            return
        if not self._status and self._head_bytes > HEAD_BYTES_MAX:
            self._fail(NoAnswer.MALFORMED)
        elif self._whole:
            self._finish()
        elif self._body_bytes > BODY_BYTES_MAX:
            self._keep_alive = False
            self._finish()

    def connection_lost(self, _exc: Exception | None) -> None:
        """End the exchange: with the answer if its header section is complete."""
        self.transport = None
        if self._done is None:
            return
        self._keep_alive = False
        if self._status:
            self._finish()
        else:
            self._fail(NoAnswer.CLOSED)

    # httptools

    def on_message_begin(self) -> None:
        """Forget the fields of an informational answer."""
        if not self._status:
            self._fields = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the wanted fields; those after the body are not read."""
        if self._status:
            return
        low = name.decode("latin-1").lower()
        if low in self._kept_names:
            self._fields.append((low, value.decode("latin-1")[:1024]))

    def on_headers_complete(self) -> None:
        """Take the status, and give the body its time."""
        if self._status or self._parser is None:  # a second answer, which nothing asked for
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            return
        self._status = status
        self._keep_alive = self._parser.should_keep_alive()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(BODY_S, self._late)

    def on_body(self, body: bytes) -> None:
        """Keep the begin of the body."""
        if self._whole:
            return
        self._body_bytes += len(body)
        if len(self._body) < KEPT_BYTES_MAX:
            self._body += body[: KEPT_BYTES_MAX - len(self._body)]

    def on_message_complete(self) -> None:
        """End the answer, unless it is an informational one."""
        if self._status:
            self._keep_alive = self._keep_alive and not self._whole
            self._whole = True
            return
        self._informational += 1
        if self._informational > INFORMATIONAL_MAX:
            self._fail(NoAnswer.MALFORMED)

    def _late(self) -> None:
        if self._done is None:
            return
        self._keep_alive = False
        if self._status:
            self._finish()
        else:
            self._fail(NoAnswer.ANSWER_TIMEOUT if self._writable else NoAnswer.SEND_TIMEOUT)

    def _finish(self) -> None:
        done = self._ended()
        if not self._keep_alive:
            self.close()
        if done is not None and not done.done():
            done.set_result(PushAnswer(self._status, "", tuple(self._fields), self._body, address=self.address))

    def _fail(self, reason: NoAnswer) -> None:
        done = self._ended()
        self.close()
        if done is not None and not done.done():
            done.set_exception(Unreached(reason, self.address))

    def _ended(self) -> asyncio.Future[PushAnswer] | None:
        done, self._done = self._done, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._parser = None
        return done
