"""What the process of the overlay knows of others, and shows: rows that it verified, figures with their coverage, scores with their
effects, and the same after a restart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from demo.harness.servers import wait_for
from eventing.conf import config
from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.principals import Principal
from eventing.membership.models import OverlayLink
from eventing.membership.process import upkeep
from eventing.membership.rules.observations import LINK, DeedObserved
from eventing.membership.rules.rows import row_sign, row_verified
from eventing.membership.selectors.picture import known_now, picture_looked_at
from eventing.membership.services.joining import overlay_found
from eventing.membership.services.observations import observed
from eventing.membership.services.own_record import own_identity
from eventing.overlay.gossip_messages import GossipMessage, GossipPart
from eventing.overlay.gossip_object import SignedRow
from eventing.overlay.load_rows import DomainLoad, payload_of
from eventing.store.overlay_pictures import row_versions_stored
from tests.membership.signers import Signer
from tests.membership.test_running import WITHIN_S, Running, exchange, link_with, member
from tests.planes import events_at

SECOND = 1.0


@pytest.fixture
def start(planes: None, root: Principal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Running]]:
    """Founds an overlay, and starts runs that end with the test. Pictures are made every second."""
    monkeypatch.setattr("eventing.membership.process.picture.PICTURE_S", SECOND)
    monkeypatch.setattr("eventing.membership.process.picture.SEEN_S", SECOND)
    overlay_found(principal=root)
    made: list[Running] = []

    def begin() -> Running:
        made.append(Running())
        return made[-1].start()

    yield begin
    for one in made:
        one.stop()


def row_of(owner: Signer, load: DomainLoad, *, at: float | None = None) -> SignedRow:
    now = time.time() if at is None else at
    return row_sign("load", SignedRow(owner.name, int(now), int(now) + 900, payload_of(load)), owner.identity)


def gossip(sender: Signer, *rows: SignedRow, name: str = "load") -> None:
    exchange(sender, GossipMessage((GossipPart(name, rows=rows),)))


def shown() -> Any:
    picture = picture_looked_at()
    assert picture is not None
    return picture


def test_a_row_is_shown_with_its_coverage_beside_the_own_load(start: Callable[[], Running]) -> None:
    start()
    new = member()
    link_with(new)
    gossip(new, row_of(new, DomainLoad(sessions=7, backlog=5)))
    wait_for(lambda: shown().whole.reporting.value == 2, WITHIN_S, about="the own load, and the row")
    whole = shown().whole
    assert (whole.known, whole.live, whole.reporting.coverage) == (2, 2, 1.0)
    assert (whole.sums.sessions.value, whole.maxima.sessions.value, whole.sums.backlog.value) == (7, 7, 5)
    assert shown().load.sessions == 0
    wait_for(lambda: new.name in known_now().seen.loads, WITHIN_S)
    assert known_now().seen.loads[new.name].sessions == 7


def test_a_row_that_its_owner_did_not_sign_counts_for_nothing(start: Callable[[], Running]) -> None:
    start()
    new, other = member(), member("other.example")
    link_with(new)
    link_with(other)
    forged = row_sign(
        "load", SignedRow(new.name, int(time.time()), int(time.time()) + 900, payload_of(DomainLoad(9))), other.identity
    )
    moved = msgspec.structs.replace(row_of(new, DomainLoad(9)), expires_s=int(time.time()) + 5000)
    gossip(other, forged, moved)
    gossip(other, row_of(other, DomainLoad(1)))
    wait_for(lambda: shown().whole.reporting.value == 2, WITHIN_S)
    assert shown().whole.sums.sessions.value == 1


def test_rows_of_one_version_that_contradict_each_other_are_told_and_count_for_nothing(
    start: Callable[[], Running],
) -> None:
    start()
    new = member()
    link_with(new)
    at = time.time()
    gossip(new, row_of(new, DomainLoad(1), at=at))
    gossip(new, row_of(new, DomainLoad(2), at=at))
    told = wait_for(
        lambda: [one for one in events_at(DOMAIN_ADMIN) if one["type"].endswith("rows.contradict")], WITHIN_S
    )
    assert told[0]["data"] == {"domain": new.name, "object": "load", "version": int(at)}
    assert shown().whole.sums.sessions.value == 0


def test_the_own_row_is_signed_by_the_identity_key_and_offered(start: Callable[[], Running]) -> None:
    start()
    new = member()
    link_with(new)
    wait_for(lambda: "load" in row_versions_stored(), WITHIN_S)
    exchange(new, GossipMessage((GossipPart("load", wants=((config().domain, 0),)),)))
    found = wait_for(lambda: own_rows(exchange(new)), WITHIN_S, every_s=0.1)
    assert row_verified("load", found[0], str(own_identity()["x"]))


def own_rows(messages: list[Any]) -> list[SignedRow]:
    gossiped = [part for one in messages if type(one) is GossipMessage for part in one.parts]
    return [row for part in gossiped for row in part.rows if row.owner == config().domain]


def test_a_score_has_its_effect_and_both_are_told_with_the_reason(start: Callable[[], Running]) -> None:
    start()
    new = member()
    link_with(new)
    observed([DeedObserved(LINK, new.name, "INVALID", 4)])
    wait_for(lambda: not OverlayLink.objects.get(peer=new.name).up, WITHIN_S)

    def effects() -> list[dict[str, Any]]:  # appended right after the commit that ended the link
        found = [one["data"] for one in events_at(DOMAIN_ADMIN) if one["type"].startswith("io.herald.overlay.score")]
        return found if len(found) >= 3 else []

    told = wait_for(effects, WITHIN_S)
    assert [one["effect"] for one in told] == ["demoted", "not-chosen", "condemned"]
    assert {one["reason"] for one in told} == {"sent what it could have found invalid"}
    assert OverlayLink.objects.get(peer=new.name).reason == "quarantine"
    wait_for(lambda: known_now().scores_of(new.name), WITHIN_S)
    (score,) = known_now().scores_of(new.name)
    assert (score.effects, score.held_back_s > 0) == (["demoted", "not-chosen", "condemned"], True)


def test_a_restart_takes_up_rows_and_scores(start: Callable[[], Running], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "FIRST_LOAD_S", 0.0)
    first = start()
    new = member()
    link_with(new)
    gossip(new, row_of(new, DomainLoad(7)))
    observed([DeedObserved(LINK, new.name, "INVALID", 2)])
    wait_for(lambda: known_now().scores_of(new.name) and shown().whole.sums.sessions.value == 7, WITHIN_S)
    wait_for(lambda: "load" in row_versions_stored(), WITHIN_S)
    first.stop()
    versions = row_versions_stored()
    start()
    wait_for(lambda: picture_looked_at() and shown().whole.sums.sessions.value == 7, WITHIN_S)
    assert "not-chosen" in known_now().scores_of(new.name)[0].effects
    assert row_versions_stored()["load"] >= versions["load"]


def test_a_run_signs_nothing_in_the_second_in_which_it_began(
    start: Callable[[], Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So one that lost all state does not contradict the one before it."""
    began = int(time.time())
    monkeypatch.setattr(upkeep, "FIRST_LOAD_S", 0.0)
    start()
    wait_for(lambda: "load" in row_versions_stored(), WITHIN_S)
    assert row_versions_stored()["load"] > began
