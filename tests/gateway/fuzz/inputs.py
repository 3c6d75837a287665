"""The fuzzer's inputs. Each is made from the seed and its number alone, so that it can be made again.

Three kinds: WebSocket frames and operations, raw HTTP/1.1 requests, and requests to every path of the OpenAPI description and
of the federation interface with mutated parameters and bodies.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import msgspec

from tests.gateway.raw import BINARY, CLOSE, CONTINUATION, FIN, PING, PONG, TEXT, client_frame
from tests.gateway.server import event

KINDS = ("websocket", "http", "endpoint")
FRAMES_PER_INPUT = 4  # beside what ends a WebSocket input; each stays well below what floods a session
FEDERATION = ("hello", "exchange", "join", "leave", "invite", "subscriptions", "x")
LEFT_OUT = ("/stream", "/keys", "/revocations")  # do not end; change what the other inputs' tokens are worth
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "BREW")

Random = random.Random


@dataclass(frozen=True)
class Target:
    """What the inputs refer to, and how they are authorized.

    Attributes:
        operations: method and path template of everything that the OpenAPI description lists.
        words: names of members that its schemas have.
        tokens: to be shown, by turns; "" for none.
        rp, subscription: ids that exist.
    """

    operations: Sequence[tuple[str, str]]
    words: Sequence[str]
    tokens: Sequence[str]
    rp: str
    subscription: str
    names: Sequence[str] = field(default=("/a/b/", "/%00/", "x" * 300))


@dataclass(frozen=True)
class Input:
    """One input: `parts` are sent one after the other, with a pause between them where there are several."""

    kind: str
    parts: tuple[bytes, ...]


def made(target: Target, seed: int, number: int, kind: str) -> Input:
    """The input `number` of `seed`."""
    rng = Random(f"{seed}:{kind}:{number}")
    content = {"websocket": _websocket, "http": _http, "endpoint": _endpoint}[kind](rng, target)
    return Input(kind, _parts(rng, content) if kind == "http" else (content,))


def _parts(rng: Random, content: bytes) -> tuple[bytes, ...]:
    if rng.random() < 0.9 or len(content) < 2:
        return (content,)
    cut = rng.randrange(1, len(content))
    return content[:cut], content[cut:]


# Values

NUMBERS = (0, -1, 1, 2**31, 2**53, 2**63, 2**64, 10**30, -(2**63) - 1, 0.5, 1e308, -0.0)
TEXTS = (
    *(
        "",
        "x",
        "now",
        "earliest",
        "last",
        "0:0",
        "1:9007199254740993",
        "\x00",
        "caf\u00e9",
        "\u2028",
        "\x1b[31m",
        "\ud800",
    ),
    *(
        "a" * 300,
        "a" * 70_000,
        "../..",
        "%00",
        "/a/b/",
        "null",
        "true",
        "-1",
        "1e400",
        "http://127.0.0.1:1/",
        "urn:x",
        "{}",
    ),
    *("2026-11-23T00:00:00Z", "9999-12-31T23:59:59.999999Z", "0000-00-00", "\U0001f600", "\u202e", "sub_x", "anyone"),
)
RAW = (
    b"NaN",
    b"Infinity",
    b"1e999",
    b"-",
    b"1" * 5000,
    b'"\\ud800"',
    b'"\xff"',
    b'"\xed\xa0\x80"',
    b"[" * 70,
    b"\x00",
    b"",
)
DEEP = (b"[" * 3000 + b"]" * 3000, b'{"a":' * 3000 + b"1" + b"}" * 3000)


def value(rng: Random, target: Target, depth: int = 0) -> Any:
    """Any JSON value, often of a kind that is not expected."""
    which = rng.random()
    if which < 0.35:
        return rng.choice(TEXTS)
    if which < 0.55:
        return rng.choice(NUMBERS)
    if which < 0.65:
        return rng.choice((None, True, False))
    if which < 0.75:
        return rng.choice((target.rp, target.subscription))
    if depth > 3:
        return None
    if which < 0.87:
        return [value(rng, target, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(target.words): value(rng, target, depth + 1) for _ in range(rng.randrange(5))}


def json_text(rng: Random, content: Any) -> bytes:
    """`content` as JSON, sometimes as bytes that are none."""
    text = json.dumps(content, ensure_ascii=rng.random() < 0.5).encode(errors="surrogatepass")
    which = rng.random()
    if which < 0.70:
        return text
    if which < 0.78:
        return text.replace(b"1", rng.choice(RAW), 1)
    if which < 0.80:
        return text[:-1] + b',"x":' + rng.choice(DEEP) + text[-1:]
    return flipped(rng, text)


def flipped(rng: Random, content: bytes) -> bytes:
    """`content` with some bytes changed, removed, repeated or put elsewhere."""
    changed = bytearray(content)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(changed) + 1)
        which = rng.randrange(5)
        if which == 0 and at < len(changed):
            changed[at] = rng.randrange(256)
        elif which == 1:
            del changed[at : at + rng.randrange(1, 9)]
        elif which == 2:
            changed[at:at] = rng.choice(
                (b"\xff", b"\x00", b"\r\n", b'"', b"}", b"[", b"\xed\xa0\x80", b" ", b":", b",")
            )
        elif which == 3:
            changed[at:at] = changed[at : at + rng.randrange(1, 30)]
        else:
            changed[at:at] = rng.randbytes(rng.randrange(1, 9))
    return bytes(changed)


# WebSocket

OPERATIONS = ("publish", "subscribe", "unsubscribe", "ack", "renew", "ping")
_MEMBERS = ("id", "rp", "from", "event", "events", "subscription", "cursor", "lease_s", "op")


def _operation(rng: Random, target: Target) -> dict[str, Any]:
    made: dict[str, Any] = {"op": rng.choice(OPERATIONS), "id": rng.randrange(100)}
    if rng.random() < 0.8:
        made["rp"] = target.rp
    if made["op"] == "publish":
        made["event"] = event(f"e{rng.randrange(10_000)}", rng.choice((None, 1, "x", {})))
    if made["op"] == "ack":
        made |= {"subscription": target.subscription, "cursor": "0:0"}
    for _ in range(rng.randrange(3)):
        made[rng.choice(_MEMBERS)] = value(rng, target)
    if "event" in made and isinstance(made["event"], dict) and rng.random() < 0.5:
        made["event"][rng.choice(("id", "source", "type", "time", "data", "data_base64", "specversion", "x"))] = value(
            rng, target
        )
    return made


def _websocket(rng: Random, target: Target) -> bytes:
    """A few operations, and at times something that is no message at the end."""

    def frame(payload: bytes, first_byte: int = FIN | TEXT, **more: Any) -> bytes:
        return client_frame(payload, first_byte, mask=rng.randbytes(4), **more)

    parts = [frame(json_text(rng, _operation(rng, target))) for _ in range(rng.randrange(1, FRAMES_PER_INPUT + 1))]
    which = rng.random()
    payload = rng.choice((b"", b"x", b'{"op":"ping"}', b"\xff", b"\x03\xe8", b"x" * 126, b"\x00" * 70_000))
    first_byte = rng.choice(
        (TEXT, FIN | TEXT, BINARY, FIN | BINARY, CONTINUATION, FIN | CONTINUATION, FIN | PING, FIN | PONG)
    )
    if which < 0.1:
        parts.append(frame(payload, first_byte))
    elif which < 0.14:
        parts.append(frame(payload, rng.randrange(256), masked=rng.random() < 0.7))
    elif which < 0.16:
        parts.append(frame(payload, FIN | TEXT, size=rng.choice((1, 200, 70_000, 2**40, 2**64 - 1))))
    elif which < 0.18:
        parts.append(frame(payload, FIN | CLOSE))
    elif which < 0.22:
        parts.append(flipped(rng, parts[-1]))
    elif which < 0.30:
        text = json_text(rng, _operation(rng, target))
        cut = rng.randrange(len(text) + 1)
        parts += [frame(text[:cut], TEXT), frame(b"between", FIN | PING)]
        parts.append(frame(text[cut:], FIN | CONTINUATION))
    return b"".join(parts)


# HTTP

_CHUNKED = (
    b"2\r\n{}\r\n0\r\n\r\n",
    b"2;x=y\r\n{}\r\n0\r\nX: y\r\n\r\n",
    b"zz\r\n",
    b"ffffffffffffffffff\r\n",
    b"0\r\n",
    b"-1\r\n\r\n",
)
_FRAMING = (
    *("Host: x", "Host: y:1", "Host:", "Host : x", "Content-Length: 0", "Content-Length: 5", "Content-Length: 1, 1"),
    *(
        "Content-Length: 99999999999",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding:",
    ),
    *(": x", "X", "\xff: x", "X: a\r\n b", "Accept: \x00"),
)
_FIELDS = (
    *("Connection: close", "Connection: keep-alive", "Connection: Upgrade", "Upgrade: websocket", "Upgrade: h2c"),
    *(
        "Expect: 100-continue",
        "Expect: x",
        "Content-Type: application/json",
        "Content-Type: x",
        "Content-Encoding: gzip",
    ),
    *("X-Forwarded-For: 1.2.3.4", "Last-Event-ID: \xff", "If-Match: x", "Cookie: sessionid=x", "Origin: null"),
    *(
        "Authorization: Basic eA==",
        "Authorization: Bearer",
        "Range: bytes=0-1",
        "traceparent: 00-x",
        "ce-id: %ff",
        "ce-x: y",
    ),
    *("Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: ,,"),
    *("X-Request-Id: " + "x" * 65, "X: " + "y" * 9000, "Idempotency-Key: x", "Trailer: X"),
)


def head(rng: Random, method: str, path: str, token: str, *fields: str) -> bytes:
    """A request's head."""
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *fields]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", errors="replace")


