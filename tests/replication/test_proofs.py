"""The proof of one event: served over REST, checked by the client library alone, and said in words by `herald proof`."""

from __future__ import annotations

import base64
import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from herald.commands import cli
from herald.proofs import ProofError, check
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joserfc.jwk import OKPKey
from rest_framework.test import APIClient

from demo.harness.servers import Domain
from eventing.access.services.tokens import token_create
from eventing.conf import config
from eventing.core import merkle, signing
from eventing.core.ed25519 import public_key_text
from eventing.core.events.feeds import Feed
from eventing.core.events.history import HistoryBounds
from eventing.core.ids import canonical_json
from eventing.core.seals import seals
from eventing.core.signing import Signed
from eventing.log import control
from eventing.log.federated_bulk import Incoming
from eventing.peering.rules.domain_documents import make, published, read, thumbprint
from eventing.peering.services.domain_documents import document_pin, own_document
from eventing.replication.api.proofs import representation
from eventing.replication.models import SealHead
from eventing.replication.services.proofs import event_proof
from eventing.replication.services.sealing import _encode, seal_own
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from eventing.store.client import client as redis_client
from tests.core.ed25519_vectors import NEUTRAL, SMALL_ORDER
from tests.log.runs import receive_run
from tests.planes import principal, problem_code
from tests.replication.own_logs import new_log, publish, state

FAR = "far.example"


@pytest.fixture
def stores(transactional_db: None, redis_url: str) -> None:
    redis_client().flushdb()


def api(subject: str = "ann") -> APIClient:
    client = APIClient(raise_request_exception=True)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_create(subject=subject).token}")
    return client


def proof_of(rp: str, offset: int) -> dict[str, Any]:
    """As REST answers it, through JSON."""
    answered: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode(representation(event_proof(rp=rp, place=offset)))
    )
    return answered


def body_at(rp: str, offset: int) -> bytes:
    return control.read(rp, offset, 1, 1 << 20).events[0]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.usefixtures("stores")
def test_every_event_of_a_run_is_proved_and_the_client_needs_nothing_but_the_fingerprint() -> None:
    rp = new_log()
    publish(rp, 9)
    seal_own(rp)
    publish(rp, 4)
    fingerprint = read(own_document()).fingerprint
    for offset in range(1, 14):
        proved = check(proof_of(rp, offset), rp=rp, origin=config().domain, fingerprint=fingerprint)
        assert proved.event == body_at(rp, offset)
        assert (proved.rp, proved.origin, proved.epoch) == (rp, config().domain, state(rp).epoch)
        assert proved.sequence == offset
        assert proved.first <= offset <= proved.last
        assert proved.pinned
    assert state(rp).sealed == 13  # asking for the last ones had them sealed


@pytest.mark.usefixtures("stores")
def test_rest_answers_by_cursor_and_by_offset_and_refuses_what_it_cannot_prove() -> None:
    bounds = HistoryBounds(5, 1 << 20, None)
    row = rendezvous_point_create(
        principal=principal("ann"), history={"max_events": 5}, policy=[{"issuer": "domain", "allow": ["history"]}]
    )
    closed = rendezvous_point_create(principal=principal("ann"), policy=[])
    publish(row.id, 8, bounds=bounds)
    path, ann = f"/api/v1/rps/{row.id}/proof", api()
    answer = ann.get(path, {"cursor": f"{state(row.id).epoch}:6"})
    assert answer.status_code == 200
    assert answer.json() == ann.get(path, {"offset": "6"}).json()
    assert check(answer.json(), rp=row.id).event == body_at(row.id, 6)
    assert api("ben").get(path, {"offset": "6"}).status_code == 200
    for query, status, code in (
        ({}, 400, "invalid-request"),
        ({"cursor": "x:1", "offset": "1"}, 400, "invalid-request"),
        ({"offset": "0"}, 400, "invalid-request"),
        ({"offset": "9" * 17}, 400, "invalid-request"),
        ({"cursor": "nonsense"}, 400, "invalid-cursor"),
        ({"cursor": "zzzzzzzz:6"}, 400, "invalid-cursor"),
        ({"offset": "2"}, 404, "not-found"),  # left the history
        ({"offset": "9"}, 404, "not-found"),
    ):
        refused = ann.get(path, query)
        assert (refused.status_code, problem_code(refused)) == (status, code)
    assert api("ben").get(f"/api/v1/rps/{closed.id}/proof?offset=1").status_code == 403
    assert ann.get(f"/api/v1/rps/{row.id}.admin/proof?offset=1").status_code == 404
    assert not SealHead.objects.filter(rp__contains="admin").exists()


