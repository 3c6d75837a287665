"""Misbehaviour: counted and visible, proofs of equivocation kept and spread, origins quarantined until an administrator decides."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, get_args

import pytest
from joserfc.jwk import OKPKey
from rest_framework.test import APIClient

from eventing.access.services.tokens import token_create
from eventing.audit.models import AuditEntry
from eventing.conf import config
from eventing.core import merkle
from eventing.core.errors import Forbidden, NotFound
from eventing.core.events.feeds import Feed
from eventing.core.seals import seals
from eventing.core.signing import Signed
from eventing.peering.models import Evidence, Misbehaviour, Quarantine
from eventing.peering.rules.misbehaviour import KINDS, Kind
from eventing.peering.selectors import domain_documents, recent_keys
from eventing.peering.selectors.evidence import evidence_pending, seals_of
from eventing.peering.services import evidence as evidence_service
from eventing.peering.services import misbehaviour as misbehaviour_service
from eventing.peering.services.evidence import EVIDENCE_PER_FEED_MAX, evidence_forget, evidence_keep, evidence_spread
from eventing.peering.services.misbehaviour import REPORT_S, WRITES_PER_S, misbehaviour_flush, misbehaviour_note
from eventing.peering.services.quarantines import quarantine, quarantine_lift, quarantined
from eventing.store.client import client as redis_client
from tests.planes import events_at, in_threads, principal, types_at

RP = "a" * 26
LIAR, CARRIER = "liar.example", "carrier.example"
FEED = Feed(LIAR, "abcdefgh")


@pytest.fixture(autouse=True)
def _stores(transactional_db: None, redis_url: str) -> Iterator[None]:
    redis_client().flushdb()
    yield
    misbehaviour_flush()


@pytest.fixture
def liar(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The liar's private key, whose public one is known here."""
    made = OKPKey.generate_key("Ed25519")
    kid = made.thumbprint()
    ours = domain_documents.domain_keys

    def keys(name: str) -> Any:
        return {kid: {**made.as_dict(private=False), "nbf": 0}} if name == LIAR else ours(name)

    monkeypatch.setattr(evidence_service, "domain_keys", keys)
    return {**made.as_dict(private=True), "kid": kid}


def story(key: dict[str, Any], *events: bytes, first: int = 1, feed: Feed = FEED, rp: str = RP) -> Signed:
    return seals.seal_make(
        rp=rp, feed=feed, first=first, leaves=merkle.leaves(events), previous=b"", sealed_at_ms=5, private_jwk=key
    )


def api(subject: str, *, admin: bool = False) -> APIClient:
    client = APIClient(raise_request_exception=True)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_create(subject=subject, admin=admin).token}")
    return client


def test_every_kind_is_explained() -> None:
    assert set(KINDS) == set(get_args(Kind))


def test_acts_are_counted_per_kind_carrier_and_origin_and_the_last_is_kept() -> None:
    misbehaviour_note("tampered", carrier=CARRIER, origin="one.example", rp=RP, detail="first")
    misbehaviour_note("tampered", carrier=CARRIER, origin="one.example", rp=RP, detail="second")
    misbehaviour_note("tampered", carrier=CARRIER, origin="two.example", rp=RP, detail="third")
    misbehaviour_note("forged", carrier=CARRIER, origin=CARRIER, detail="fourth")
    rows = Misbehaviour.objects.order_by("id").values_list("kind", "carrier", "origin", "count", "detail")
    assert list(rows) == [
        ("tampered", CARRIER, "one.example", 2, "second"),
        ("tampered", CARRIER, "two.example", 1, "third"),
        ("forged", CARRIER, "", 1, "fourth"),
    ]


def test_the_first_act_is_an_event_on_domain_admin_and_then_one_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        misbehaviour_note("tampered", carrier=CARRIER, origin=LIAR, rp=RP, detail="altered")
    assert types_at("domain.admin") == ["misbehaviour.noted"]
    data = events_at("domain.admin")[0]["data"]
    assert (data["kind"], data["carrier"], data["origin"], data["count"], data["rp"]) == (
        "tampered",
        CARRIER,
        LIAR,
        1,
        RP,
    )
    row = Misbehaviour.objects.get()
    assert row.reported_at is not None
    Misbehaviour.objects.update(reported_at=row.reported_at - timedelta(seconds=REPORT_S))
    misbehaviour_note("tampered", carrier=CARRIER, origin=LIAR, rp=RP, detail="altered")
    assert [event["data"]["count"] for event in events_at("domain.admin")] == [1, 4]


def test_a_flood_is_gathered_and_none_of_it_is_lost() -> None:
    for number in range(500):
        misbehaviour_note("flooding", carrier=CARRIER, detail=str(number))
    assert Misbehaviour.objects.get().count < 500
    held = misbehaviour_flush()
    assert held == 1
    row = Misbehaviour.objects.get()
    assert (row.count, row.detail) == (500, "499")
    assert WRITES_PER_S < 500


