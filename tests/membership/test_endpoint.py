"""Overlay requests of other domains: who is admitted, by which proof, and what becomes of the messages."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from eventing.conf import config
from eventing.core.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from eventing.core.principals import Principal
from eventing.membership.rules.records import record_bytes
from eventing.membership.selectors.directory import chain_of, directory_keys
from eventing.membership.services.directory import directory_store
from eventing.membership.services.joining import overlay_found
from eventing.membership.services.sponsorships import sponsorship_grant
from eventing.membership.wire import codec, messages
from eventing.overlay.directory_messages import Records
from eventing.overlay.directory_records import EXPIRY_S, DomainRecord
from eventing.overlay.links import Neighbor, NeighborReply
from eventing.peering.wire import endpoints, signatures
from eventing.peering.wire.endpoints import OVERLAY
from eventing.peering.wire.refusals import NEWCOMERS, OVERLAY_REQUESTS
from eventing.store.overlay_queues import overlay_lease, overlay_outbox_put, overlay_take
from tests.membership.signers import Signer
from tests.peering.played_domain import new_key

NOW = time.time()


@pytest.fixture
def founded(planes: None, root: Principal) -> None:
    """This domain has founded an overlay, and a process runs it."""
    overlay_found(principal=root)
    overlay_lease("test", 60_000).acquire()


def sponsored(name: str = "new.example") -> Signer:
    """A domain that this one sponsored."""
    signer = Signer(name, at=NOW)
    signer.grant = sponsorship_grant(newcomer=name, key=signer.x, fingerprint=signer.fingerprint)
    return signer


def chain(signer: Signer, **members: Any) -> list[DomainRecord]:
    return [signer.record(**members), *chain_of(config().domain)]


def sent(
    signer: Signer,
    given: Sequence[Any] = (),
    records: Sequence[DomainRecord] = (),
    *,
    key: dict[str, Any] | None = None,
) -> list[Any]:
    """What the domain is answered."""
    body = messages.request_encode([codec.message_bytes(one) for one in given], records)
    return answered(signed(signer, body, key), body)


def signed(signer: Signer, body: bytes, key: dict[str, Any] | None = None) -> signatures.SignedRequest:
    made = signatures.request_signed(
        f"{config().base_url}{OVERLAY}",
        body,
        origin=signer.name,
        destination=config().domain,
        key=key or signer.identity,
        nonce=secrets.token_urlsafe(18),
        now=time.time(),
    )
    return endpoints.request_read("POST", OVERLAY, [*made.headers.items(), ("host", made.url.split("/")[2])])


def answered(request: signatures.SignedRequest, body: bytes) -> list[Any]:
    answer = endpoints.serve(endpoints.admit(request, OVERLAY), body)
    return codec.decode(messages.answer_read(answer).messages)


def inbox() -> list[tuple[str, list[Any]]]:
    return [(sender, codec.decode_own(data)) for sender, data in overlay_take("test", 0.1)]


def refused_after(do: Callable[[], object]) -> int:
    """How many requests are looked at before the rate is exceeded; on a slow machine it fills up meanwhile."""
    for count in range(1000):
        try:
            do()
        except RateLimited:
            return count
        except Forbidden:
            continue
    raise AssertionError("no rate holds")


def in_directory(*signers: Signer) -> None:
    directory_store([signer.record() for signer in signers], now=datetime.now(UTC))


@pytest.mark.usefixtures("founded")
class TestAdmission:
    """Which domains are heard."""

    def test_a_domain_that_presents_its_sponsorship_is_heard_and_its_records_come_first(self) -> None:
        new = sponsored()
        assert sent(new, [Neighbor()], chain(new)) == []
        ((sender, received),) = inbox()
        assert sender == new.name
        assert isinstance(received[0], Records)
        assert [record.domain for record in received[0].records] == [config().domain, new.name], "sponsors first"
        assert received[1:] == [Neighbor()]

    def test_a_domain_of_the_directory_is_heard_without_presenting_anything(self) -> None:
        new = sponsored()
        in_directory(new)
        sent(new, [Neighbor()])
        assert inbox() == [(new.name, [Neighbor()])]

    def test_a_stranger_without_records_is_refused(self) -> None:
        with pytest.raises(Forbidden, match="Present its record"):
            sent(Signer("stranger.example", at=NOW), [Neighbor()])

    def test_a_domain_that_sponsors_itself_is_refused(self) -> None:
        root = Signer("fake.example", at=NOW)
        new = Signer("new.example", root, at=NOW)
        for records in ([new.record(), root.record()], [new.record()], [root.record()]):
            with pytest.raises(Forbidden):
                sent(new if records[0].domain == new.name else root, [Neighbor()], records)
        assert inbox() == []

    def test_a_sponsorship_of_another_is_of_no_use(self) -> None:
        honest, thief = sponsored(), Signer("thief.example", at=NOW)
        thief.grant = honest.grant
        with pytest.raises(Forbidden, match="not genuine"):
            sent(thief, [Neighbor()], chain(thief))

    def test_a_known_name_with_another_identity_key_is_refused(self) -> None:
        honest = sponsored()
        in_directory(honest)
        impostor = Signer(honest.name, at=NOW)
        impostor.grant = honest.grant
        with pytest.raises((Forbidden, Unauthenticated)):
            sent(impostor, [Neighbor()], chain(impostor))

    def test_a_request_that_another_key_signed_is_refused_whatever_records_it_presents(self) -> None:
        honest = sponsored()
        with pytest.raises(Unauthenticated):
            sent(honest, [Neighbor()], chain(honest), key=new_key())

    def test_a_record_of_the_past_or_the_future_introduces_nobody(self) -> None:
        new = sponsored()
        now = time.time()  # not NOW: the clock has gone on since this module was imported
        for at in (now - EXPIRY_S - 1, now + 1000):
            new.at = at
            with pytest.raises(Forbidden, match="clocks"):
                sent(new, [Neighbor()], chain(new))

    def test_a_new_key_of_a_known_domain_is_good_once_its_record_is_presented(self) -> None:
        new, later = sponsored(), new_key()
        in_directory(new)
        with pytest.raises(Forbidden):
            sent(new, [Neighbor()], key=later)
        sent(new, [Neighbor()], chain(new, signing=(later["x"],)), key=later)

    def test_keys_of_a_rotated_record_are_read_at_once(self) -> None:
        new, later = sponsored(), new_key()
        in_directory(new)
        assert list(directory_keys(new.name)) == [new.fingerprint]
        directory_store([new.record(int(NOW) + 1, signing=(later["x"],))], now=datetime.now(UTC))
        sent(new, [Neighbor()], key=later)

    def test_a_request_is_heard_once(self) -> None:
        new = sponsored()
        in_directory(new)
        body = messages.request_encode([])
        request = signed(new, body)
        answered(request, body)
        with pytest.raises(Conflict):
            answered(request, body)

    def test_a_domain_has_a_rate_of_its_own(self) -> None:
        one, other = sponsored("one.example"), sponsored("other.example")
        in_directory(one, other)
        assert refused_after(lambda: sent(one)) >= OVERLAY_REQUESTS.burst
        sent(other)

    def test_strangers_are_looked_at_a_few_times_a_second_only(self) -> None:
        stranger = Signer("stranger.example", at=NOW)
        assert refused_after(lambda: sent(stranger, [], [stranger.record()])) >= NEWCOMERS.burst

    def test_where_only_peers_are_heard_the_directory_is_not_asked(self, configure: Callable[..., None]) -> None:
        new = sponsored()
        in_directory(new)
        configure(overlay="peers")
        with pytest.raises(Forbidden, match="peers only"):
            sent(new, [Neighbor()], chain(new))


@pytest.mark.usefixtures("founded")
class TestMessages:
    """What becomes of the messages."""

    def test_messages_that_wait_for_the_caller_are_the_answer_and_are_sent_once(self) -> None:
        new = sponsored()
        in_directory(new)
        overlay_outbox_put(new.name, [codec.message_bytes(NeighborReply(True))])
        assert sent(new) == [NeighborReply(True)]
        assert sent(new) == []

    def test_messages_beyond_their_bounds_are_refused_before_the_process_of_the_overlay_sees_them(self) -> None:
        new = sponsored()
        in_directory(new)
        for bad in (b"\x91\x91\xa4want", codec.encode([Neighbor()] * 300), b"\xc1"):
            body = b"\x92\x01" + bad
            with pytest.raises(InvalidRequest):
                answered(signed(new, body), body)
        assert inbox() == []

    def test_without_a_process_that_runs_the_overlay_the_caller_is_asked_to_come_later(self) -> None:
        new = sponsored()
        in_directory(new)
        overlay_lease("test", 60_000).release()
        with pytest.raises(Unavailable):
            sent(new)


@pytest.mark.usefixtures("planes")
def test_a_domain_that_takes_part_in_no_overlay_answers_as_one_that_has_never_heard_of_it() -> None:
    stranger = Signer("stranger.example", at=NOW)
    with pytest.raises(NotFound):
        sent(stranger, [Neighbor()], [stranger.record()])


def test_a_record_is_stored_as_it_was_signed(founded: None) -> None:
    new = sponsored()
    in_directory(new)
    (found, *above) = chain_of(new.name)
    assert record_bytes(found) == record_bytes(new.record())
    assert [record.domain for record in above] == [config().domain]
