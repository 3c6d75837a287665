"""A domain in the test's own process, with real keys, that speaks the wire as any other and says what a test wants it to.

    liar = LyingPeer(network)
    liar.peer("a"); rp = ...; liar.join(rp, "a")       # it behaves until told otherwise
    liar.wait_runs(rp, 20)                             # what honest peers sent to it, kept as it came
    liar.send("b", rp, runs=[tampered(run) for run in liar.runs(rp)])
    liar.claims[rp] = {feed: 10**6}                    # what its vector says instead of the truth

Signatures and messages are made by the domain's own modules (eventing/peering, eventing/core): what a lie breaks is what
the lie is about, nothing else.
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from demo.harness.servers import wait_for
from eventing.core import merkle
from eventing.core.events.feeds import Feed
from eventing.core.seals import seals
from eventing.core.signing import Signed
from eventing.peering.rules import domain_documents
from eventing.peering.rules.peers import Stance
from eventing.peering.wire import messages as wire
from eventing.peering.wire import signatures
from eventing.peering.wire.endpoints import HELLO, PREFIX
from eventing.peering.wire.hello import Hello
from eventing.replication.joining.messages import JoinRequest
from eventing.rps.rules import statements

if TYPE_CHECKING:
    from demo.harness.network import Network

NAME = "liar"
ANSWERED_WITHIN_S = 30.0


# -- lies about a run ---------------------------------------------------------------------------------------------------


def tampered(run: wire.SealedRun) -> wire.SealedRun:
    """One byte of an event's data is another one."""
    middle = len(run.events) // 2
    altered = run.events[middle].replace(b'"n"', b'"m"')
    assert altered != run.events[middle]
    return _with_events(run, [*run.events[:middle], altered, *run.events[middle + 1 :]])


def dropped(run: wire.SealedRun) -> wire.SealedRun:
    """An event is missing from the middle."""
    middle = len(run.events) // 2
    return _with_events(run, [*run.events[:middle], *run.events[middle + 1 :]])


def reordered(run: wire.SealedRun) -> wire.SealedRun:
    """Two events have changed places."""
    return _with_events(run, [*run.events[1::-1], *run.events[2:]])


def withheld(run: wire.SealedRun) -> wire.SealedRun:
    """All events but the last are hashes only, as if the origin kept them no more."""
    return msgspec.structs.replace(run, leaves=run.leaves + merkle.leaves(run.events[:-1]), events=run.events[-1:])


def forged(run: wire.SealedRun, key: Mapping[str, Any]) -> wire.SealedRun:
    """Other events under a seal in the origin's name, made with a key that is not the origin's."""
    altered, seal = tampered(run), seals.seal_read(run.seal)
    made = seals.seal_make(
        rp=seal.rp,
        feed=seal.feed,
        first=seal.first,
        leaves=run.leaves + merkle.leaves(altered.events),
        previous=seal.previous,
        sealed_at_ms=seal.sealed_at_ms,
        private_jwk=key,
    )
    return msgspec.structs.replace(altered, seal=made)


def _with_events(run: wire.SealedRun, events: Sequence[bytes]) -> wire.SealedRun:
    return msgspec.structs.replace(run, events=list(events))


# -- the domain -----------------------------------------------------------------------------------------------------------