def test_who_invents_names_fills_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(misbehaviour_service, "ROWS_MAX", 5)
    for number in range(9):
        misbehaviour_note("forged", carrier=CARRIER, origin=f"name{number}.example")
    misbehaviour_note("oversize", carrier=CARRIER, origin="x" * 5000, rp="r" * 5000, detail="d" * 5000)
    misbehaviour_flush()
    assert Misbehaviour.objects.count() <= 5 + 2
    assert sum(Misbehaviour.objects.values_list("count", flat=True)) == 10


def test_notes_at_once_are_all_counted() -> None:
    in_threads(4, lambda n: [misbehaviour_note("forged", carrier=CARRIER, origin=LIAR) for _ in range(5)])
    misbehaviour_flush()
    assert Misbehaviour.objects.get().count == 20


def test_equivocation_is_kept_as_evidence_counted_and_quarantines_its_origin(liar: dict[str, Any]) -> None:
    one, other = story(liar, b"a", b"b"), story(liar, b"a", b"X")
    assert not quarantined(LIAR)
    assert evidence_keep(one, other, carrier=CARRIER)
    row = Evidence.objects.get()
    assert (row.origin, row.rp, row.epoch, row.carrier) == (LIAR, RP, FEED.epoch, CARRIER)
    assert set(seals_of(row)) == {one, other}
    assert quarantined(LIAR)
    assert not quarantined(CARRIER)
    assert Quarantine.objects.get().evidence == row
    noted = Misbehaviour.objects.get()
    assert (noted.kind, noted.carrier, noted.origin) == ("equivocation", CARRIER, LIAR)
    assert sorted(types_at("domain.admin")) == ["misbehaviour.noted", "origin.quarantined"]
    assert evidence_keep(other, one, carrier="another.example")  # the same proof the other way round
    assert Evidence.objects.count() == 1


def test_seals_that_prove_nothing_are_held_against_who_brought_them(liar: dict[str, Any]) -> None:
    one = story(liar, b"a")
    made = OKPKey.generate_key("Ed25519")
    other_key = {**made.as_dict(private=True), "kid": liar["kid"]}
    for other in (
        one,  # one story
        story(liar, b"X", first=2, feed=Feed(LIAR, "zzzzzzzz")),  # another feed
        story(liar, b"X", rp="b" * 26),
        story(other_key, b"X"),  # forged by somebody who wants the origin in quarantine
        Signed(one.payload[:-1] + b"\x06", one.kid, one.signature),
    ):
        assert not evidence_keep(one, other, carrier=CARRIER)
    assert not evidence_keep(one, Signed(b"no seal", liar["kid"], bytes(64)), carrier=CARRIER)
    assert not Evidence.objects.exists()
    assert not quarantined(LIAR)
    misbehaviour_flush()
    counted = dict(Misbehaviour.objects.filter(carrier=CARRIER).values_list("kind", "count"))
    assert counted == {"forged": 5, "malformed": 1}


def test_an_origin_whose_keys_are_not_known_cannot_be_judged(liar: dict[str, Any]) -> None:
    feed = Feed("stranger.example", "abcdefgh")
    assert not evidence_keep(story(liar, b"a", feed=feed), story(liar, b"b", feed=feed), carrier=CARRIER)
    assert not Misbehaviour.objects.exists()


def test_evidence_is_spread_to_every_peer_once_and_not_back_to_who_brought_it(liar: dict[str, Any]) -> None:
    evidence_keep(story(liar, b"a"), story(liar, b"b"), carrier=CARRIER)
    evidence_keep(story(liar, b"a", rp="b" * 26), story(liar, b"b", rp="b" * 26))
    assert len(evidence_pending("peer.example")) == 2
    assert len(evidence_pending(CARRIER)) == 1
    first, second = evidence_pending("peer.example")
    assert seals.equivocate(first.one, first.other)
    evidence_spread("peer.example", first.id)
    assert [one.id for one in evidence_pending("peer.example")] == [second.id]
    evidence_spread("peer.example", second.id)
    evidence_spread("peer.example", first.id)  # an older answer that comes late takes nothing back
    assert evidence_pending("peer.example") == []
    evidence_forget("peer.example")
    assert len(evidence_pending("peer.example")) == 2


def test_a_liar_cannot_fill_the_disk_with_proofs_against_itself(liar: dict[str, Any]) -> None:
    one = story(liar, b"a")
    for number in range(3 * EVIDENCE_PER_FEED_MAX):
        assert evidence_keep(one, story(liar, b"%d" % number), carrier=CARRIER)
    assert Evidence.objects.count() == EVIDENCE_PER_FEED_MAX


