"""Opening of a WebSocket to a gateway: addresses, tokens, and the meaning of a refused handshake."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

from herald.answers import parse_text
from herald.errors import ConnectionLost, HeraldError, InputError, Problem

SUBPROTOCOL = Subprotocol("herald.v1")
FRAME_BYTES_MAX = 17 * 1024 * 1024  # the largest configurable event (16 MiB), and its frame
HANDSHAKE_S_MAX = 10.0
CLOSE_S_MAX = 2.0
HEARTBEAT_S = 20.0  # a ping after each; after as long without its pong, the connection counts as dead

_SENDABLE = re.compile(r"[\x21-\x7e]+( [\x21-\x7e]+)*")
_SECRETS = re.compile(r"(?i)(bearer\s+|access_token=)[^\r\n&\"']+")
TokenSource = str | Mapping[str, str] | Callable[..., "str | Awaitable[str]"] | None


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a domain, from the URL of its root."""

    url: str

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parse a URL such as `http://127.0.0.1:8000`. Raises ValueError with what is wrong."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not the address of a domain; use one such as http://127.0.0.1:8000")
        if parts.query or parts.fragment:
            raise ValueError(f"{url!r} has more than a domain's address; leave out everything after its path")
        return cls(urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", "")))

    def websocket(self, hops: int | None = None) -> str:
        """Return the URL of the gateway's WebSocket, with the redirects followed lately; None: no redirect is to be followed."""
        return "ws" + self.url.removeprefix("http") + "/ws" + ("" if hops is None else f"?hops={hops}")


@dataclass(slots=True)
class Credentials:
    """The token, or its source: a token for each URL, or a function (called again once a token has expired).

    A domain can use a token that is sent to it. So a token given without a URL is sent only to `urls`, which the
    program itself named; a mapping, or a function of the URL, decides for every URL.
    """

    source: TokenSource = field(repr=False)
    urls: frozenset[str] = frozenset()
    _takes_url: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        if isinstance(self.source, Mapping):
            self.source = {Address.parse(url).url: token for url, token in self.source.items()}
        self._takes_url = callable(self.source) and _takes_an_argument(self.source)

    @property
    def renewable(self) -> bool:
        """Return whether the source may give another token when called again."""
        return callable(self.source)

    def cover(self, url: str) -> bool:
        """Return whether a domain at this URL is shown the same rights: a token that is for it, or none as everywhere."""
        if isinstance(self.source, Mapping):
            return url in self.source
        return not self.source or self._takes_url or url in self.urls

    async def headers(self, url: str) -> dict[str, str]:
        """Return the headers of a request to the domain at `url`. Raises InputError for a token that no header can
        contain.
        """
        token: Any = self.source
        if isinstance(token, Mapping):
            token = token.get(url)
        elif not self._takes_url and url not in self.urls:
            token = None
        elif callable(token):
            given = token(url) if self._takes_url else token()
            token = await given if inspect.isawaitable(given) else given
        if not token:
            return {}
        if not _SENDABLE.fullmatch(str(token)):  # the transports' own errors would print it
            raise InputError("The token has invalid characters. Give it exactly as it was printed.")
        return {"Authorization": f"Bearer {token}"}


class _Discreet(logging.LoggerAdapter[logging.Logger]):
    """The transport's logger without tokens: at DEBUG it logs every sent header."""

    def log(self, level: int, msg: object, *args: object, **more: Any) -> None:
        """See logging.LoggerAdapter."""
        if self.isEnabledFor(level):
            super().log(level, _masked(msg), *map(_masked, args), **more)


def _masked(value: object) -> object:
    return _SECRETS.sub(r"\1***", value) if isinstance(value, str) else value


def _takes_an_argument(function: Callable[..., Any]) -> bool:
    """Return whether a function takes the URL that a token is for."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        return True
    except ValueError:  # a builtin without a signature
        return False
    return False


async def dial(address: Address, credentials: Credentials, hops: int | None = None) -> ClientConnection:
    """Open a connection; for `hops` see Address.websocket. Raises Problem if the gateway refused it, ConnectionLost without an answer."""
    try:
        socket = await connect(
            address.websocket(hops),
            logger=_Discreet(logging.getLogger("websockets.client"), {}),
            additional_headers=await credentials.headers(address.url),
            subprotocols=[SUBPROTOCOL],
            compression=None,  # small frames, often on a local network: it would cost more than it saves
            max_size=FRAME_BYTES_MAX,
            open_timeout=HANDSHAKE_S_MAX,
            close_timeout=CLOSE_S_MAX,
            ping_interval=HEARTBEAT_S,
            ping_timeout=HEARTBEAT_S,
        )
    except InvalidStatus as error:
        response = error.response
        raise refused(response.status_code, bytes(response.body or b""), response.headers.get("Retry-After")) from error
    except InvalidURI as error:
        raise HeraldError(str(error)) from error
    except (OSError, TimeoutError, EOFError, InvalidHandshake) as error:
        raise ConnectionLost(f"Cannot connect to {address.url}: {_reason(error)}.") from error
    if socket.subprotocol != SUBPROTOCOL:
        await socket.close()
        raise Problem(title="Not a Herald domain", detail=f"{address.url} does not speak {SUBPROTOCOL}.")
    return socket


def refused(status: int, body: bytes, retry_after: str | None) -> Problem:
    """Return the problem in an answer that is not a success, whatever sent it."""
    try:
        document = parse_text(body.decode())
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and "type" in document:
        return Problem.from_document(document, status=status, retry_after=retry_after)
    answered = document if isinstance(document, dict) else {}
    stated = {"title": f"HTTP status {status}", "detail": "This is not an answer of a Herald domain. Check the URL."}
    return Problem.from_document({**answered, **stated}, status=status, retry_after=retry_after)


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
