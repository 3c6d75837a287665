"""Foreign issuers for tests: real HTTP servers on loopback, in threads, well behaved or not.

with IssuerServer() as issuer:
    token = issuer.token("citizen-1", nationality="NL")
    issuer.answer("/jwks", content=b"{", headers={"Cache-Control": "max-age=600"})
    assert issuer.asked("/jwks") == 1
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc.jwk import OKPKey

DISCOVERY = "/.well-known/openid-configuration"
JWKS = "/jwks"


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class SigningKey:
    """An Ed25519 key that signs quickly whatever it is given."""

    def __init__(self, kid: str) -> None:
        self.kid = kid
        self.jwk = OKPKey.generate_key("Ed25519")
        self._private: Ed25519PrivateKey = self.jwk.private_key  # type: ignore[assignment]

    @property
    def public(self) -> dict[str, Any]:
        """As it is published."""
        return {**self.jwk.as_dict(private=False), "kid": self.kid, "use": "sig", "alg": "EdDSA"}

    def sign(self, claims: Mapping[str, Any], **header: Any) -> str:
        """A token; `header` changes its header, None leaves a member out."""
        members = {"alg": "EdDSA", "typ": "JWT", "kid": self.kid, **header}
        shown = {name: value for name, value in members.items() if value is not None}
        signing_input = f"{base64url(json.dumps(shown).encode())}.{base64url(json.dumps(claims).encode())}"
        return f"{signing_input}.{base64url(self._private.sign(signing_input.encode()))}"


class IssuerServer:
    """An OIDC issuer at http://127.0.0.1:PORT."""

    def __init__(self) -> None:
        self.keys = [SigningKey("k1")]
        self._answers: dict[str, tuple[int, bytes | Callable[[], Iterator[bytes]], dict[str, str]]] = {}
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.held = threading.Event()
        self.held.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer._serve(self)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.publish()

    # What it says

    def publish(self, *, max_age_s: int = 3600) -> None:
        """Answer with the discovery document and the public keys there are now."""
        self.answer(DISCOVERY, json.dumps({"issuer": self.url, "jwks_uri": self.url + JWKS}).encode())
        keys = {"keys": [key.public for key in self.keys]}
        self.answer(JWKS, json.dumps(keys).encode(), {"Cache-Control": f"max-age={max_age_s}"})

    def answer(
        self,
        path: str,
        content: bytes | Callable[[], Iterator[bytes]],
        headers: dict[str, str] | None = None,
        *,
        status: int = 200,
    ) -> None:
        """Answer `path` so from now on; a function gives the body piece by piece."""
        self._answers[path] = (status, content, headers or {})

    def asked(self, path: str = JWKS) -> int:
        """How often `path` was asked for."""
        with self._lock:
            return self._asked[path]

    def token(self, subject: str = "citizen", *, key: SigningKey | None = None, **claims: Any) -> str:
        """A token for the domain localhost; None leaves a claim out."""
        return (key or self.keys[0]).sign(self.claims(subject, **claims))

    def claims(self, subject: str = "citizen", **claims: Any) -> dict[str, Any]:
        """What a token says."""
        now = time.time()
        made = {"iss": self.url, "aud": "localhost", "sub": subject, "iat": now, "exp": now + 600, **claims}
        return {name: value for name, value in made.items() if value is not None}

    # How it runs

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.held.set()
        self._server.shutdown()
        self._server.server_close()

    def _serve(self, request: BaseHTTPRequestHandler) -> None:
        with self._lock:
            self._asked[request.path] += 1
        self.held.wait(30)
        status, content, headers = self._answers.get(request.path, (404, b"", {}))
        try:
            request.send_response(status)
            for name, value in headers.items():
                request.send_header(name, value)
            if isinstance(content, bytes):
                request.send_header("Content-Length", str(len(content)))
            request.end_headers()
            for part in (content,) if isinstance(content, bytes) else content():
                request.wfile.write(part)
                request.wfile.flush()
        except OSError:
            request.close_connection = True  # whoever asked has had enough
