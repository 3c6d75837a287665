"""A domain that a test plays by hand, byte by byte: its keys, its document, and its server, which answers as a test says."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from joserfc.jwk import OKPKey

from eventing.core.signing import Signed
from eventing.peering.rules.domain_documents import make, published
from eventing.peering.wire import signatures


def new_key() -> dict[str, Any]:
    key = OKPKey.generate_key("Ed25519")
    return {**key.as_dict(private=True), "kid": key.thumbprint(), "nbf": int(time.time()) - 1000}


def document(domain: str, *keys: dict[str, Any], url: str = "http://127.0.0.1:9", serial: int = 1) -> Signed:
    content = {"domain": domain, "url": url, "websocket": f"ws{url.removeprefix('http')}/ws", "versions": [1]}
    return make({**content, "serial": serial, "issued_at": int(time.time())}, keys)


class Server:
    """A domain's server: each request is given to `behave`, with the connection that it came over.

    Attributes:
        document: what it publishes of itself, if anything.
        connections: how many there have been.
    """

    def __init__(self, behave: Callable[[socket.socket, signatures.SignedRequest, bytes], None]) -> None:
        self._behave = behave
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.document: Signed | None = None
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.shutdown(
            socket.SHUT_RDWR
        )  # ends the waiting accept, which would else wait at the next server's socket
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            try:
                while line := stream.readline():
                    method, path, _ = line.decode().split(" ")
                    fields = {}
                    while (field := stream.readline().decode().strip()) != "":
                        name, _, value = field.partition(":")
                        fields[name.lower()] = value.strip()
                    body = stream.read(int(fields.get("content-length", 0)))
                    if method == "GET":  # somebody looks for its document
                        members = {} if self.document is None else {"document": published(self.document)}
                        connection.sendall(on_the_wire(200, {}, json.dumps(members).encode()))
                        continue
                    self._behave(connection, signatures.SignedRequest(method, f"{self.url}{path}", fields), body)
            except OSError:
                return


def on_the_wire(status: int, headers: dict[str, str], body: bytes) -> bytes:
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Any\r\ncontent-length: {len(body)}\r\n{fields}\r\n".encode() + body
