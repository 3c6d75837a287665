"""Founding, sponsoring and joining: what a sponsor's answer must prove, and what a sponsor's quota bounds."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from django.test import override_settings

from eventing.conf import config
from eventing.core.errors import Conflict, Forbidden, NotFound, QuotaExceeded
from eventing.core.principals import Principal
from eventing.membership.models import DirectoryDomain, GrantedSponsorship, OverlayFounder, OverlayMembership
from eventing.membership.rules.records import (
    RECORD_BYTES_MAX,
    RecordVerifier,
    SponsorshipGrant,
    identity_of,
    record_bytes,
    record_bytes_most,
    record_sign,
    sponsorship_sign,
)
from eventing.membership.rules.sponsoring import FOUNDERS_QUOTA_PER_DAY, BadChain, chain_founder
from eventing.membership.selectors.directory import chain_of, directory_identity, directory_record, directory_records
from eventing.membership.services.directory import directory_forget, directory_store
from eventing.membership.services.joining import overlay_found, overlay_join, overlay_leave, require_record
from eventing.membership.services.own_record import own_identity, own_record_issue, own_record_problem
from eventing.membership.services.sponsorships import sponsorship_grant
from eventing.overlay.directory_records import QUOTA_PER_DAY, DomainRecord, Sponsorship
from tests.membership.signers import Signer

pytestmark = pytest.mark.usefixtures("planes")
NOW = time.time()
TODAY = int(NOW // 86_400)


def founder() -> Signer:
    return Signer("founder.example", at=NOW)


def granted(by: Signer, *, newcomer: str = "", key: str = "") -> SponsorshipGrant:
    """The sponsorship of this domain."""
    given = Sponsorship(by.name, newcomer or config().domain, TODAY, 0)
    return sponsorship_sign(given, key or str(own_identity()["x"]), by.identity)


def join(root: Principal, by: Signer, grant: SponsorshipGrant, *chain: DomainRecord) -> OverlayMembership:
    return overlay_join(principal=root, sponsor=by.name, fingerprint=by.fingerprint, grant=grant, chain=chain)


class TestJoining:
    """The sponsor's answer."""

    def test_the_chain_leads_to_the_founder_that_is_trusted_from_then_on(self, root: Principal) -> None:
        top = founder()
        middle = Signer("middle.example", top, at=NOW, day=TODAY)
        join(root, middle, granted(middle), middle.record(), top.record())
        trusted = OverlayFounder.objects.get()
        assert (trusted.name, trusted.fingerprint, trusted.learned_from) == (top.name, top.fingerprint, middle.name)
        own = directory_record(config().domain)
        assert own is not None
        assert [record.domain for record in chain_of(config().domain)] == [config().domain, middle.name, top.name]
        verifier = RecordVerifier(lambda _: None, lambda _: None, directory_identity)
        assert verifier.problem(own) == ""

    def test_a_founder_that_has_left_is_still_the_end_of_the_chain(self, root: Principal) -> None:
        top = Signer("founder.example", at=NOW - 90_000)
        middle = Signer("middle.example", top, at=NOW, day=TODAY)
        join(root, middle, granted(middle), middle.record(), top.record())
        assert directory_record(top.name) is None
        assert directory_identity(top.name) == top.x

    def test_an_answer_that_proves_nothing_changes_nothing(self, root: Principal) -> None:
        top, other = founder(), Signer("other.example", at=NOW)
        middle = Signer("middle.example", top, at=NOW, day=TODAY)
        forged = msgspec.structs.replace(middle.record(), url="https://liar.example")
        wrong = [
            (granted(middle), ()),
            (granted(middle), (middle.record(),)),
            (granted(middle), (middle.record(), other.record())),
            (granted(middle), (top.record(),)),
            (granted(middle), (forged, top.record())),
            (granted(middle), (middle.record(), top.record(), other.record())),
            (granted(other), (middle.record(), top.record())),
            (granted(middle, newcomer="other.example"), (middle.record(), top.record())),
            (granted(middle, key=other.x), (middle.record(), top.record())),
        ]
        for grant, chain in wrong:
            with pytest.raises(Conflict):
                join(root, middle, grant, *chain)
        assert not OverlayMembership.objects.exists()
        assert not OverlayFounder.objects.exists()

    def test_a_member_that_joins_again_keeps_its_sponsor_and_trusts_both_founders(self, root: Principal) -> None:
        one, two = founder(), Signer("second.example", at=NOW)
        join(root, one, granted(one), one.record())
        row = join(root, two, granted(two), two.record())
        assert row.sponsor == one.name
        assert OverlayFounder.objects.count() == 2

    def test_a_founder_of_a_known_name_with_another_key_is_refused(self, root: Principal) -> None:
        one, two = founder(), founder()
        join(root, one, granted(one), one.record())
        with pytest.raises(Conflict, match="another identity key"):
            join(root, two, granted(two), two.record())

    def test_only_administrators_decide(self, ann: Principal) -> None:
        one = founder()
        with pytest.raises(Forbidden):
            join(ann, one, granted(one), one.record())
        for decide in (overlay_found, overlay_leave):
            with pytest.raises(Forbidden):
                decide(principal=ann)