@pytest.mark.usefixtures("stores")
def test_an_event_of_another_domain_is_proved_by_that_domains_key() -> None:
    rp = new_log()
    publish(rp, 3)
    made = OKPKey.generate_key("Ed25519")
    key = {**made.as_dict(private=True), "kid": made.thumbprint(), "nbf": 0}
    content = {"domain": FAR, "url": "https://far.example", "websocket": "wss://far.example/ws", "versions": [1]}
    document = make({**content, "serial": 1, "issued_at": 1}, [key])
    document_pin(document, fingerprint=made.thumbprint())
    events, feed = [b"far one", b"far two", b"far three"], Feed(FAR, "abcdefgh")
    statement = seals.seal_make(
        rp=rp, feed=feed, first=1, leaves=merkle.leaves(events), previous=b"", sealed_at_ms=9, private_jwk=key
    )
    receive_run(Incoming(rp, feed.key, 1, 3, events, [b"%12d" % n for n in range(3)], _encode(statement), b"", [FAR]))
    publish(rp, 2)
    seal_own(rp)
    proved = check(proof_of(rp, 5), rp=rp, origin=FAR, fingerprint=made.thumbprint())
    assert (proved.origin, proved.epoch, proved.sequence, proved.event) == (FAR, feed.epoch, 2, b"far two")
    own = check(proof_of(rp, 7), origin=config().domain)
    assert (own.sequence, own.pinned) == (4, False)
    with pytest.raises(ProofError, match="fingerprint"):
        check(proof_of(rp, 7), fingerprint=made.thumbprint())


@pytest.mark.usefixtures("stores")
def test_a_domain_whose_history_was_tampered_with_proves_nothing() -> None:
    row = rendezvous_point_create(principal=principal("ann"))
    publish(row.id, 3)
    seal_own(row.id)
    log = f"herald:{{{row.id}}}:log"
    entries: Any = redis_client().xrange(log)
    redis_client().delete(log)
    for entry, fields in entries:
        redis_client().xadd(log, {**fields, b"e": fields[b"e"].replace(b"event", b"Event")}, id=entry)
    answer = api().get(f"/api/v1/rps/{row.id}/proof?offset=2")
    assert (answer.status_code, problem_code(answer)) == (503, "unavailable")


class Sealed:
    """A proof made by hand, of a domain that no server knows."""

    def __init__(self) -> None:
        made = OKPKey.generate_key("Ed25519")
        self.key: dict[str, Any] = {**made.as_dict(private=True), "kid": made.thumbprint(), "nbf": 0}
        self.events = [b"event %d" % n for n in range(11)]
        content = {"domain": FAR, "url": "https://far.example", "websocket": "wss://far.example/ws", "versions": [1]}
        self.document = make({**content, "serial": 1, "issued_at": 1}, [self.key])
        leaves = merkle.leaves(self.events)
        self.rp = "c" * 26
        self.statement = seals.seal_make(
            rp=self.rp,
            feed=Feed(FAR, "abcdefgh"),
            first=300,
            leaves=leaves,
            previous=bytes(32),
            sealed_at_ms=1_700_000_000_000,
            private_jwk=self.key,
        )
        self.proof: dict[str, Any] = {
            "event": b64(self.events[6]),
            "leaf_index": 6,
            "path": [b64(one) for one in merkle.path(leaves, 6)],
            "seal": self.seal(self.statement),
            "document": published(self.document),
        }

    @staticmethod
    def seal(statement: Signed) -> dict[str, str]:
        return {"payload": b64(statement.payload), "kid": statement.kid, "signature": b64(statement.signature)}


def _of_everybody(text: str) -> Signed:
    """A document of the domain whose first key is one that everybody can sign for."""
    x = public_key_text(bytes.fromhex(text))
    return Signed(
        canonical_json({"domain": FAR, "keys": [{"kid": thumbprint(x), "x": x, "nbf": 0}]}),
        thumbprint(x),
        NEUTRAL + bytes(32),
    )


SEALED = Sealed()
GOOD = SEALED.proof


def changed(**members: Any) -> dict[str, Any]:
    return {**copy.deepcopy(GOOD), **members}


def test_a_good_proof_says_what_it_proves() -> None:
    proved = check(GOOD, rp=SEALED.rp, origin=FAR, fingerprint=SEALED.key["kid"], event=b"event 6")
    assert (proved.sequence, proved.first, proved.last, proved.event) == (306, 300, 310, b"event 6")
    assert (proved.key_id, proved.fingerprint) == (SEALED.key["kid"], SEALED.key["kid"])
    assert proved.sealed_at_ms == 1_700_000_000_000
    grouped = " ".join(SEALED.key["kid"][at : at + 4] for at in range(0, 43, 4))
    assert check(GOOD, fingerprint=grouped).pinned


