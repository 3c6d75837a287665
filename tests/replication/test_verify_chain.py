"""`manage.py verify_chain`: a log as it was signed is proved; every way of changing it afterwards is named, exit code 1."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from joserfc.jwk import OKPKey

from eventing.conf import config
from eventing.core import merkle
from eventing.core.events.feeds import Feed
from eventing.core.events.history import HistoryBounds
from eventing.core.seals import seals
from eventing.log.federated_bulk import Incoming
from eventing.log.scripts import DIGEST_BYTES
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.replication.models import SealHead
from eventing.replication.selectors import seal_chain
from eventing.replication.services.sealing import _encode, seal_own
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from eventing.store.client import client as redis_client
from tests.log.runs import receive_run
from tests.planes import principal
from tests.replication.own_logs import decode, kept, new_log, own_key, publish, state


@pytest.fixture(autouse=True)
def _stores(transactional_db: None, redis_url: str) -> None:
    redis_client().flushdb()


def verify(*rps: str) -> str:
    """What the command prints; the last line is "failed" if it fails."""
    out = io.StringIO()
    try:
        call_command("verify_chain", *rps, stdout=out, stderr=io.StringIO())
    except CommandError as error:
        return f"{out.getvalue()}failed: {error}"
    return out.getvalue()


def sealed_log(events: int = 25) -> str:
    """A log with three seals."""
    rp = new_log()
    for _ in range(3):
        publish(rp, events)
        seal_own(rp)
    return rp


def _entry(rp: str, offset: int) -> tuple[bytes, dict[bytes, bytes]]:
    entries: Any = redis_client().xrange(f"herald:{{{rp}}}:log", min=offset, max=offset)
    return entries[0]


def _rewrite(rp: str, key: str, at: int, **changes: bytes) -> None:
    """Write a stream anew with the fields of one of its entries changed, or without it if none is given."""
    name = f"herald:{{{rp}}}:{key}"
    entries: Any = redis_client().xrange(name)
    redis_client().delete(name)
    for index, (entry, fields) in enumerate(entries):
        if index == at:
            if not changes:
                continue
            fields = {**fields, **{field.encode(): value for field, value in changes.items()}}
        redis_client().xadd(name, fields, id=entry)


def test_a_log_as_it_was_signed_is_proved() -> None:
    rp = sealed_log()
    publish(rp, 2)
    text = verify(rp)
    assert f"{rp}: as signed. 75 events" in text
    assert "2 of this domain's own are not sealed yet" in text
    assert "localhost" in text
    assert "failed" not in text


def test_a_log_that_its_history_has_trimmed_is_proved_as_far_as_it_is_held() -> None:
    bounds = HistoryBounds(10, 1 << 20, None)
    rp = new_log(bounds)
    for count in (6, 7, 30):
        publish(rp, count, bounds=bounds)
        seal_own(rp)
    text = verify(rp)
    assert "as signed. 10 events" in text
    assert "failed" not in text


def test_a_changed_event_is_named() -> None:
    rp = sealed_log()
    body = _entry(rp, 30)[1][b"e"]
    _rewrite(rp, "log", 29, e=body.replace(b"event", b"Event"))
    text = verify(rp)
    assert "WRONG" in text
    assert "The event at offset 30 is not the one that localhost sealed as its 30." in text
    assert "failed: Some logs differ from what was signed." in text


def test_two_swapped_events_are_named() -> None:
    rp = sealed_log()
    one, other = _entry(rp, 10)[1][b"e"], _entry(rp, 11)[1][b"e"]
    _rewrite(rp, "log", 9, e=other)
    _rewrite(rp, "log", 10, e=one)
    text = verify(rp)
    assert "offset 10" in text
    assert "offset 11" in text


def test_a_seal_by_another_key_is_named() -> None:
    rp = sealed_log()
    made = OKPKey.generate_key("Ed25519")
    stored = kept(rp)[1]
    read = seals.seal_read(decode(stored.seal))
    forged = seals.seal_make(
        rp=rp,
        feed=read.feed,
        first=read.first,
        leaves=stored.leaves,
        previous=read.previous,
        sealed_at_ms=read.sealed_at_ms,
        private_jwk={**made.as_dict(private=True), "kid": made.thumbprint()},
    )
    _rewrite(rp, f"seals:{own_key(rp)}", 1, s=_encode(forged))
    assert "The seal of 26 to 50 by localhost is not signed by a key of that domain" in verify(rp)


def test_a_seal_that_cannot_be_read_and_leaves_of_others_are_named() -> None:
    rp = sealed_log()
    for unreadable in (b"nothing", b"\x93\xc4\x01x\xa1\xff\xc4\x00", b"\x91" * 100_000):
        _rewrite(rp, f"seals:{own_key(rp)}", 0, s=unreadable)
        assert "The seal of 1 to 25 of feed" in verify(rp)
    other = sealed_log()
    _rewrite(other, f"seals:{own_key(other)}", 0, l=merkle.leaves([b"x"] * 25))
    text = verify(other)
    assert "has another Merkle root than its leaf hashes" in text
    assert "offset 1 " in text


def test_a_missing_seal_is_named() -> None:
    rp = sealed_log()
    _rewrite(rp, f"seals:{own_key(rp)}", 1)
    text = verify(rp)
    assert "The seal of 51 to 75 by localhost does not follow the seal before it" in text
    assert "No seal covers event 26 of localhost, at offset 26." in text


def test_a_log_older_than_its_head_and_a_head_older_than_its_log_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal_chain, "HEAD_PAUSE_S", 0)
    rp = sealed_log()
    SealHead.objects.filter(rp=rp).update(last=80)
    assert "the log has seals only up to 75: it is older than what has left the domain" in verify(rp)
    SealHead.objects.filter(rp=rp).update(last=50)
    assert "The log's seals reach 75, and the database's only 50: the database was restored from a copy." in verify(rp)
    SealHead.objects.filter(rp=rp).update(last=75, digest=bytes(32))
    assert "does not have the digest in the database" in verify(rp)


def test_the_feed_of_another_domain_is_proved_by_that_domains_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    rp = sealed_log(3)
    made = OKPKey.generate_key("Ed25519")
    kid = made.thumbprint()
    feed = Feed("far.example", "abcdefgh")
    keys = {kid: {**made.as_dict(private=False), "nbf": 0}}
    ours = domain_keys
    monkeypatch.setattr(seal_chain, "domain_keys", lambda name: keys if name == feed.origin else ours(name))
    previous = b""
    for first in (1, 4, 7):
        events = [b"far %d" % n for n in range(first, first + 3)]
        statement = seals.seal_make(
            rp=rp,
            feed=feed,
            first=first,
            leaves=merkle.leaves(events),
            previous=previous,
            sealed_at_ms=9,
            private_jwk={**made.as_dict(private=True), "kid": kid},
        )
        digests = [event.ljust(DIGEST_BYTES, b".")[:DIGEST_BYTES] for event in events]
        receive_run(Incoming(rp, feed.key, first, first + 2, events, digests, _encode(statement), b"", [feed.origin]))
        previous = seals.digest(statement)
    text = verify(rp)
    assert "as signed. 18 events" in text
    assert "far.example abcdefgh: 9 events, 3 seals, to 9" in text
    _rewrite(rp, "log", 12, e=b"far 4!")
    assert "The event at offset 13 is not the one that far.example sealed as its 4." in verify(rp)
    monkeypatch.setattr(seal_chain, "domain_keys", ours)
    assert "The keys of far.example are not known here" in verify(rp)


def test_without_a_name_all_are_checked_and_an_unknown_one_is_refused() -> None:
    good = rendezvous_point_create(principal=principal("ann"), name="good").id
    bad = rendezvous_point_create(principal=principal("ann")).id
    for rp in (good, bad):
        publish(rp, 3)
        seal_own(rp)
    assert "2 rendezvous points checked, 0 of them wrong." in verify()
    _rewrite(bad, "log", 0, e=b"other")
    text = verify()
    assert "2 rendezvous points checked, 1 of them wrong." in text
    assert "failed" in text
    assert "as signed. 3 events" in verify(f"/{config().domain}/good/")
    assert "failed: There is no rendezvous point" in verify("nothing")
    assert "no log" in verify("z" * 26)


def test_json_has_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    rp = sealed_log(4)
    out = io.StringIO()
    call_command("verify_chain", rp, "--json", stdout=out)
    found = json.loads(out.getvalue())
    assert (found["rp"], found["epoch"], found["events"], found["wrong"]) == (rp, state(rp).epoch, 12, [])
    assert [(feed["seals"], feed["sealed"]) for feed in found["feeds"]] == [(3, 12)]


def test_a_long_log_is_checked_with_progress_and_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal_chain, "EVENTS_AT_ONCE", 7)
    monkeypatch.setattr(seal_chain, "SEALS_AT_ONCE", 2)
    rp = new_log()
    for _ in range(5):
        publish(rp, 6)
        seal_own(rp)
    told: list[tuple[int, int]] = []
    found = seal_chain.chain_check(rp, lambda done, total: told.append((done, total)))
    assert (found.events, found.wrong) == (30, [])
    assert told == [(0, 30), (7, 30), (14, 30), (21, 30), (28, 30), (30, 30)]