def _one_request(rng: Random, target: Target) -> bytes:
    path = rng.choice(
        (
            *("/livez", "/", "/metrics", "/ws", "*", "http://x/livez", "//", "/?" + "a=1&" * 40, "/api/v1/limits"),
            f"/api/v1/rps/{target.rp}/events",
            f"/api/v1/rps/{target.rp}/events?after=now&limit={rng.choice(NUMBERS)}",
            f"/api/v1/rps/{target.rp}/events?after={quote(rng.choice(TEXTS[:30]), errors='replace')}",
            f"/api/v1/subscriptions/{target.subscription}/events",
        )
    )
    method = rng.choice(METHODS) if rng.random() < 0.3 else rng.choice(("GET", "POST"))
    fields = [rng.choice(_FIELDS) for _ in range(rng.choice((0, 0, 1, 2, 3)))]
    if rng.random() < 0.15:
        fields.append(rng.choice(_FRAMING))
    body = b""
    which = rng.random()
    if which < 0.4:
        body = json_text(rng, event(f"e{rng.randrange(10_000)}", value(rng, target)))
        fields += [f"Content-Length: {len(body)}", "Content-Type: application/cloudevents+json"]
    elif which < 0.5:
        body = rng.choice(_CHUNKED)
        fields.append("Transfer-Encoding: chunked")
    return head(rng, method, path, rng.choice(target.tokens), *fields) + body