@pytest.mark.parametrize("at", [0, 4, 15])
def test_the_seal_of_a_proof_may_be_signed_with_others(at: int) -> None:
    others = [b"another statement %d" % number for number in range(15)]
    payloads = [*others[:at], SEALED.statement.payload, *others[at:]]
    made = signing.sign_all(signing.SEAL, payloads, SEALED.key)
    assert check(changed(seal=Sealed.seal(made[at])), fingerprint=SEALED.key["kid"]).sequence == 306
    signature = made[at].signature
    wrong = [
        signature[:64],
        signature[:-32],
        signature[:-1],
        signature + bytes(32),
        signature[:64] + bytes([(at + 1) % 16]) + signature[65:],
        signature[:65] + bytes([15]) + signature[66:],
        signature[:-1] + bytes([signature[-1] ^ 1]),
        made[(at + 1) % 16].signature,
    ]
    for one in wrong:
        with pytest.raises(ProofError, match="signature of the seal"):
            check(changed(seal=Sealed.seal(Signed(made[at].payload, made[at].kid, one))))


def _other_seal(**changes: Any) -> dict[str, str]:
    read_seal = seals.seal_read(SEALED.statement)
    payload = msgspec.msgpack.encode(msgspec.structs.replace(read_seal, **changes))
    return Sealed.seal(Signed(payload, SEALED.statement.kid, SEALED.statement.signature))


def _other_document(**content: Any) -> dict[str, Any]:
    said = {
        "domain": FAR,
        "url": "https://far.example",
        "websocket": "wss://x",
        "versions": [1],
        "serial": 1,
        "issued_at": 1,
    }
    key = content.pop("key", SEALED.key)
    return published(make({**said, **content}, [key]))


_STRANGER = OKPKey.generate_key("Ed25519")
STRANGER = {**_STRANGER.as_dict(private=True), "kid": _STRANGER.thumbprint(), "nbf": 0}


@pytest.mark.parametrize(
    ("proof", "sentence"),
    [
        (changed(event=b64(b"event 7")), "not the one that was sealed"),
        (changed(leaf_index=7), "not the one that was sealed"),
        (changed(leaf_index=11), "not the one that was sealed"),
        (changed(leaf_index=-1), "not a number"),
        (changed(leaf_index=True), "not a number"),
        (changed(path=GOOD["path"][:-1]), "not the one that was sealed"),
        (changed(path=GOOD["path"] + GOOD["path"][:1]), "not the one that was sealed"),
        (changed(path=GOOD["path"] * 5), "at most 16 hashes"),
        (changed(path=["AAAA"]), "32 bytes"),
        (changed(path=None), "not a list"),
        (changed(seal=None), "no seal"),
        (changed(seal=_other_seal(rp="d" * 26)), "signature of the seal is wrong"),
        (changed(seal=_other_seal(epoch="zzz")), "signature of the seal is wrong"),
        (changed(seal=_other_seal(first=301, last=311)), "signature of the seal is wrong"),
        (changed(seal=_other_seal(root=merkle.leaf(b"event 6"), first=300, last=300)), "signature of the seal is wrong"),
        (changed(seal=_other_seal(version=2)), "cannot read"),
        (changed(seal={**GOOD["seal"], "kid": "unknown"}), "does not list"),
        (changed(seal={**GOOD["seal"], "signature": "!"}), "not base64"),
        (changed(seal={**GOOD["seal"], "payload": b64(bytes(600))}), "too long"),
        (changed(seal={**GOOD["seal"], "payload": b64(b"\x99\x01")}), "truncated|invalid value"),
        (changed(seal={**GOOD["seal"], "payload": ""}), "not a MessagePack array"),
        (changed(document=None), "no domain document"),
        (changed(document=_other_document(domain="near.example")), "not that of far.example"),
        (changed(document=_other_document(key=STRANGER)), "does not list"),
        (changed(document=_other_document(key={**SEALED.key, "nbf": 1_800_000_000})), "outside the window"),
        (changed(document=_other_document(key={**SEALED.key, "exp": 1_600_000_000})), "outside the window"),
        (changed(document={**GOOD["document"], "signature": b64(bytes(64))}), "not signed by the domain's first key"),
        (changed(document={**GOOD["document"], "kids": []}), "not signed by the domain's first key"),
        (changed(document={**GOOD["document"], "payload": b64(b"[]")}), "cannot read"),
        (changed(document={**GOOD["document"], "payload": b64(b'{"domain":"far.example","keys":[{"kid":"a","x":"b"}]}')}),
         "thumbprint"),
        *((changed(document=published(_of_everybody(text))), "small order") for text in SMALL_ORDER),
        ({}, "no event"),
        (changed(event=5), "no event"),
    ],
)  # fmt: skip
def test_what_proves_nothing_is_refused_with_the_reason(proof: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ProofError, match=sentence):
        check(proof)


