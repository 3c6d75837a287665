"""WebSub (W3C Recommendation) for subscribers: discovery of the hub of an address, and requests to the hub."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urljoin

import httpx

from herald.errors import HeraldError

PAGE_BYTES_MAX = 1024 * 1024
REDIRECTS_MAX = 3
TIMEOUT_S = 20.0
_FEEDS = ("xml", "html")


class HubRefused(HeraldError):
    """A hub, or the page of a topic, is missing, does not answer, or refuses; the message states what."""


class HubTopic(NamedTuple):
    """A hub, and the canonical address of the topic there."""

    hub: str
    topic: str


async def discover(http: httpx.AsyncClient, url: str) -> HubTopic:
    """Find hub and topic of an address: in the fields `Link` of the answer, else in the links of its HTML, Atom or RSS.

    Raises HubRefused if there is none, httpx.HTTPError.
    """
    async with http.stream("GET", url, follow_redirects=True) as answer:
        answer.raise_for_status()
        at = str(answer.url)
        found = _of_fields(answer.headers.get_list("link"))
        if "hub" not in found and any(kind in answer.headers.get("content-type", "") for kind in _FEEDS):
            found = {**_of_page(await _begin_of(answer), answer.encoding or "utf-8"), **found}
    if "hub" not in found:
        raise HubRefused(f"{url} names no WebSub hub, neither in the field Link nor in its content.")
    return HubTopic(urljoin(at, found["hub"]), urljoin(at, found.get("self", at)))


async def ask_hub(
    http: httpx.AsyncClient, to: HubTopic, mode: str, callback: str, *, secret: str = "", lease_s: int | None = None
) -> None:
    """Send a request to subscribe or to unsubscribe; another hub to which it is redirected is asked instead, by POST again.

    Raises HubRefused if the hub refuses, httpx.HTTPError.
    """
    stated = {"hub.mode": mode, "hub.topic": to.topic, "hub.callback": callback}
    if mode == "subscribe":
        stated |= {"hub.secret": secret} if secret else {}
        stated |= {"hub.lease_seconds": str(lease_s)} if lease_s else {}
    hub = to.hub
    for _ in range(REDIRECTS_MAX + 1):
        answer = await http.post(hub, data=stated)
        if answer.status_code not in (301, 302, 307, 308):
            break
        hub = urljoin(hub, answer.headers.get("location", ""))
    if not answer.is_success:
        raise HubRefused(f"The hub {hub} answered {answer.status_code}: {answer.text[:200].strip()}")


async def _begin_of(answer: httpx.Response) -> bytes:
    content = b""
    async for part in answer.aiter_bytes():
        content += part
        if len(content) > PAGE_BYTES_MAX:
            break
    return content[:PAGE_BYTES_MAX]


def _of_fields(fields: list[str]) -> dict[str, str]:
    """Return the first target of each relation in fields `Link` (RFC 8288)."""
    found: dict[str, str] = {}
    for field in fields:
        for link in _split(field, ","):
            target, *parameters = _split(link, ";")
            target = target.strip()
            if not (target.startswith("<") and target.endswith(">")):
                continue
            for parameter in parameters:
                name, _, value = parameter.partition("=")
                if name.strip().lower() == "rel":
                    for relation in value.strip().strip('"').lower().split():
                        found.setdefault(relation, target[1:-1])
    return found


def _split(text: str, mark: str) -> list[str]:
    """Split at a mark that is neither in <> nor in quotes."""
    parts, part, closing = [], "", ""
    for char in text:
        if closing:
            closing = "" if char == closing else closing
        elif char in '<"':
            closing = ">" if char == "<" else '"'
        elif char == mark:
            parts.append(part)
            part = ""
            continue
        part += char
    return [*parts, part]


def _of_page(content: bytes, encoding: str) -> dict[str, str]:
    reader = _Links()
    try:
        reader.feed(content.decode(encoding, errors="replace"))
    except LookupError:
        reader.feed(content.decode(errors="replace"))
    return reader.found


class _Links(HTMLParser):
    """The first target of each relation in elements `link` of HTML and Atom, and `atom:link` of RSS, outside of entries."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._inside = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a link."""
        name = tag.rpartition(":")[2]
        if name in ("entry", "item", "body"):
            self._inside += 1
        elif name == "link" and not self._inside:
            members = dict(attrs)
            for relation in (members.get("rel") or "").lower().split():
                if members.get("href"):
                    self.found.setdefault(relation, str(members["href"]))

    def handle_endtag(self, tag: str) -> None:
        """Leave an entry."""
        if tag.rpartition(":")[2] in ("entry", "item", "body"):
            self._inside -= 1
