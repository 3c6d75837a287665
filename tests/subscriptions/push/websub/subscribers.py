"""Subscribers of the WebSub hub in tests: flask-websub behind a real server, and one that answers as it is told."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from flask import Flask, Response, request
from flask_websub.subscriber import SQLite3SubscriberStorage, SQLite3TempSubscriberStorage, Subscriber
from werkzeug.serving import make_server


class Served:
    """A WSGI application at an address of its own, since the hub has bounds for each host; each request on a thread."""

    def __init__(self, app: Flask) -> None:
        self.app = app
        host = "127." + ".".join(str(1 + byte % 250) for byte in os.urandom(3))
        self._server = make_server(host, 0, app, threaded=True)
        self.url = f"http://{host}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join(10)


class ForeignSubscriber(Served):
    """flask-websub. `heard` has what it told its application."""

    def __init__(self, folder: Path) -> None:
        app = Flask("subscriber")
        storage = SQLite3SubscriberStorage(str(folder / "subscriptions"))
        self.subscriber = Subscriber(storage, SQLite3TempSubscriberStorage(str(folder / "requested")))
        app.register_blueprint(self.subscriber.build_blueprint(url_prefix="/callbacks"))
        self.heard: list[tuple[Any, ...]] = []
        self.subscriber.add_listener(lambda topic, _id, body: self.heard.append(("content", topic, body)))
        self.subscriber.add_error_handler(lambda topic, _id, reason: self.heard.append(("denied", topic, reason)))
        self.subscriber.add_success_handler(lambda topic, _id, mode: self.heard.append((mode, topic)))
        super().__init__(app)
        app.config["SERVER_NAME"] = self.url.removeprefix("http://")

    def subscribe(self, **stated: Any) -> str:
        """Ask a hub; the id of the callback."""
        with self.app.app_context():
            return str(self.subscriber.subscribe(**stated))

    def unsubscribe(self, callback_id: str) -> None:
        """Ask the hub to end a subscription."""
        with self.app.app_context():
            self.subscriber.unsubscribe(callback_id)

    def of(self, kind: str) -> list[tuple[Any, ...]]:
        """Return what was heard of a kind."""
        return [one for one in list(self.heard) if one[0] == kind]


class ScriptedSubscriber(Served):
    """Answers as `answer` says by path: `echo` (the default), a status, or a text. `gets` and `posts` are what came."""

    def __init__(self) -> None:
        self.answer: dict[str, str | int] = {}
        self.gets: list[tuple[str, dict[str, list[str]]]] = []
        self.posts: list[tuple[str, dict[str, str], bytes]] = []
        app = Flask("scripted")

        @app.route("/<path:path>", methods=["GET", "POST"])
        def callback(path: str) -> Response:
            how = self.answer.get(path, "echo")
            if request.method == "POST":
                headers = {name.lower(): value for name, value in request.headers.items()}
                self.posts.append((path, headers, request.get_data()))
                return Response(status=how if isinstance(how, int) else 204)
            query = parse_qs(urlsplit(request.url).query)
            self.gets.append((path, query))
            if isinstance(how, int):
                challenge = query.get("hub.challenge", [""])[0]
                return Response(
                    challenge, status=how, headers={"Location": f"{self.url}/elsewhere"} if how < 400 else {}
                )
            return Response(query.get("hub.challenge", [""])[0] if how == "echo" else how)

        super().__init__(app)

    def modes(self, path: str) -> list[str]:
        """Return the modes of the requests by GET at a path, in order."""
        return [query["hub.mode"][0] for at, query in list(self.gets) if at == path]

    def bodies(self, path: str) -> list[bytes]:
        """Return the contents that were sent to a path, in order."""
        return [body for at, _, body in list(self.posts) if at == path]


class TlsFront:
    """Ends TLS in front of a port: flask-websub sends secrets by https only. `served` is the certificate with its key."""

    def __init__(self, served: Path, port: int) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(served)
        self._listener = context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True)
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self._to = port
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=_copied, args=(one, other), daemon=True).start()


def _copied(source: socket.socket, sink: socket.socket) -> None:
    try:
        while part := source.recv(65536):
            sink.sendall(part)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        sink.close()