def _http(rng: Random, target: Target) -> bytes:
    """One or several requests behind one another, at times changed in some bytes."""
    content = b"".join([_one_request(rng, target) for _ in range(rng.choice((1, 1, 1, 2, 3)))])
    return flipped(rng, content) if rng.random() < 0.25 else content


# Endpoints


def _filled(rng: Random, target: Target, template: str) -> str:
    parts = []
    for part in template.split("/"):
        if not part.startswith("{"):
            parts.append(part)
            continue
        known: Sequence[str] = (target.rp, target.subscription, *target.names, *TEXTS[:30])
        chosen = rng.choice(known[:2]) if rng.random() < 0.6 else rng.choice(known)
        parts.append(quote(chosen, safe="", errors="replace"))
    query = ""
    if rng.random() < 0.3:
        pairs = [
            (rng.choice((*target.words, "limit", "cursor", "after", "wait_s")), rng.choice(TEXTS[:30])) for _ in "ab"
        ]
        query = "?" + "&".join(f"{quote(name)}={quote(text, errors='replace')}" for name, text in pairs)
        query += rng.choice(("", "", "&%ff", "&a=%00", "&=&="))
    return "/".join(parts) + query


def _federated(rng: Random, target: Target) -> bytes:
    content = value(rng, target)
    if rng.random() < 0.5:
        content = {rng.choice(target.words): value(rng, target) for _ in range(6)}
    try:
        body = msgspec.msgpack.encode(content)
    except (OverflowError, UnicodeEncodeError, msgspec.MsgspecError):
        body = rng.randbytes(30)
    if rng.random() < 0.5:
        body = flipped(rng, body)
    fields = [f"Content-Length: {len(body)}", "Content-Type: application/msgpack"]
    if rng.random() < 0.5:
        fields += ['Signature-Input: sig=("@method");created=1;keyid="x"', "Signature: sig=:AAAA:", "Herald-Peer: x"]
    return head(rng, "POST", f"/federation/v1/{rng.choice(FEDERATION)}", "", *fields) + body


def _endpoint(rng: Random, target: Target) -> bytes:
    """A request to a path that exists."""
    if rng.random() < 0.25:
        return _federated(rng, target)
    method, template = rng.choice(target.operations)
    if method in ("GET", "DELETE") and rng.random() < 0.9:
        return head(rng, method, _filled(rng, target, template), rng.choice(target.tokens))
    content = {rng.choice(target.words): value(rng, target) for _ in range(rng.randrange(6))}
    body = json_text(rng, content if rng.random() < 0.9 else value(rng, target))
    kind = rng.choice(
        ("application/json", "application/json", "application/merge-patch+json", "application/cloudevents+json", "x")
    )
    fields = [f"Content-Length: {len(body)}", f"Content-Type: {kind}"]
    return head(rng, method, _filled(rng, target, template), rng.choice(target.tokens), *fields) + body


Maker = Callable[[Random, Target], bytes]

__all__ = ["KINDS", "Input", "Target", "made"]
