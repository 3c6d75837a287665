"""People at the console of a running domain, over plain HTTP: what a browser without scripts sends."""

from __future__ import annotations

import re
from typing import Self

import httpx

from tests.servers import Domain

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
        self.http = httpx.Client(base_url=domain.url, timeout=20.0, trust_env=False, transport=transport, verify=False)

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

    def token(self) -> httpx.Response:
        """What the console's script asks for: a token for the WebSocket."""
        found = _CSRF.search(self.get("/account").text)
        assert found is not None
        return self.http.post("/console/token", headers={"X-CSRFToken": found[1]})


def link_in(response: httpx.Response) -> str:
    """The one-time link that a page shows."""
    found = re.search(r"http://[^\s<\"]+/login/once/[\w-]+", response.text)
    assert found is not None, text_of(response)
    return found[0]
