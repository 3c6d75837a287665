"""The lying peer's lies break what they are about and nothing else: otherwise the scenarios would prove less than they say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from demo.harness.network import Network
from eventing.core import signing
from eventing.core.events.feeds import Feed
from eventing.core.seals import seals
from eventing.peering.rules import domain_documents
from eventing.peering.wire import messages as wire
from eventing.peering.wire import signatures
from tests.scenarios import lying_peer
from tests.scenarios.lying_peer import LyingPeer

RP = "a" * 26


@pytest.fixture(scope="module")
def liar() -> Iterator[LyingPeer]:
    alone: Any = SimpleNamespace(guests={}, __getitem__=None)
    made = LyingPeer(cast(Network, alone))
    yield made
    made.close()


@pytest.fixture
def run(liar: LyingPeer) -> wire.SealedRun:
    return liar.run_made(RP, 1, ["one", "two", "three"])


def truths(run: wire.SealedRun, key: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether the events are the sealed ones, and whether the key signed the seal."""
    seal = seals.seal_read(run.seal)
    events = seals.run_verified(seal, run.events, run.leaves)
    return events, seals.signed_by(signing.SEAL, run.seal, seal.sealed_at_ms, {key["kid"]: key})


def test_its_own_run_is_true(liar: LyingPeer, run: wire.SealedRun) -> None:
    assert truths(run, liar.key) == (True, True)
    assert seals.seal_read(run.seal).feed == Feed("liar.test", "liarepch")


@pytest.mark.parametrize("lie", [lying_peer.tampered, lying_peer.dropped, lying_peer.reordered])
def test_altered_events_are_not_the_sealed_ones(
    liar: LyingPeer, run: wire.SealedRun, lie: Callable[[wire.SealedRun], wire.SealedRun]
) -> None:
    assert truths(lie(run), liar.key) == (False, True)


def test_withheld_events_are_still_vouched_for(liar: LyingPeer, run: wire.SealedRun) -> None:
    assert truths(lying_peer.withheld(run), liar.key) == (True, True)
    assert len(lying_peer.withheld(run).events) == 1


def test_a_forged_run_holds_together_and_is_signed_by_nobody_of_its_origin(
    liar: LyingPeer, run: wire.SealedRun
) -> None:
    assert truths(lying_peer.forged(run, lying_peer.new_key()), liar.key) == (True, False)


def test_two_stories_are_proof_of_equivocation(liar: LyingPeer, run: wire.SealedRun) -> None:
    other = liar.run_made(RP, 1, ["one", "two", "four"])
    assert truths(other, liar.key) == (True, True)
    assert seals.equivocate(run.seal, other.seal)
    following = liar.run_made(RP, 4, ["more"], previous=run.seal)
    assert seals.chained(seals.seal_read(following.seal), run.seal)
    assert not seals.equivocate(run.seal, following.seal)


def test_its_answers_are_signed_and_its_vector_is_what_it_was_sent_or_what_it_claims(
    liar: LyingPeer, run: wire.SealedRun
) -> None:
    sender = lying_peer.new_key()
    body = wire.encode(wire.ExchangeRequest(wire.VERSION, [wire.RpPart(RP, {}, [run])]))
    asked = signatures.request_signed(
        f"{liar.url}/federation/v1/exchange",
        body,
        origin="a.test",
        destination=liar.domain,
        key=sender,
        nonce="n" * 16,
        now=time.time(),
    )
    document = domain_documents.read(liar.document)
    for expected in (3, 9):
        liar.claims = {RP: {seals.seal_read(run.seal).feed.key: 9}} if expected == 9 else {}
        got = liar._http.post(asked.url, content=body, headers=asked.headers)
        answer = signatures.SignedAnswer(got.status_code, signatures.fields_read(got.headers.items()), asked)
        signatures.answer_verified(answer, got.content, origin=liar.domain, jwks=document.jwks, now=time.time())
        assert list(wire.answer(got.content).parts[0].have.values()) == [expected]
    assert [msgspec.structs.asdict(kept)["events"] for kept in liar.runs(RP)] == [run.events]