def test_a_good_proof_of_something_else_than_was_asked_is_refused() -> None:
    for asked, sentence in (
        ({"rp": "d" * 26}, "of an event at"),
        ({"origin": "near.example"}, "published by far.example"),
        ({"fingerprint": STRANGER["kid"]}, "fingerprint"),
        ({"event": b"event 7"}, "another event"),
    ):
        with pytest.raises(ProofError, match=sentence):
            check(GOOD, **asked)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.binary(max_size=100), st.integers(0, 90), st.integers(0, 255))
def test_no_seal_whatever_its_bytes_is_taken_without_its_signature(junk: bytes, at: int, value: int) -> None:
    payload = bytearray(SEALED.statement.payload)
    payload[at % len(payload)] = value
    for each in (junk, bytes(payload)):
        if each != SEALED.statement.payload:
            with pytest.raises(ProofError):
                check(changed(seal={**GOOD["seal"], "payload": b64(each)}))


@pytest.fixture
def herald(domain: Domain) -> Callable[..., Result]:
    """The command, at the domain that tests share."""
    env: dict[str, str | None] = {name: None for name in os.environ if name.startswith("HERALD_")}
    tokens = {admin: domain.token(subject="prover", admin=admin) for admin in (True, False)}

    def run(*arguments: str, admin: bool = True) -> Result:
        return CliRunner().invoke(cli, arguments, env={**env, "HERALD_URL": domain.url, "HERALD_TOKEN": tokens[admin]})

    return run


@pytest.mark.processes
def test_the_command_says_what_was_proved_and_by_whose_key(
    domain: Domain, herald: Callable[..., Result], tmp_path: Path
) -> None:
    with domain.http(subject="prover", admin=True) as client:
        rp = client.post("/api/v1/rps", json={"lease_s": 600}).json()["id"]
        for number in (1, 2, 3):
            event = {"specversion": "1.0", "id": f"e{number}", "source": "/t", "type": "t"}
            headers = {"Content-Type": "application/cloudevents+json"}
            published_at = client.post(f"/api/v1/rps/{rp}/events", content=json.dumps(event), headers=headers).json()
    cursor = f"{published_at['epoch']}:{published_at['offset']}"
    shown = herald("proof", rp, cursor)
    assert shown.exit_code == 0, shown.output
    fingerprint = json.loads(herald("proof", rp, cursor, "--json").output)["fingerprint"]
    for words in (
        "Proved: localhost published exactly these",
        "as event 3 of its feed",
        rp,
        '"id": "e3"',
        "Compare it with",
    ):
        assert words in shown.output
    pinned = herald("proof", rp, "2", "--fingerprint", fingerprint, "--save", str(tmp_path / "proof.json"))
    assert pinned.exit_code == 0
    assert "nothing else is taken on trust" in pinned.output
    offline = herald("proof", rp, "--file", str(tmp_path / "proof.json"), "--url", "http://127.0.0.1:1")
    assert offline.exit_code == 0
    assert '"id": "e2"' in offline.output
    for arguments, words in (
        ((rp, "2", "--fingerprint", "A" * 43), "not the one given"),
        (("z" * 26, "--file", str(tmp_path / "proof.json")), "of an event at"),
        ((rp, "99"), "not in the history"),
    ):
        refused = herald("proof", *arguments)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert words in refused.stderr
    assert herald("proof", rp).exit_code == 2


@pytest.mark.processes
def test_the_command_lists_misbehaviour_and_lifts_a_quarantine(herald: Callable[..., Result]) -> None:
    listed = herald("misbehaviour", "list", "--domain", "nobody.example")
    assert (listed.exit_code, listed.output) == (0, "No misbehaviour was recorded.\n")
    lifted = herald("misbehaviour", "lift", "nobody.example")
    assert lifted.exit_code == 1
    assert "not in quarantine" in lifted.stderr
    assert herald("misbehaviour", "list", admin=False).exit_code == 1
