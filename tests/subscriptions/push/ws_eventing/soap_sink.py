"""A SOAP receiver as subscribers write one: it answers notifications 202, and what it does not know with a fault that relates to it.

with SoapSink() as sink:
    sink.url("/a")              # NotifyTo, or EndTo
    sink.messages("/a")         # envelopes received there, in order
    sink.answer["/a"] = 503     # or a name: `deaf` answers 404 to everything, `mute` 200 without a body
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from lxml import etree

from eventing.subscriptions.push.ws_eventing.notifications import EVENT_ACTION

_WSA = ("http://schemas.xmlsoap.org/ws/2004/08/addressing", "http://www.w3.org/2005/08/addressing")
_KNOWN = (EVENT_ACTION, "/SubscriptionEnd", "/NotifyEvent")


class SoapMessage:
    """An envelope received, with its HTTP fields."""

    def __init__(self, fields: dict[str, str], body: bytes) -> None:
        self.fields = fields
        self.body = body
        self.root: Any = etree.fromstring(body)

    def header(self, name: str) -> str:
        """Text of a header of WS-Addressing; empty for none."""
        return next((str(one) for ns in _WSA if (one := self.root.findtext(f".//{{{ns}}}{name}")) is not None), "")

    @property
    def action(self) -> str:
        """The action."""
        return self.header("Action")

    def text(self, name: str) -> str:
        """Text of the first element of this local name; empty for none."""
        found = self.root.xpath("string((//*[local-name()=$name])[1])", name=name)
        return str(found)


class SoapSink:
    """An HTTP server on threads of its own, at an address of loopback."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        self.answer: dict[str, int | str] = {}
        self.received: list[tuple[str, SoapMessage]] = []
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                message = SoapMessage({name.lower(): value for name, value in self.headers.items()}, body)
                sink.received.append((self.path, message))
                status, content = sink._answered(self.path, message)
                self.send_response(status)
                self.send_header("Content-Type", "application/soap+xml")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer((host, 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]

    def url(self, path: str) -> str:
        """Return an address of the sink."""
        return f"http://{self.host}:{self.port}{path}"

    def messages(self, path: str) -> list[SoapMessage]:
        """Return the notifications and ends received at a path."""
        return [one for at, one in self.received if at == path and one.action.endswith(_KNOWN)]

    def probes(self, path: str) -> int:
        """Return the number of other messages."""
        return sum(at == path and not one.action.endswith(_KNOWN) for at, one in self.received)

    def data(self, path: str) -> list[str]:
        """Return the data of the events received at a path."""
        return [one.text("data") for one in self.messages(path) if not one.action.endswith("/SubscriptionEnd")]

    def _answered(self, path: str, message: SoapMessage) -> tuple[int, bytes]:
        how = self.answer.get(path)
        if isinstance(how, int):
            return how, b""
        if how == "deaf":
            return 404, b"Not found"
        if how == "mute":
            return 200, b""
        if message.action.endswith(_KNOWN):
            return 202, b""
        soap = etree.QName(message.root).namespace
        wsa = next(ns for ns in _WSA if message.root.find(f".//{{{ns}}}Action") is not None)
        fault = (
            f'<s:Envelope xmlns:s="{soap}" xmlns:wsa="{wsa}"><s:Header><wsa:Action>{wsa}/fault</wsa:Action>'
            f"<wsa:RelatesTo>{message.header('MessageID')}</wsa:RelatesTo></s:Header><s:Body><s:Fault><s:Code>"
            "<s:Value>s:Sender</s:Value><s:Subcode><s:Value>wsa:ActionNotSupported</s:Value></s:Subcode></s:Code>"
            '<s:Reason><s:Text xml:lang="en">Not supported</s:Text></s:Reason></s:Fault></s:Body></s:Envelope>'
        )
        return 400, fault.encode()

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
