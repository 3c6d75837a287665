"""Requests to the identity provider: bounded in time and size, no redirects, no proxies of the environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from eventing.access.verification.fetching import tls_context
from eventing.core.errors import Unavailable
from portal.security import secure_url

TIMEOUT_S = 5.0
"""For each step of a request; a person waits for the answer."""

BYTES_MAX = 256 * 1024
"""Discovery documents and key sets have some kilobytes."""


def fetch_json(
    method: str,
    url: str,
    *,
    data: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    auth: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """Return the JSON object at `url`. Raises Unavailable with the provider's failure, never with the request."""
    if not secure_url(url):
        raise Unavailable("The identity provider names an address that is not https.")
    content = bytearray()
    try:
        with httpx.Client(timeout=TIMEOUT_S, follow_redirects=False, trust_env=False, verify=tls_context()) as client:
            basic = httpx.BasicAuth(*auth) if auth else None
            with client.stream(method, url, data=data, headers=headers, auth=basic) as response:
                for part in response.iter_bytes():
                    content += part
                    if len(content) > BYTES_MAX:
                        raise Unavailable(f"The identity provider's answer has more than {BYTES_MAX} bytes.")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unavailable(f"The identity provider does not answer ({type(error).__name__}).") from None
    if response.status_code != 200:
        raise Unavailable(f"The identity provider answers {response.status_code} at {urlsplit(url).path}.")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise Unavailable("The identity provider's answer is not a JSON object.")
    return document
