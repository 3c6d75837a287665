"""A small OpenID Connect provider on loopback: discovery, authorization with PKCE, tokens (RS256), keys, userinfo.

It is honest unless told otherwise: `next_claims` are put over the claims of its id tokens, `next_key` signs them, and with
`next_algorithm` "none" nobody, with "HS256" the public key's text taken for a secret (key confusion).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jws
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "herald-console", "s3cret of the client, long and random"


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class IdentityProvider:
    """`person` is who is logged in at the provider: the claims of the id tokens that it gives."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        self.person: dict[str, Any] = {"sub": "ann", "groups": []}
        self.userinfo: dict[str, Any] | None = None
        self.next_claims: dict[str, Any] = {}
        self.next_token: str | None = None
        self.next_key: Any = None
        self.next_algorithm = "RS256"
        self.asked: list[dict[str, str]] = []
        self._codes: dict[str, dict[str, str]] = {}
        self._access: set[str] = set()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider._get(self)

            def do_POST(self) -> None:
                provider._post(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reset(self) -> None:
        self.person, self.userinfo, self.next_claims = {"sub": "ann", "groups": []}, None, {}
        self.next_token, self.next_key, self.next_algorithm = None, None, "RS256"

    def _get(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/.well-known/openid-configuration":
            self._answer(handler, 200, self._discovery())
        elif parts.path == "/jwks":
            self._answer(handler, 200, {"keys": [self.key.as_dict(private=False)]})
        elif parts.path == "/authorize":
            self._authorize(handler, query)
        elif parts.path == "/userinfo":
            known = handler.headers.get("Authorization", "").removeprefix("Bearer ") in self._access
            self._answer(handler, 200 if known else 401, (self.userinfo or self.person) if known else {})
        else:
            self._answer(handler, 404, {})

    def _discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "response_types_supported": ["code"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def _authorize(self, handler: BaseHTTPRequestHandler, query: dict[str, str]) -> None:
        """The person is logged in and agrees: back with a code."""
        self.asked.append(query)
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT_ID
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self._codes[code] = query
        handler.send_response(302)
        back = urlencode({"code": code, "state": query["state"]})
        handler.send_header("Location", f"{query['redirect_uri']}?{back}")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def _post(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length", "0"))
        form = {name: values[0] for name, values in parse_qs(handler.rfile.read(length).decode()).items()}
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        asked = self._codes.pop(form.get("code", ""), None)
        if handler.path != "/token" or handler.headers.get("Authorization") != f"Basic {basic}" or asked is None:
            self._answer(handler, 400, {"error": "invalid_grant"})
            return
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if challenge != asked["code_challenge"] or form.get("redirect_uri") != asked["redirect_uri"]:
            self._answer(handler, 400, {"error": "invalid_grant"})
            return
        access = secrets.token_urlsafe(16)
        self._access.add(access)
        token = self.next_token or self.id_token(asked["nonce"])
        self._answer(handler, 200, {"access_token": access, "token_type": "Bearer", "id_token": token})

    def id_token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": nonce, **self.person}
        claims |= self.next_claims
        claims = {name: value for name, value in claims.items() if value is not None}
        header = {"alg": self.next_algorithm, "kid": "one", "typ": "JWT"}
        if self.next_algorithm == "RS256":
            return jws.serialize_compact(header, json.dumps(claims).encode(), self.next_key or self.key)
        signed = ".".join(_base64url(json.dumps(part).encode()) for part in (header, claims))
        if self.next_algorithm == "none":
            return signed + "."
        return f"{signed}.{_base64url(hmac.digest(self.key.as_pem(private=False), signed.encode(), 'sha256'))}"

    @staticmethod
    def _answer(handler: BaseHTTPRequestHandler, status: int, members: dict[str, Any]) -> None:
        content = json.dumps(members).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
