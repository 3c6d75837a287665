"""Django's authentication backend for the identity provider: code for tokens, tokens checked, claims to a user."""

from __future__ import annotations

import time
from typing import Any

import jwt
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

from eventing.conf import config
from eventing.core.errors import Unauthenticated
from portal.console.oidc.fetching import fetch_json
from portal.console.oidc.provider import client_secret, directory
from portal.console.oidc.users import external_user

SKEW_S = 60
"""How far the provider's clock may be from ours."""

TOKEN_CHARS_MAX = 16 * 1024
SUBJECT_CHARS_MAX = 255  # OpenID Connect Core 1.0, section 2


def callback_url() -> str:
    """Where the provider sends people back: by our own setting, whatever Host a request names."""
    return config().base_url + reverse("portal:oidc-callback")


class Backend(OIDCAuthenticationBackend):  # type: ignore[misc]
    """Logs in who comes back from the provider with a code."""

    def __init__(self) -> None:
        """Nothing is read or fetched: Django makes a backend for each look at a session."""
        self.UserModel = get_user_model()

    def authenticate(self, request: HttpRequest | None, **kwargs: Any) -> User | None:
        """The user, for the nonce and verifier of our callback; None for any other kind of login.

        Raises Unauthenticated, Forbidden, Unavailable, SuspiciousOperation, jwt.PyJWTError.
        """
        if request is None or not kwargs.get("nonce") or not config().oidc_issuer:
            return None
        provider = directory.provider()
        self.OIDC_OP_TOKEN_ENDPOINT = provider.token_endpoint
        self.OIDC_RP_CLIENT_ID = config().oidc_client_id
        self.OIDC_RP_CLIENT_SECRET = client_secret(config())
        self.OIDC_RP_SIGN_ALGO = provider.algorithm
        self.OIDC_RP_IDP_SIGN_KEY = None
        user: User | None = super().authenticate(request, **kwargs)
        return user

    @staticmethod
    def get_settings(attr: str, *args: Any) -> Any:
        """The library's settings: ours decide what it may be asked; its fallbacks, such as unsigned tokens, stay off."""
        fixed = {
            "OIDC_AUTHENTICATION_CALLBACK_URL": "portal:oidc-callback",
            "OIDC_USE_NONCE": True,
            "OIDC_ALLOW_UNSECURED_JWT": False,
            "OIDC_STORE_ACCESS_TOKEN": False,
            "OIDC_STORE_ID_TOKEN": False,
        }
        return fixed[attr] if attr in fixed else getattr(settings, attr, *args)

    def get_token(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Exchange the code at the provider. Raises Unavailable."""
        provider = directory.provider()
        form = {**payload, "redirect_uri": callback_url()}
        auth = None
        if provider.basic:
            auth = (form.pop("client_id"), form.pop("client_secret"))
        answer = fetch_json("POST", provider.token_endpoint, data=form, auth=auth)
        token = answer.get("id_token")
        if not isinstance(token, str) or len(token) > TOKEN_CHARS_MAX:
            raise Unauthenticated("The identity provider's answer holds no id token.")
        return answer

    def retrieve_matching_jwk(self, token: str) -> jwt.PyJWK:
        """The provider's key that the token's header names."""
        header = jwt.get_unverified_header(token)
        if header.get("alg") != self.OIDC_RP_SIGN_ALGO:
            raise Unauthenticated(f"The id token is not signed with {self.OIDC_RP_SIGN_ALGO}.")
        key_id = header.get("kid")
        return jwt.PyJWK(directory.key(key_id, self.OIDC_RP_SIGN_ALGO), algorithm=self.OIDC_RP_SIGN_ALGO)

    def verify_token(self, token: str, **kwargs: Any) -> dict[str, Any]:
        """The claims of an id token for us, now: signature and nonce by the library, the rest of section 3.1.3.7 here."""
        claims: dict[str, Any] = super().verify_token(token, **kwargs)
        client, moment = config().oidc_client_id, time.time()
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if claims.get("iss") != config().oidc_issuer:
            raise Unauthenticated("The id token is of another issuer.")
        if client not in audiences:
            raise Unauthenticated("The id token is meant for another client.")
        if (len(audiences) > 1 or "azp" in claims) and claims.get("azp") != client:
            raise Unauthenticated("The id token was given to another client.")
        expires, issued = claims.get("exp"), claims.get("iat")
        if not isinstance(expires, int | float) or expires + SKEW_S < moment:
            raise Unauthenticated("The id token has expired.")
        if not isinstance(issued, int | float) or issued - SKEW_S > moment:
            raise Unauthenticated("The id token is issued in the future.")
        subject = claims.get("sub")
        if not isinstance(subject, str) or not 1 <= len(subject) <= SUBJECT_CHARS_MAX or "\x00" in subject:
            raise Unauthenticated("The id token names no subject.")
        return claims

    def get_userinfo(self, access_token: str, id_token: str, payload: dict[str, Any]) -> dict[str, Any]:
        """All claims: those of the id token, and where the role is not among them those of the userinfo endpoint."""
        endpoint = directory.provider().userinfo_endpoint
        if config().oidc_role_claim in payload or not endpoint or not isinstance(access_token, str):
            return payload
        answer = fetch_json("GET", endpoint, headers={"Authorization": f"Bearer {access_token}"})
        if answer.get("sub") != payload["sub"]:
            raise Unauthenticated("The userinfo is of another subject than the id token.")
        return {**answer, **payload}

    def get_or_create_user(self, access_token: str, id_token: str, payload: dict[str, Any]) -> User:
        """The user of the token's issuer and subject. Raises Forbidden when no role is mapped."""
        return external_user(self.get_userinfo(access_token, id_token, payload))

    def get_user(self, user_id: Any) -> User | None:
        """The user of a session, while active."""
        return User.objects.filter(pk=user_id, is_active=True).first()
