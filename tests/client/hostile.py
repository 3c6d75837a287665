"""A server that answers whatever it is told to: what a client must survive of a domain that is none, or an evil one."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self


class Server(ThreadingHTTPServer):
    """Says nothing of clients that leave."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """See socketserver.BaseServer."""


class Hostile:
    """Answers every request with `status`, `headers` and `body`, or with what `answer(path)` returns of the three.

    `chunk_bytes`: write the body in pieces of so many. `cut_bytes`: end the connection so many bytes before the body's end.
    """

    def __init__(self) -> None:
        self.status = 200
        self.headers: dict[str, str] = {"Content-Type": "application/json"}
        self.body = b"{}"
        self.chunk_bytes: int | None = None
        self.cut_bytes = 0
        self.answer: Callable[[str], tuple[int, dict[str, str], bytes]] | None = None
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.bodies: list[bytes] = []
        self._server = Server(("127.0.0.1", 0), self._handler())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hostile = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or each body waits 40 ms for the acknowledgement of its head

            def _answer(self) -> None:
                hostile.requests.append((self.command, self.path, dict(self.headers)))
                hostile.bodies.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
                status, headers, body = hostile.status, hostile.headers, hostile.body
                if hostile.answer is not None:
                    status, headers, body = hostile.answer(self.path)
                self.send_response(status, "Answer")
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                body = body[: len(body) - hostile.cut_bytes]
                size = hostile.chunk_bytes or max(1, len(body))
                try:
                    for at in range(0, len(body), size):
                        self.wfile.write(body[at : at + size])
                        self.wfile.flush()
                except OSError:
                    self.close_connection = True
                if hostile.cut_bytes:
                    self.close_connection = True

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer  # noqa: N815 - the names that the base class calls

            def log_message(self, *_: Any) -> None:
                """Not on the terminal."""

        return Handler
