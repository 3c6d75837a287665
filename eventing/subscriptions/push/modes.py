"""Delivery modes: how events become requests, and what answers to them mean.

A mode is an object without state of its own: it makes requests of events and judges answers. Everything else, the log, the
order, retries, connections, records of attempts, is the same for all modes (process). To add one: a class with these
methods in a folder of its own, and a line in catalogue.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from eventing.subscriptions.push.rules.addresses import EndpointUrl
from eventing.subscriptions.push.rules.client_identities import ClientIdentity
from eventing.subscriptions.push.rules.verdicts import AttemptVerdict, PushAnswer


@dataclass(frozen=True, slots=True)
class PushTarget:
    """The endpoint of a subscription as a mode needs it, secrets opened.

    Attributes:
        subscription: id.
        rp: id of the RP read.
        origin: name of this domain.
        base: address of this domain.
        signature: name of the signature's scheme, as in `deliver`.
        form: the mode's own choice of a form, such as `structured`.
        secrets: the secrets that sign, the newest first.
        key: the Ed25519 key that signs; None for none.
        rate: most requests a minute that its owner wants; None for no bound.
        identity: client certificate of mutual TLS; None for none.
        mode_data: data of the mode's own, as it made them; empty for none.
    """

    subscription: str
    rp: str
    origin: str
    url: EndpointUrl
    form: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    secrets: tuple[bytes, ...] = ()
    key: Ed25519PrivateKey | None = None
    verification: str = ""
    batch: int = 1
    rate: int | None = None
    identity: ClientIdentity | None = None
    mode_data: str = ""
    base: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of the log: its place, and its CloudEvent in the JSON form, byte for byte."""

    epoch: str
    offset: int
    body: bytes


@dataclass(frozen=True, slots=True)
class PushRequest:
    """A request to an endpoint: fields in order, without Host, Content-Length and User-Agent, which the client adds."""

    method: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""
    reads: tuple[str, ...] = field(default=("retry-after",))
    """Fields of the answer that are kept for the verdict, in lower case."""


class PushMode(Protocol):
    """One way of delivering."""

    def request(self, target: PushTarget, events: Sequence[StoredEvent], now: int) -> PushRequest:
        """Make the request that delivers these events, at least one and at most `target.batch`.

        Args:
            now: Unix seconds of this attempt.
        """

    def verdict(self, answer: PushAnswer) -> AttemptVerdict:
        """Return the meaning of the answer to a delivery, or of its absence."""

    def consent_request(self, target: PushTarget, token: str, now: int) -> PushRequest:
        """Make the request that asks an endpoint whether it wants events.

        Args:
            token: random text, which never occurs again.
        """

    def consents(self, target: PushTarget, token: str, answer: PushAnswer) -> bool:
        """Return True if the answer to `consent_request` is the endpoint's consent."""
