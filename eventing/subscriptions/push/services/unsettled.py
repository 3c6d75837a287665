"""Requests to the hub on their way to the deliverer: one text, sealed, since callbacks and secrets are secrets of strangers."""

from __future__ import annotations

import base64
import hashlib
import hmac

import msgspec
from django.conf import settings

from eventing.core.decoding import Undecodable, json_reader
from eventing.core.ids import RP_ID_CHARS
from eventing.sql.sealed import SealBroken, opened, sealed

VALID_S = 600.0  # bound: seconds for which a request may wait for the deliverer; an older request is discarded
_PLACE = "websub:request"


class UnsettledRequest(msgspec.Struct, array_like=True, frozen=True):
    """A request that passed the gateway.

    Attributes:
        mode: `subscribe`, `unsubscribe`, or `denied`: a request to subscribe that is refused.
        rp: id of the RP; empty for a topic that does not exist.
        topic: as stated.
        lease_s: granted lease, seconds.
        secret: of the subscription; empty for none.
        owner: identity of the sender (services/websub.py: stranger_at for one without a token).
        reason: of the denial.
        at: Unix seconds of arrival.
    """

    mode: str
    rp: str
    topic: str
    callback: str
    lease_s: int
    secret: str
    owner: str
    reason: str
    at: float


_encode = msgspec.json.Encoder().encode
_decode = json_reader(UnsettledRequest)


def request_seal(request: UnsettledRequest) -> bytes:
    """Encrypt a request."""
    return sealed(_encode(request).decode(), _PLACE)


def request_open(data: bytes) -> UnsettledRequest | None:
    """Decrypt what `request_seal` made; None for what another key or version made."""
    try:
        return _decode(opened(data, _PLACE).encode())
    except (SealBroken, Undecodable):
        return None


def subscription_id(rp: str, callback: str) -> str:
    """Return the id of the subscription of this topic and callback: the two identify it (section 5.1).

    Nobody can compute it without the domain's secret key, and it discloses no callback.
    """
    key = hashlib.sha256(b"herald websub " + str(settings.SECRET_KEY).encode()).digest()
    made = hmac.digest(key, f"{rp}\n{callback}".encode(), "sha256")
    return f"sub_{base64.b32encode(made).decode().lower()[:RP_ID_CHARS]}"
