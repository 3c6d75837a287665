"""People at the console of a running domain, over plain HTTP: what a browser without scripts sends."""

from __future__ import annotations

import json
import re
import time
from contextlib import AbstractContextManager, suppress
from typing import Any, Self

import httpx
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from demo.harness.servers import Domain

ANSWER_WITHIN_S = 60.0
PASSWORD = "correct horse battery"
_CSRF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


def text_of(response: httpx.Response) -> str:
    """What is written on a page, in one line."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", response.text)).replace("&#x27;", "'")


class Person:
    """A browser: cookies, and forms that carry the page's CSRF token."""

    def __init__(self, domain: Domain, *, address: str | None = None) -> None:
        # plain HTTP: without verification no certificates are loaded for each person
        transport = httpx.HTTPTransport(local_address=address, verify=False) if address else None
        self.domain = domain
        self.http = httpx.Client(
            base_url=domain.url, timeout=ANSWER_WITHIN_S, trust_env=False, transport=transport, verify=False
        )

    def get(self, path: str, *, follow: bool = True) -> httpx.Response:
        return self.http.get(path, follow_redirects=follow)

    def submit(self, path: str, fields: dict[str, str] | None = None, *, page: str | None = None) -> httpx.Response:
        """Post a form as found on `page` (by default at the same address)."""
        found = _CSRF.search(self.get(page or path).text)
        assert found is not None, f"no form at {page or path}"
        typed = {"csrfmiddlewaretoken": found[1], **(fields or {})}
        return self.http.post(path, data=typed, follow_redirects=True)

    def log_in(self, name: str, password: str = PASSWORD) -> httpx.Response:
        return self.submit("/login", {"username": name, "password": password})

    def by_link(self, url: str) -> Self:
        assert self.submit(url).status_code == 200
        return self

    def set_password(self, password: str = PASSWORD) -> Self:
        answer = self.submit("/password", {"new_password1": password, "new_password2": password})
        assert "The password is set" in text_of(answer)
        return self

    @property
    def is_in(self) -> bool:
        """Whether the session is good for a page."""
        return self.get("/account", follow=False).status_code == 200

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """A request of a page's script: the session's cookie and the page's CSRF token."""
        found = _CSRF.search(self.get("/account").text)
        assert found is not None
        return self.http.request(method, path, json=body, headers={"X-CSRFToken": found[1]})

    def websocket(self, *, origin: str | None = "", query: str = "") -> Line:
        """The connection of a page of `origin`: by default the domain's own; None for none."""
        cookies = "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())
        return Line(
            connect(
                f"ws{self.domain.url.removeprefix('http')}/console/ws{query}",
                origin=self.domain.url if origin == "" else origin,  # type: ignore[arg-type]
                additional_headers={"Cookie": cookies} if cookies else {},
                subprotocols=["herald.v1"],  # type: ignore[list-item]
                compression=None,
                open_timeout=ANSWER_WITHIN_S,
                proxy=None,
            )
        )


class Line:
    """One connection of a page, one operation at a time."""

    _ws: ClientConnection

    def __init__(self, connecting: AbstractContextManager[ClientConnection]) -> None:
        self._connecting = connecting

    def __enter__(self) -> Self:
        self._ws = self._connecting.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._ws.close()

    def ask(self, op: str, **members: object) -> dict[str, Any]:
        """The answer to an operation, `ok` or `error`."""
        self._ws.send(json.dumps({"op": op, "id": 1, **members}))
        while (frame := self.frame()).get("id") != 1:
            pass
        return frame

    def frame(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self._ws.recv(timeout=ANSWER_WITHIN_S))
        return frame

    def closed(self, within_s: float) -> int:
        """The close code that arrives within `within_s`."""
        deadline = time.monotonic() + within_s
        with suppress(ConnectionClosed):
            while True:
                self._ws.recv(timeout=max(0.0, deadline - time.monotonic()))
        assert self._ws.close_code is not None
        return self._ws.close_code


def link_in(response: httpx.Response) -> str:
    """The one-time link that a page shows."""
    found = re.search(r"http://[^\s<\"]+/login/once/[\w-]+", response.text)
    assert found is not None, text_of(response)
    return found[0]
