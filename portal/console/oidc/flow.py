"""The authorization code flow (OpenID Connect Core 1.0, section 3.1) with state, nonce and PKCE (RFC 7636).

A login begins in a session, which stores the values that the callback must match, and returns to the session once: its
state is used up before any request to the provider. The id token's signature is verified by joserfc, its claims as
section 3.1.3.7 demands.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.sessions.backends.base import SessionBase
from django.urls import reverse
from joserfc import jwt
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwk import import_key
from joserfc.jws import JWSRegistry

from eventing.conf import config
from eventing.core.errors import Unauthenticated
from portal.console.oidc.fetching import fetch_json
from portal.console.oidc.provider import Provider, client_secret, directory

BEGUN = "oidc_begun"
"""Session key: nonce, verifier and target of the logins begun, by state."""

BEGUN_MAX = 10  # bound: logins begun in one session; the oldest cannot be completed
SKEW_S = 60
"""Tolerated difference between the provider's clock and this domain's."""

TOKEN_CHARS_MAX = 16 * 1024  # bound: characters of an id token; the login is refused
SUBJECT_CHARS_MAX = 255  # OpenID Connect Core 1.0, section 2
INVALID = "The identity provider's answer is not valid; start the login again."


@dataclass(frozen=True, slots=True)
class Returned:
    """Result of a login: verified claims, and the path that the user requested (empty for none)."""

    claims: Mapping[str, Any]
    target: str


def callback_url() -> str:
    """Return the redirect URI: from HERALD_PUBLIC_URL, never from the Host of a request."""
    return config().base_url + reverse("portal:oidc-callback")


def begin(session: SessionBase, target: str) -> str:
    """Begin a login in `session`. Returns the provider's URL to redirect to. Raises Unavailable."""
    endpoint = directory().provider().authorization_endpoint
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    begun = {**session.get(BEGUN, {}), state: [nonce, verifier, target]}
    session[BEGUN] = dict(list(begun.items())[-BEGUN_MAX:])
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    query = {
        "response_type": "code",
        "client_id": config().oidc_client_id,
        "redirect_uri": callback_url(),
        "scope": "openid profile email",
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"


def come_back(session: SessionBase, state: str, code: str) -> Returned:
    """Exchange the code for an id token and verify it. Raises Unauthenticated, Unavailable."""
    begun = session.get(BEGUN, {})
    if state not in begun:
        raise Unauthenticated(
            "This login was not begun in this browser, or its link was used already; start the login again."
        )
    nonce, verifier, target = begun.pop(state)
    session[BEGUN] = begun
    session.save()  # before the provider is asked, so that a second return finds the state spent
    provider = directory().provider()
    answer = _exchange(provider, code, verifier)
    token = answer.get("id_token")
    if not isinstance(token, str) or len(token) > TOKEN_CHARS_MAX:
        raise Unauthenticated("The identity provider's answer holds no id token.")
    claims = _verified(provider, token, nonce)
    return Returned(_with_userinfo(provider, claims, answer.get("access_token")), target)


def _exchange(provider: Provider, code: str, verifier: str) -> dict[str, Any]:
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": callback_url(), "code_verifier": verifier}
    client = config().oidc_client_id, client_secret(config())
    if provider.basic:
        return fetch_json("POST", provider.token_endpoint, data=form, auth=client)
    form |= {"client_id": client[0], "client_secret": client[1]}
    return fetch_json("POST", provider.token_endpoint, data=form)


def _verified(provider: Provider, token: str, nonce: str) -> dict[str, Any]:
    """The claims of an id token for this client and login, now. Raises Unauthenticated, Unavailable."""

    def key(signature: Any) -> Any:
        return import_key(directory().key(signature.headers().get("kid"), provider.algorithm))

    registry = JWSRegistry(algorithms=[provider.algorithm], strict_check_header=False)
    registry.max_header_length = registry.max_payload_length = TOKEN_CHARS_MAX
    try:
        claims = jwt.decode(token, key, registry=registry).claims
    except UnsupportedAlgorithmError:
        raise Unauthenticated(f"The id token is not signed with {provider.algorithm}.") from None
    except (JoseError, ValueError):
        raise Unauthenticated(INVALID) from None
    _check(claims, nonce)
    return claims


def _check(claims: Mapping[str, Any], nonce: str) -> None:
    client, moment = config().oidc_client_id, time.time()
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if claims.get("iss") != config().oidc_issuer:
        raise Unauthenticated("The id token is of another issuer.")
    if client not in audiences:
        raise Unauthenticated("The id token is meant for another client.")
    if (len(audiences) > 1 or "azp" in claims) and claims.get("azp") != client:
        raise Unauthenticated("The id token was given to another client.")
    if not hmac.compare_digest(str(claims.get("nonce")).encode(), nonce.encode()):
        raise Unauthenticated(INVALID)
    expires, issued, begins = claims.get("exp"), claims.get("iat"), claims.get("nbf", 0)
    if not isinstance(expires, int | float) or expires + SKEW_S < moment:
        raise Unauthenticated("The id token has expired.")
    if not all(isinstance(time_s, int | float) and time_s - SKEW_S <= moment for time_s in (issued, begins)):
        raise Unauthenticated("The id token is issued in the future.")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 1 <= len(subject) <= SUBJECT_CHARS_MAX or "\x00" in subject:
        raise Unauthenticated("The id token names no subject.")


def _with_userinfo(provider: Provider, claims: dict[str, Any], access_token: Any) -> dict[str, Any]:
    """Return the claims of the id token, extended by the userinfo endpoint if the role is missing."""
    endpoint = provider.userinfo_endpoint
    if config().oidc_role_claim in claims or not endpoint or not isinstance(access_token, str):
        return claims
    answer = fetch_json("GET", endpoint, headers={"Authorization": f"Bearer {access_token}"})
    if answer.get("sub") != claims["sub"]:
        raise Unauthenticated("The userinfo is of another subject than the id token.")
    return {**answer, **claims}
