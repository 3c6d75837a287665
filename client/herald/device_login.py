"""Login of a program without a browser by a link that a person approves (RFC 8628)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx

from herald.answers import MalformedAnswer, parse_object, reading
from herald.dial import Address, refused
from herald.errors import ConnectionLost, HeraldError, Problem

CODES, TOKEN = "/login/device/codes", "/login/device/token"
TIMEOUT_S = 15.0
INTERVAL_S_MAX = 60.0  # bound: seconds between two polls, whatever the domain states
EXPIRES_S_MAX = 3600.0  # bound: seconds of waiting, whatever the domain states
ANSWER_BYTES_MAX = 64 * 1024  # bound: bytes of an answer; MalformedAnswer
SLOWER_S = 5.0  # added to the interval after `slow_down` (RFC 8628, section 3.5)
_ENDINGS = {
    "access_denied": "The login was refused.",
    "expired_token": "Nobody approved the login in time. Begin again.",
}


class LoginRefused(HeraldError):
    """The login was refused, or was not approved in time."""


@dataclass(frozen=True, slots=True)
class DeviceAuthorization:
    """Codes with which a person approves a login: the code, the page, and the page with the code; and the seconds for it."""

    user_code: str
    url: str
    url_with_code: str
    expires_s: float
    interval_s: float
    device_code: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """The token, its domain and subject, and the seconds for which it is valid."""

    token: str = field(repr=False)
    domain: str
    subject: str
    expires_s: float
    admin: bool


class DeviceLogin:
    """Context manager of one login at a domain: `begin`, then `wait` until it is approved. Raises HeraldError.

    Raises ValueError for a URL that is no address.
    """

    def __init__(self, url: str) -> None:
        self.url = Address.parse(url).url
        self._http = httpx.AsyncClient(base_url=self.url, timeout=TIMEOUT_S, follow_redirects=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def begin(self, client: str) -> DeviceAuthorization:
        """Open a login; `client` is shown to the person who approves it."""
        status, answer = await self._post(CODES, {"client": client})
        if status == 404:
            raise Problem(
                title="Not found", status=404, detail="This domain has no login for programs: its version is older."
            )
        if status != 200:
            raise refused(status, answer, None)
        with reading("The answer to the login"):
            found = parse_object(answer, self.url)
            return DeviceAuthorization(
                _text(found, "user_code"),
                _text(found, "verification_uri"),
                _text(found, "verification_uri_complete"),
                min(float(found["expires_in"]), EXPIRES_S_MAX),
                min(max(float(found.get("interval", 5)), 0.5), INTERVAL_S_MAX),
                _text(found, "device_code"),
            )

    async def wait(self, codes: DeviceAuthorization) -> IssuedToken:
        """Wait until the login is approved. Raises LoginRefused; a domain that does not answer meanwhile is asked again."""
        interval_s = codes.interval_s
        try:
            async with asyncio.timeout(codes.expires_s):
                while True:
                    await asyncio.sleep(interval_s)
                    try:
                        status, answer = await self._post(TOKEN, {"device_code": codes.device_code})
                    except ConnectionLost:
                        continue
                    if status == 200:
                        return _issued(answer, self.url)
                    error = parse_object(answer, self.url).get("error")
                    if error in _ENDINGS:
                        raise LoginRefused(_ENDINGS[error])
                    if error == "slow_down":
                        interval_s = min(interval_s + SLOWER_S, INTERVAL_S_MAX)
                    elif error != "authorization_pending":
                        raise refused(status, answer, None)
        except TimeoutError:
            raise LoginRefused(_ENDINGS["expired_token"]) from None

    async def _post(self, path: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        try:
            async with self._http.stream("POST", path, data=dict(form)) as response:
                whole = b""
                async for chunk in response.aiter_bytes():
                    whole += chunk
                    if len(whole) > ANSWER_BYTES_MAX:
                        raise MalformedAnswer(f"{self.url} answered with more than {ANSWER_BYTES_MAX} bytes.")
                return response.status_code, whole
        except httpx.HTTPError as error:
            raise ConnectionLost(f"Cannot connect to {self.url}: {error or type(error).__name__}.") from error


def _issued(answer: bytes, url: str) -> IssuedToken:
    with reading("The answer to the login"):
        found = parse_object(answer, url)
        token = _text(found, "access_token")
        return IssuedToken(
            token,
            _text(found, "domain"),
            _text(found, "subject"),
            float(found["expires_in"]),
            found.get("admin") is True,
        )


def _text(members: Mapping[str, Any], name: str) -> str:
    value = members[name]
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name} is no text")
    return value