class TestSponsoring:
    """The quota."""

    def test_each_newcomer_has_a_number_of_its_own_and_a_repetition_the_same(self, root: Principal) -> None:
        overlay_found(principal=root)
        signers = [Signer(f"n{number}.example") for number in range(QUOTA_PER_DAY + 2)]
        grants = [_granted(signer) for signer in signers]
        assert len({(grant.sponsorship.day, grant.sponsorship.number) for grant in grants}) == len(signers)
        assert all(0 <= grant.sponsorship.number < QUOTA_PER_DAY for grant in grants)
        assert _granted(signers[0]) == grants[0]

    def test_a_founders_quota_ends_and_begins_again_with_the_next_day(self, root: Principal) -> None:
        overlay_found(principal=root)
        now = datetime(2027, 1, 1, 12, tzinfo=UTC)
        for number in range(FOUNDERS_QUOTA_PER_DAY):
            _granted(Signer(f"n{number}.example"), now)
        with pytest.raises(QuotaExceeded):
            _granted(Signer("late.example"), now)
        _granted(Signer("late.example"), now + timedelta(days=1))
        assert GrantedSponsorship.objects.count() == FOUNDERS_QUOTA_PER_DAY + 1

    def test_a_member_sponsors_as_many_as_others_admit(self, root: Principal) -> None:
        top = founder()
        join(root, top, granted(top), top.record())
        for number in range(QUOTA_PER_DAY):
            assert _granted(Signer(f"n{number}.example")).sponsorship.day == int(time.time() // 86_400)
        with pytest.raises(QuotaExceeded):
            _granted(Signer("late.example"))

    def test_who_takes_part_in_no_overlay_sponsors_nobody(self) -> None:
        with pytest.raises(NotFound):
            _granted(Signer("new.example"))

    def test_a_peer_cannot_have_another_key_sponsored_than_the_approved_one(self, root: Principal) -> None:
        overlay_found(principal=root)
        with pytest.raises(Conflict):
            sponsorship_grant(newcomer="new.example", key=Signer("new.example").x, fingerprint=founder().fingerprint)

    def test_a_name_that_was_sponsored_with_another_key_is_not_sponsored_again(self, root: Principal) -> None:
        overlay_found(principal=root)
        _granted(Signer("new.example"))
        with pytest.raises(Conflict, match="another identity key"):
            _granted(Signer("new.example"))


def test_the_keys_of_those_that_left_first_are_forgotten_beyond_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventing.membership.services.directory.REMEMBERED_MAX", 2)
    signers = [Signer(f"n{number}.example", at=NOW + number) for number in range(4)]
    directory_store([one.record() for one in signers], now=datetime.now(UTC))
    assert directory_forget() == 0, "who is in the directory is never forgotten"
    directory_store([], [one.name for one in signers[:3]], now=datetime.now(UTC))
    assert directory_forget() == 2
    assert [directory_identity(one.name) for one in signers] == [None, None, signers[2].x, signers[3].x]


def test_versions_grow_over_restarts_and_clocks_that_were_set_back(root: Principal) -> None:
    overlay_found(principal=root)
    first = own_record_issue(int(NOW) + 1000, NOW + 1000)
    again = own_record_issue(int(NOW) - 5000, NOW - 5000)
    assert again.version == first.version + 1


def test_the_directory_survives_with_sponsors_before_those_whom_they_sponsored() -> None:
    top = founder()
    middle = Signer("a-middle.example", top, at=NOW, day=TODAY)
    last = Signer("0-last.example", middle, at=NOW, day=TODAY)
    directory_store([one.record() for one in (last, middle, top)], now=datetime.now(UTC))
    assert [record.domain for record in directory_records()] == [top.name, middle.name, last.name]
    directory_store([], [middle.name], now=datetime.now(UTC))
    assert [record.domain for record in directory_records()] == [last.name, top.name]
    assert directory_identity(middle.name) == middle.x, "its key is remembered"


def test_leaving_forgets_founders_and_keeps_keys(root: Principal) -> None:
    top = founder()
    join(root, top, granted(top), top.record())
    overlay_leave(principal=root)
    assert not OverlayMembership.objects.exists()
    assert not DirectoryDomain.objects.filter(held=True).exists()
    assert directory_identity(top.name) == top.x


def named(name: str) -> override_settings:
    """This domain with another name and address."""
    return override_settings(HERALD=replace(config(), domain=name, public_url=f"https://{name}"))


def test_a_domain_whose_names_leave_no_room_in_its_record_is_told_before_it_founds_or_joins(root: Principal) -> None:
    long = f"{'x' * 60}.{'y' * 60}.{'z' * 60}.example"
    with named(long), pytest.raises(Conflict, match=f"bytes, of {RECORD_BYTES_MAX} at most"):
        overlay_found(principal=root)
    assert not OverlayMembership.objects.exists()
    with named("short.example"):
        require_record("sponsor.example")
        with pytest.raises(Conflict, match="shorter"):
            require_record(".".join(["s" * 60] * 4))
        assert not own_record_problem()


def test_a_record_never_grows_beyond_what_was_checked_at_joining(root: Principal) -> None:
    """With a key for requests beside the identity key, after a rotation."""
    overlay_found(principal=root)
    record = own_record_issue(int(time.time()), time.time())
    rotated = record_sign(record, own_identity(), [str(Signer("next.example").x)])
    most = record_bytes_most(record.domain, "", record.url, record.zone, record.operator)
    assert len(record_bytes(rotated)) <= most <= len(record_bytes(rotated)) + 20


def test_versions_grow_over_leaving_and_joining_again(root: Principal) -> None:
    """A second record of one version would prove that this domain equivocates."""
    versions = []
    for _ in range(3):
        overlay_found(principal=root)
        versions.append(OverlayMembership.objects.get().version)
        overlay_leave(principal=root)
    assert len(set(versions)) == 3
    assert versions == sorted(versions)


def test_a_chain_in_a_circle_leads_to_no_founder() -> None:
    one, two = Signer("one.example"), Signer("two.example")
    one.grant = sponsorship_sign(Sponsorship("two.example", "one.example", TODAY, 0), one.x, two.identity)
    two.grant = sponsorship_sign(Sponsorship("one.example", "two.example", TODAY, 0), two.x, one.identity)
    with pytest.raises(BadChain):
        chain_founder([one.record(), two.record(), one.record()], one.name, one.fingerprint)
    assert identity_of(record_sign(one.record(), one.identity, [])) == one.x


def _granted(signer: Signer, now: datetime | None = None) -> SponsorshipGrant:
    return sponsorship_grant(newcomer=signer.name, key=signer.x, fingerprint=signer.fingerprint, now=now)