class LyingPeer:
    """One domain of which the test is the only administrator, gateway and worker. Its log is a dictionary of runs.

    Attributes:
        domain, url, key, document: who it is.
        claims: by RP, the vector that it states instead of the true one.
        deaf: whether it swallows what it is sent, and answers as if it held what it held before.
        prunes: whether it prunes, with every answer, all that it is told of.
        requests: bodies of the exchange requests that it got.
        heard_of: the same by sender.
    """

    def __init__(self, network: Network, name: str = NAME, *, key: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.domain = f"{name}.test"
        self.key = key or new_key()
        self.claims: dict[str, dict[str, int]] = {}
        self.deaf = False
        self.prunes = False
        self.requests: list[wire.ExchangeRequest] = []
        self.heard_of: dict[str, list[wire.ExchangeRequest]] = defaultdict(list)
        self._network = network
        self._approves_since_ms = int(time.time() * 1000)
        network.guests[name] = self
        self._held: dict[str, dict[str, list[wire.SealedRun]]] = defaultdict(lambda: defaultdict(list))
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}"
        content = {
            "domain": self.domain,
            "url": self.url,
            "websocket": f"ws://127.0.0.1:{self.port}/ws",
            "versions": [wire.VERSION],
            "serial": 1,
            "issued_at": int(time.time()),
        }
        self.document = domain_documents.make(content, [self.key])
        self._http = httpx.Client(timeout=ANSWERED_WITHIN_S, trust_env=False)
        threading.Thread(target=self._server.serve_forever, name=name, daemon=True).start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._http.close()

    # -- what it holds ----------------------------------------------------------------------------------------------

    def runs(self, rp: str, origin: str | None = None) -> list[wire.SealedRun]:
        """The runs that it holds of an RP, per feed in order; those of one origin (by its short name) if stated."""
        with self._lock:
            return [
                run
                for feed in self._held[rp].values()
                for run in feed
                if origin is None or seals.seal_read(run.seal).origin == f"{origin}.test"
            ]

    def have(self, rp: str) -> dict[str, int]:
        """The vector that it states."""
        with self._lock:
            true = {key: seals.seal_read(runs[-1].seal).last for key, runs in self._held[rp].items() if runs}
        return self.claims.get(rp, true)

    def wait_runs(
        self, rp: str, events: int, origin: str | None = None, within_s: float = 20.0
    ) -> list[wire.SealedRun]:
        """Wait until it was sent so many events of an RP; the runs."""
        wait_for(
            lambda: sum(len(run.events) for run in self.runs(rp, origin)) >= events,
            within_s,
            about=f"{events} events have come to {self.name}",
        )
        return self.runs(rp, origin)

    def take(self, request: wire.ExchangeRequest) -> None:
        """Keep the runs of a request, unverified; what it has already it does not keep again."""
        with self._lock:
            self.requests.append(request)
            for part in request.parts if not self.deaf else ():
                for run in part.runs:
                    seal = seals.seal_read(run.seal)
                    held = self._held[part.rp][seal.feed.key]
                    if not held or seals.seal_read(held[-1].seal).last < seal.first:
                        held.append(run)

    # -- its own feed -----------------------------------------------------------------------------------------------

    def run_made(
        self, rp: str, first: int, texts: Sequence[str], *, previous: Signed | None = None, epoch: str = "liarepch"
    ) -> wire.SealedRun:
        """A run of its own feed, sealed as an honest domain would seal it: what is told twice differently is for the test."""
        events = [
            json.dumps(
                {"specversion": "1.0", "id": f"{self.name}-{first + place}", "source": f"/{self.name}", "type": "test",
                 "data": {"n": first + place, "text": text}}, separators=(",", ":")
            ).encode()
            for place, text in enumerate(texts)
        ]  # fmt: skip
        seal = seals.seal_make(
            rp=rp,
            feed=Feed(self.domain, epoch),
            first=first,
            leaves=merkle.leaves(events),
            previous=seals.digest(previous) if previous else b"",
            sealed_at_ms=int(time.time() * 1000),
            private_jwk=self.key,
        )
        return wire.SealedRun(seal, events, b"", [self.domain])

    # -- peers and replicas -----------------------------------------------------------------------------------------

    def peer(self, at: str) -> None:
        """Become an active peer of a domain: its administrator adds it, and it approves."""
        self._network.add_peer(at, self.name)
        wait_for(
            lambda: self._network.peer_state(at, self.name) == "active", 20, every_s=0.1, about=f"{self.name} is a peer"
        )

    def join(self, rp: str, home: str, *, lease_s: int = 3600) -> None:
        """Participate in an RP, by the word of its home; it is true what it says here."""
        wish = statements.Join(rp, self.domain, self.url, lease_s, int(time.time() * 1000))
        signed = statements.join_make(wish, self.key)
        body = wire.encode(JoinRequest(wire.VERSION, signed, [self.document], [self.domain]))
        status, answer = self.post(home, "join", body)
        assert status == 200, f"{home} does not admit {self.name}: {status} {answer!r}"

    def wait_taken(self, rp: str, *at: str) -> None:
        """Wait until its peers take from it what it says about an RP: they have heard that it was admitted."""
        for name in at:
            wait_for(
                lambda name=name: not self.send(name, rp).parts[0].error,  # type: ignore[misc]
                20,
                every_s=0.1,
                about=f"{name} takes what {self.name} says about {rp}",
            )

    # -- what it says -----------------------------------------------------------------------------------------------

    def send(self, to: str, rp: str, runs: Sequence[wire.SealedRun] = (), **part: Any) -> wire.ExchangeAnswer:
        """One exchange about an RP with a domain; its answer. Fails when the domain refuses the request as a whole."""
        carried = [
            msgspec.structs.replace(run, path=run.path if run.path[-1:] == [self.domain] else [*run.path, self.domain])
            for run in runs
        ]
        said = wire.RpPart(rp, part.pop("have", self.have(rp)), carried, **part)
        status, body = self.post(
            to, "exchange", wire.encode(wire.ExchangeRequest(wire.VERSION, [said], [self.document]))
        )
        assert status == 200, f"{to} answered {status}: {body!r}"
        return wire.answer(body)

    def signed(self, to: str, path: str, body: bytes) -> signatures.SignedRequest:
        """A signed request, not sent yet."""
        return signatures.request_signed(
            f"{self._network[to].url}{PREFIX}{path}",
            body,
            origin=self.domain,
            destination=self._network[to].name,
            key=self.key,
            nonce=secrets.token_urlsafe(16),
            now=time.time(),
        )

    def post(
        self, to: str, path: str, body: bytes, request: signatures.SignedRequest | None = None
    ) -> tuple[int, bytes]:
        """Send a request (a new one, signed, unless given); the answer's status and body."""
        request = request or self.signed(to, path, body)
        answer = self._http.post(request.url, content=body, headers=request.headers)
        return answer.status_code, answer.content

    # -- what it answers --------------------------------------------------------------------------------------------

    def answer(self, path: str, body: bytes, sender: str) -> bytes:
        """The body of its answer to a request of the wire."""
        if path == f"{PREFIX}exchange":
            request = wire.request(body)
            self.heard_of[sender].append(request)
            self.take(request)
            pruned = {part.rp: sorted(part.have) if self.prunes else [] for part in request.parts}
            parts = [wire.RpAnswer(part.rp, self.have(part.rp), prune=pruned[part.rp]) for part in request.parts]
            return wire.encode(wire.ExchangeAnswer(wire.VERSION, parts))
        if path == HELLO:
            return wire.encode(Hello(self.document, wire.VERSION, Stance.APPROVES, self._approves_since_ms))
        return wire.encode([wire.VERSION])  # a probe

    def well_known(self) -> bytes:
        """Its /.well-known/herald."""
        published = {"domain": self.domain, "url": self.url, "document": domain_documents.published(self.document)}
        return json.dumps(published).encode()


def new_key() -> dict[str, Any]:
    """A new Ed25519 key as a private JWK with its kid and window."""
    private = Ed25519PrivateKey.generate()
    x, d = (_b64(raw) for raw in (private.public_key().public_bytes_raw(), private.private_bytes_raw()))
    kid = domain_documents.thumbprint(x)
    return {"kty": "OKP", "crv": "Ed25519", "x": x, "d": d, "kid": kid, "nbf": int(time.time()) - 60}


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _handler(peer: LyingPeer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """HTTP/1.1 with signed answers."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(200, {"content-type": "application/json"}, peer.well_known())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = signatures.SignedRequest("POST", f"http://{headers['host']}{self.path}", headers)
            said = peer.answer(self.path, body, headers.get(signatures.FROM, ""))
            answer = signatures.answer_signed(
                asked,
                200,
                said,
                content_type=signatures.CONTENT_TYPE,
                retry_after_s=None,
                key=peer.key,
                origin=peer.domain,
                nonce=secrets.token_urlsafe(16),
                now=time.time(),
            )
            with suppress(ConnectionError):  # the caller waits no more
                self._send(200, answer.headers, said)

        def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
