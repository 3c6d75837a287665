"""Distribution of content to a subscriber: header fields and signature (section 7). Pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Any, Literal

Method = Literal["sha256", "sha384", "sha512"]
METHODS: dict[Method, Callable[..., Any]] = {
    "sha256": hashlib.sha256,
    "sha384": hashlib.sha384,
    "sha512": hashlib.sha512,
}
"""Methods of signatures. SHA-1, which the Recommendation names too, is not offered."""


def link_field(hub: str, topic: str) -> str:
    """Return the field `Link` of content and of a topic's page: one field, as subscribers read most reliably."""
    return f'<{hub}>; rel="hub", <{topic}>; rel="self"'


def signature_method(name: str) -> Method:
    """Return the method of this name; sha256 for any other name."""
    return name if name in METHODS else "sha256"


def distribution_fields(
    *, hub: str, topic: str, content_type: str, body: bytes, secret: bytes = b"", method: Method = "sha256"
) -> tuple[tuple[str, str], ...]:
    """Return the header fields of a POST of content to the callback.

    Args:
        hub: address of the hub.
        topic: canonical address of the topic.
        content_type: exactly that of the topic.
        body: the whole content of the topic.
        secret: of the subscription; empty for none, and then the content is not signed.
    """
    fields = (("Content-Type", content_type), ("Link", link_field(hub, topic)))
    if not secret:
        return fields
    signature = hmac.new(secret, body, METHODS[method]).hexdigest()
    return (*fields, ("X-Hub-Signature", f"{method}={signature}"))
