"""HTTP requests to a domain: tokens, problem documents, and retries of idempotent requests."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from herald.answers import ANSWER_BYTES_MAX, MALFORMED, MalformedAnswer, lines_of, page_checked, parse_object
from herald.backoff import Backoff
from herald.dial import Address, Credentials, refused
from herald.errors import ConnectionLost, Problem
from herald.events import encode
from herald.rollover import learnable
from herald.session import HERE_ONLY

ATTEMPTS_MAX = 4
TIMEOUT_S = 15.0
_ID = re.compile(r"[a-z2-7]{26}(\.admin)?|domain\.admin")
PROBE_S_MAX = 5.0
DELAYS = 3  # requests of one measurement
PATIENCE_S_MAX = 10.0  # a longer Retry-After is in the Problem, for the caller to wait


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """A successful answer with its whole content."""

    url: str
    headers: Mapping[str, str]
    content: bytes


class Rest:
    """Sends requests. `again=True` states that repeating a request has no further effect: it is tried `ATTEMPTS_MAX`
    times.

    Requests are sent to the first of `addresses`, which is the managed domain; or to the URL of another, `at`.
    `anywhere=True` is for operations that every replica of a rendezvous point does equally: if the first one does not
    answer or does not serve it, the others are asked in turn. With `follows` such a POST may be redirected once.
    """

    def __init__(self, addresses: Sequence[Address], credentials: Credentials, *, follows: bool = True) -> None:
        self._follows = follows
        self._urls = [address.url for address in addresses]
        self._credentials = credentials
        self._random = random.Random()  # noqa: S311 - jitter, not a secret
        self._http = httpx.AsyncClient(base_url=self._urls[0], timeout=TIMEOUT_S, follow_redirects=False)

    async def aclose(self) -> None:
        """Close the kept connections."""
        await self._http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        members: Any = None,
        *,
        content: str | bytes | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        again: bool,
        anywhere: bool = False,
        at: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> RestAnswer:
        """Send one request, with JSON `members` or the caller's `content`. Raises Problem, ConnectionLost, ValueError."""
        sent = dict(headers or {})
        if members is not None:
            content = encode(members)
            sent.setdefault("Content-Type", "application/json")
        backoff = Backoff(self._random)
        if anywhere and method == "POST" and self._follows:
            sent["Herald-Hops"] = "0"
        urls = [at] if at is not None else list(self._urls) if anywhere else self._urls[:1]
        untried = list(urls)
        while True:
            try:
                return await self._attempt(untried.pop(0), method, path, content, params, sent, timeout_s)
            except (Problem, ConnectionLost) as error:
                learned: list[str] = []
                if anywhere and isinstance(error, Problem) and error.code == "moved":
                    learned = [url for url in learnable(error.extra.get("to"), self._urls[0]) if url not in urls]
                if sent.pop("Herald-Hops", None) is not None and _is_advice(error):
                    # Nothing is stored. This domain still serves the RP: it is asked again, without the header, after those.
                    urls = [*filter(self._credentials.cover, learned), *urls]
                    untried = list(urls)
                    continue
                urls += learned
                untried += learned
                if untried and _elsewhere(error, again):
                    continue
                # A request refused for the moment had no effect; one without an answer may have had.
                may_repeat = error.passing if isinstance(error, Problem) else again
                asked_s = (error.retry_after_s or 0.0) if isinstance(error, Problem) else 0.0
                if not may_repeat or backoff.failures >= ATTEMPTS_MAX - 1 or asked_s > PATIENCE_S_MAX:
                    raise
                await asyncio.sleep(backoff.next(asked_s))
                untried = list(urls)

    async def ready(self, url: str) -> bool:
        """Return whether the domain at `url` states that it is ready; no token is sent to it."""
        try:
            return (await self._http.get(f"{url}/readyz", timeout=PROBE_S_MAX)).is_success
        except httpx.HTTPError:
            return False

    async def delay_ms(self, url: str) -> float | None:
        """Return the round-trip time to the domain at `url`, the least of DELAYS requests on one connection; None without an
        answer. No token is sent to it.
        """
        delays_s = []
        try:
            for _ in range(DELAYS + 1):
                began = time.monotonic()
                (await self._http.get(f"{url}/livez", timeout=PROBE_S_MAX)).raise_for_status()
                delays_s.append(time.monotonic() - began)
        except httpx.HTTPError:
            return None
        return 1000 * min(delays_s[1:])  # the first one opened the connection

    async def replica_urls(self, url: str, rp: str) -> list[str]:
        """Return the URLs of the domains that serve an RP, as the one at `url` states; none if it does not."""
        try:
            response = await self._attempt(url, "GET", rp_path(rp), None, None, {}, TIMEOUT_S)
            found = [replica.get("url") for replica in json_object(response).get("replicas", ())]
            return learnable(found, self._urls[0])
        except (Problem, ConnectionLost, *MALFORMED):
            return []

    async def _attempt(
        self,
        url: str,
        method: str,
        path: str,
        content: str | bytes | None,
        params: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        timeout_s: float,
    ) -> RestAnswer:
        shown = {name: value for name, value in (params or {}).items() if value is not None}
        all_headers = {**await self._credentials.headers(url), **headers}
        try:
            async with self._http.stream(
                method, url + path, content=content, params=shown or None, headers=all_headers, timeout=timeout_s
            ) as response:
                whole = await _whole(response)
        except httpx.TimeoutException as error:
            raise ConnectionLost(f"{url} did not answer within {timeout_s:g} s.") from error
        except httpx.TransportError as error:
            raise ConnectionLost(f"Cannot connect to {url}: {error or type(error).__name__}.") from error
        except httpx.DecodingError as error:
            raise MalformedAnswer(f"The answer of {url} cannot be decompressed.") from error
        if response.is_success:
            return RestAnswer(str(response.url), response.headers, whole)
        raise refused(response.status_code, whole, response.headers.get("Retry-After"))

    async def lines(
        self, path: str, params: Mapping[str, Any] | None = None, *, timeout_s: float = TIMEOUT_S
    ) -> AsyncIterator[str]:
        """Yield the lines of an answer of any length; see answers.lines_of.

        Raises Problem, and ConnectionLost when the answer breaks off.

        Args:
            timeout_s: longest silence of the domain, seconds.
        """
        async with self._streamed(path, params, timeout_s) as response:
            async for line in lines_of(response.aiter_bytes(), response.url):
                yield line

    async def chunks(
        self, path: str, params: Mapping[str, Any] | None = None, *, timeout_s: float = TIMEOUT_S
    ) -> AsyncIterator[bytes]:
        """Yield an answer as bytes, as they arrive; otherwise as `lines`."""
        async with self._streamed(path, params, timeout_s) as response:
            async for chunk in response.aiter_bytes():
                yield chunk

    @asynccontextmanager
    async def _streamed(
        self, path: str, params: Mapping[str, Any] | None, timeout_s: float
    ) -> AsyncIterator[httpx.Response]:
        """Yield an answer to be read as it arrives; failures while it is read become ConnectionLost."""
        shown = {name: value for name, value in (params or {}).items() if value is not None}
        headers = await self._credentials.headers(self._urls[0])
        try:
            async with self._http.stream("GET", path, params=shown, headers=headers, timeout=timeout_s) as response:
                if not response.is_success:
                    whole = await _whole(response)
                    raise refused(response.status_code, whole, response.headers.get("Retry-After"))
                yield response
        except httpx.TransportError as error:
            raise ConnectionLost(
                f"The connection to {self._http.base_url} was lost: {error or type(error).__name__}."
            ) from error
        except httpx.DecodingError as error:
            raise MalformedAnswer(f"The answer of {self._http.base_url} cannot be decompressed.") from error

    async def members(self, method: str, path: str, members: Any = None, **options: Any) -> dict[str, Any]:
        """Send a request as `request` does, and return the JSON object in the answer."""
        return json_object(await self.request(method, path, members, **options))

    async def page(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return a page of a list: `items`, a list of objects, and `next`, the cursor of the next page or None."""
        response = await self.request("GET", path, params=query, again=True)
        return page_checked(json_object(response), (query or {}).get("cursor"), response.url)


async def _whole(response: httpx.Response) -> bytes:
    """Return the content of an answer, of ANSWER_BYTES_MAX at most."""
    parts: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        parts.append(chunk)
        size += len(chunk)
        if size > ANSWER_BYTES_MAX:
            raise MalformedAnswer(f"{response.url} answered with more than {ANSWER_BYTES_MAX} bytes.")
    return b"".join(parts)


def _elsewhere(error: Problem | ConnectionLost, again: bool) -> bool:
    """Return whether another replica may do what this one did not."""
    if isinstance(error, ConnectionLost):
        return again
    return error.code in HERE_ONLY or (error.status >= 500 and (again or error.passing))


def _is_advice(error: Problem | ConnectionLost) -> bool:
    """Return whether a domain asks to publish elsewhere, which is up to the client."""
    return isinstance(error, Problem) and error.code == "moved" and "hops" in error.extra


def json_object(answer: RestAnswer) -> dict[str, Any]:
    """Return the JSON object in the answer. Raises MalformedAnswer for anything else: then it was no Herald domain."""
    return parse_object(answer.content, answer.url)


def rp_path(reference: str, action: str = "") -> str:
    """Return the path of an RP, by id or name, with an action such as `/events`."""
    if not _ID.fullmatch(reference) and not reference.endswith("/"):
        reference += "/"  # a name ends in a slash: without it, an action behind it would count as part of the name
    return f"/api/v1/rps/{quote(reference, safe='')}{action}"


def subscription_path(subscription_id: str, action: str = "") -> str:
    """Return the path of a durable subscription."""
    return f"/api/v1/subscriptions/{quote(subscription_id, safe='')}{action}"