def test_an_administrator_lifts_a_quarantine_and_the_same_story_does_not_put_it_back(liar: dict[str, Any]) -> None:
    one, other = story(liar, b"a"), story(liar, b"b")
    evidence_keep(one, other, carrier=CARRIER)
    for who in (principal("ann"), principal("root", admin=True, ops=["administer"])):
        with pytest.raises(Forbidden):
            quarantine_lift(principal=who, origin=LIAR)
    assert quarantined(LIAR)
    quarantine_lift(principal=principal("root", admin=True), origin=LIAR)
    assert not quarantined(LIAR)
    assert types_at("domain.admin")[-1] == "origin.released"
    entry = AuditEntry.objects.get(action="quarantine.lift")
    assert (entry.who, entry.on_kind, entry.on_id) == ("root", "domain", LIAR)
    evidence_keep(one, other, carrier=CARRIER)
    evidence_keep(one, story(liar, b"c"), carrier=CARRIER)
    assert not quarantined(LIAR)
    assert Evidence.objects.count() == 2
    evidence_keep(story(liar, b"a", rp="b" * 26), story(liar, b"b", rp="b" * 26), carrier=CARRIER)
    assert quarantined(LIAR)  # a lie elsewhere is a new one
    with pytest.raises(NotFound):
        quarantine_lift(principal=principal("root", admin=True), origin="nobody.example")


def test_a_new_lie_puts_an_origin_back_though_no_more_proofs_of_its_lies_are_kept(
    liar: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence_service, "EVIDENCE_PER_ORIGIN_MAX", 3)

    def lie(number: int) -> str:
        feed = Feed(LIAR, f"abcdefg{number}")
        return evidence_keep(story(liar, b"a", feed=feed), story(liar, b"b", feed=feed), carrier=CARRIER)

    def lift() -> None:
        quarantine_lift(principal=principal("root", admin=True), origin=LIAR)

    assert [lie(number) for number in range(2, 8)] == ["new"] * 3 + ["known"] * 3
    assert Evidence.objects.count() == 3
    for lies, kept in ((6, 4), (7, 5)):
        lift()
        assert (lie(2), quarantined(LIAR)) == ("known", False)
        assert (lie(lies), quarantined(LIAR)) == ("new", True)
        assert lie(5) == "known"
        assert Evidence.objects.count() == kept, "one for each time that an administrator lifted the quarantine"
    lift()
    assert [lie(number) for number in (2, 3, 4, 6, 7)] == ["known"] * 5
    assert not quarantined(LIAR), "what put it back before does not do so again"


def test_proofs_against_this_domain_are_bounded_though_it_is_never_quarantined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_service, "EVIDENCE_PER_ORIGIN_MAX", 3)
    made = OKPKey.generate_key("Ed25519")
    key = {**made.as_dict(private=True), "kid": made.thumbprint()}
    public = {**made.as_dict(private=False), "nbf": 0}
    monkeypatch.setattr(evidence_service, "domain_keys", lambda name: {key["kid"]: public})
    for number in range(2, 8):
        feed = Feed(config().domain, f"abcdefg{number}")
        assert evidence_keep(story(key, b"a", feed=feed), story(key, b"b", feed=feed), carrier=CARRIER)
    assert Evidence.objects.count() == 3


def test_a_quarantine_is_seen_by_other_processes_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not quarantined(LIAR)
    assert in_threads(1, lambda _: quarantine(LIAR, "by hand")) == [True]
    assert quarantined(LIAR)
    Quarantine.objects.all().delete()  # by another process
    assert quarantined(LIAR)
    monkeypatch.setattr(recent_keys, "CACHE_S", 0.0)
    assert not quarantined(LIAR)


def test_this_domain_is_never_quarantined_here() -> None:
    assert not quarantine(config().domain, "a proof against us")
    assert not quarantined(config().domain)


def test_it_is_visible_over_rest_and_lifted_there(liar: dict[str, Any]) -> None:
    evidence_keep(story(liar, b"a"), story(liar, b"b"), carrier=CARRIER)
    misbehaviour_note("flooding", carrier="other.example", detail="too much")
    root = api("root", admin=True)
    items = root.get("/api/v1/misbehaviour").json()["items"]
    assert [(item["kind"], item["carrier"], item["origin"], item["count"]) for item in items] == [
        ("flooding", "other.example", "other.example", 1),
        ("equivocation", CARRIER, LIAR, 1),
    ]
    assert items[0]["about"] == KINDS["flooding"]
    assert [item["kind"] for item in root.get(f"/api/v1/misbehaviour?domain={LIAR}").json()["items"]] == [
        "equivocation"
    ]
    page = root.get("/api/v1/misbehaviour?limit=1").json()
    following = root.get("/api/v1/misbehaviour", {"limit": "1", "cursor": page["next"]}).json()
    assert [item["kind"] for item in page["items"] + following["items"]] == ["flooding", "equivocation"]
    assert root.get("/api/v1/misbehaviour?kind=nonsense").status_code == 400
    found = root.get("/api/v1/quarantines").json()["items"]
    assert [(one["origin"], one["evidence"]["rp"]) for one in found] == [(LIAR, RP)]
    ann = api("ann")
    for answer in (
        ann.get("/api/v1/misbehaviour"),
        ann.get("/api/v1/quarantines"),
        ann.delete(f"/api/v1/quarantines/{LIAR}"),
    ):
        assert answer.status_code == 403
    assert root.delete(f"/api/v1/quarantines/{LIAR}").status_code == 204
    assert root.delete(f"/api/v1/quarantines/{LIAR}").status_code == 404
    assert root.get("/api/v1/quarantines").json() == {"items": []}
