"""Requests to a WebSub hub: subscribe, unsubscribe, publish (sections 5.1 and 6). Pure.

A well-formed request is answered 202 whatever its later outcome; only what is malformed raises, with a sentence that is
answered as plain text with status 400. Unknown parameters are ignored, as the Recommendation requires; a repeated one could be
understood in two ways, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

FORM = "application/x-www-form-urlencoded"
BODY_BYTES_MAX = 16 * 1024  # bound: bytes of a request to the hub; the request is refused
PARAMETERS_MAX = 64  # bound: parameters of a request to the hub; the request is refused
URL_CHARS_MAX = 2048  # bound: characters of a callback or topic; the request is refused
SECRET_BYTES_MAX = 199  # bound: bytes of a secret, fewer than 200 (section 5.1); the request is refused
TOPICS_MAX = 16  # bound: topics of one ping of a publisher; the request is refused
LEASE_DIGITS_MAX = 10  # bound: digits of hub.lease_seconds; the request is refused
_LEASE = re.compile(rf"0*[1-9][0-9]{{0,{LEASE_DIGITS_MAX - 1}}}", re.ASCII)
_URL = re.compile(r"[!-~]+", re.ASCII)


class HubRequestMalformed(ValueError):
    """A request to the hub is malformed. The text is a sentence for the sender, and repeats no secret."""


@dataclass(frozen=True, slots=True)
class SubscriptionWish:
    """A request to subscribe; the subscription is identified by topic and callback.

    Attributes:
        lease_s: requested lease in seconds; None for none.
        secret: with which content is signed; empty for none.
    """

    callback: str
    topic: str
    lease_s: int | None
    secret: str


@dataclass(frozen=True, slots=True)
class UnsubscriptionWish:
    """A request to end the subscription of this topic and callback."""

    callback: str
    topic: str


@dataclass(frozen=True, slots=True)
class ContentPing:
    """A publisher's statement that topics have new content."""

    topics: tuple[str, ...]


HubRequest = SubscriptionWish | UnsubscriptionWish | ContentPing


def read_hub_request(content_type: str, body: bytes) -> HubRequest:
    """Parse a request to the hub. Raises HubRequestMalformed.

    Args:
        content_type: of the request; empty for none.
        body: the whole body.
    """
    if content_type.partition(";")[0].strip().lower() != FORM:
        raise HubRequestMalformed(f"Send the request as {FORM}.")
    pairs = _pairs(body)
    mode = _one(pairs, "hub.mode")
    if mode == "publish":
        return _ping(pairs)
    if mode not in ("subscribe", "unsubscribe"):
        raise HubRequestMalformed("hub.mode is subscribe, unsubscribe or publish.")
    callback = _url(_one(pairs, "hub.callback"), "hub.callback")
    topic = _url(_one(pairs, "hub.topic"), "hub.topic")
    if mode == "unsubscribe":
        return UnsubscriptionWish(callback, topic)
    secret = _one(pairs, "hub.secret", "")
    if len(secret.encode()) > SECRET_BYTES_MAX:
        raise HubRequestMalformed("hub.secret has fewer than 200 bytes.")
    return SubscriptionWish(callback, topic, _lease(_one(pairs, "hub.lease_seconds", "")), secret)


def _pairs(body: bytes) -> Mapping[str, list[str]]:
    if len(body) > BODY_BYTES_MAX:
        raise HubRequestMalformed(f"A request has at most {BODY_BYTES_MAX} bytes.")
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=PARAMETERS_MAX,
            encoding="utf-8",
            errors="strict",
        )
    except ValueError:
        raise HubRequestMalformed(f"A request is a form in UTF-8 with at most {PARAMETERS_MAX} parameters.") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _one(pairs: Mapping[str, list[str]], name: str, default: str | None = None) -> str:
    values = pairs.get(name, [])
    if len(values) > 1:
        raise HubRequestMalformed(f"{name} is given twice.")
    if not values:
        if default is None:
            raise HubRequestMalformed(f"{name} is missing.")
        return default
    return values[0]


def _ping(pairs: Mapping[str, list[str]]) -> ContentPing:
    """Read the topics; the Recommendation leaves the form open, and publishers use either name, also repeated."""
    topics = dict.fromkeys([*pairs.get("hub.url", []), *pairs.get("hub.topic", [])])
    if not 1 <= len(topics) <= TOPICS_MAX:
        raise HubRequestMalformed(f"A publisher names 1 to {TOPICS_MAX} topics, as hub.url or hub.topic.")
    return ContentPing(tuple(_url(topic, "hub.url") for topic in topics))


def _lease(text: str) -> int | None:
    if not text:
        return None
    if _LEASE.fullmatch(text) is None:
        raise HubRequestMalformed("hub.lease_seconds is a positive number of seconds.")
    return int(text)


def _url(text: str, name: str) -> str:
    """Check an absolute http or https URL, which is kept as stated: a callback is called exactly so."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or len(text) > URL_CHARS_MAX or _URL.fullmatch(text) is None:
        raise HubRequestMalformed(f"{name} is an http or https URL of at most {URL_CHARS_MAX} ASCII characters.")
    if parts.fragment or "#" in text or parts.username is not None or parts.password is not None:
        raise HubRequestMalformed(f"{name} has neither fragment nor user name.")
    return text
