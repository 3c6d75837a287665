"""Every administrative event: the real state before, followed by it, is the real state after. See proving.py.

What gateways tell (load, sessions, refusals, lags) is in test_sampling.py. `test_every_type_is_proved` says what is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from admin_rp.catalogue import CATALOGUE
from admin_rp.snapshots import rp_snapshot
from eventing.access.services.keys import key_retire, key_rotate
from eventing.access.services.revocations import revocation_create, revocation_lift
from eventing.core.errors import Conflict
from eventing.core.events.cursors import Cursor
from eventing.core.ids import DOMAIN_ADMIN, OVERLAY_ADMIN
from eventing.intakes.services.intakes import intake_create, intake_delete, intake_renew, intake_update
from eventing.log import control
from eventing.membership.services.directory import directory_store
from eventing.membership.services.happenings import (
    AccusationsPaused,
    AccusationsResumed,
    DirectoryChanged,
    DomainSuspected,
    DomainSuspicionEnded,
    EquivocationProved,
    LinkDropped,
    LinkMade,
    OwnSuspicionRebutted,
    QueuesAreFull,
    RowsContradict,
    ScoreEffect,
    ScorePardoned,
    SelfSuspected,
    happenings_store,
    links_end,
)
from eventing.membership.services.joining import overlay_found, overlay_leave
from eventing.membership.services.map_changes import ROWS_MAX
from eventing.membership.services.samples import overlay_sample
from eventing.membership.services.sponsorships import sponsorship_grant
from eventing.operations.services.leases import leases_reap, leases_warn
from eventing.peering.ports import DirectoryRecord
from eventing.peering.rules.acquaintances import AcquaintanceEnd
from eventing.peering.rules.deliveries import Failure
from eventing.peering.rules.peers import Stance
from eventing.peering.services.acquaintances import acquaintance_begin, acquaintances_end
from eventing.peering.services.deliveries import backlog_noted, deliveries_report, delivery_failed, delivery_succeeded
from eventing.peering.services.domain_documents import document_accept
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.services.peer_operating import peer_renew, peer_retry
from eventing.peering.services.peers import (
    hello_received,
    peer_add,
    peer_approve,
    peer_change,
    peer_document_followed,
    peer_remove,
    peer_resume,
    peer_suspend,
)
from eventing.peering.services.quarantines import quarantine, quarantine_lift
from eventing.replication.operating import replay
from eventing.replication.services.replica_admissions import replica_admit
from eventing.replication.services.replica_links import links_offer
from eventing.replication.services.replica_statements import statements_accept
from eventing.replication.services.replicas import replica_leave
from eventing.replication.services.sealing import heads_checked, seal_own
from eventing.rps.rules.home_terms import record_packed
from eventing.rps.services.histories import histories_trim
from eventing.rps.services.pausing import rendezvous_point_pause, rendezvous_point_resume
from eventing.rps.services.rendezvous_points import (
    rendezvous_point_create,
    rendezvous_point_delete,
    rendezvous_point_renew,
    rendezvous_point_update,
)
from eventing.rps.services.trimming import history_trim
from eventing.subscriptions.push.rules.endpoint_states import EndpointStanding, EndpointState
from eventing.subscriptions.push.services.endpoints import endpoint_pause, endpoint_resume
from eventing.subscriptions.push.services.outcomes import StandingFound, standings_save
from eventing.subscriptions.services.subscriptions import (
    subscription_create,
    subscription_delete,
    subscription_renew,
    subscription_update,
)
from tests.admin_rp.proving import Proof
from tests.membership.signers import Signer
from tests.peering.other_domain import OtherDomain
from tests.replication.hand_overs import completed, hand_over_of
from tests.replication.homes import ANN, OPEN_TO_B, ROOT, Home, join_of, make, now_ms, peer
from tests.replication.own_logs import backup, publish, put_back

pytestmark = pytest.mark.usefixtures("planes")

LATER = datetime.now(UTC) + timedelta(days=400)
SAMPLED = {
    "load.sampled",
    "gateway.lost",
    "sessions.changed",
    "operations.refused",
    "subscription.lagged",
    "replica.progressed",
    "peers.traffic",
}
"""Proved in test_sampling.py."""

ELSEWHERE = {
    "readers.moving": "changes no state; its data is checked in tests/replication/test_reader_moves.py",
    "readers.move-ended": "as readers.moving",
    "routes.planned": "changes no state; its data is checked in tests/replication/test_routes.py",
    "reliability.missed": "as routes.planned",
    "reliability.recovered": "as routes.planned",
    "domain.draining": "changes no state; its data is checked in tests/operations/test_draining.py",
    "sessions.disconnected": "changes no state; its data is checked where sessions are disconnected",
}


def rps() -> list[str]:
    with Proof() as proof:
        row = rendezvous_point_create(principal=ANN, name="a", lease_s=3600)
    assert proof.types == ["rp.created"]
    with Proof(row.id) as proof:
        rendezvous_point_update(
            reference=row.id, principal=ANN, changes={"title": "Roof", "history": {"max_events": 7}}
        )
        rendezvous_point_renew(reference=row.id, principal=ANN, lease_s=7200)
        leases_warn(now=row.expires_at + timedelta(seconds=3500))
        rendezvous_point_pause(reference=row.id, principal=ANN, reason="maintenance")
        rendezvous_point_resume(reference=row.id, principal=ANN)
    seen = proof.types
    with Proof(row.id) as proof:
        rendezvous_point_delete(reference=row.id, principal=ANN)
    seen += proof.types
    ends = rendezvous_point_create(principal=ANN, lease_s=5)
    with Proof(ends.id) as proof:
        leases_reap(now=ends.expires_at + timedelta(seconds=1))
    return ["rp.created", *seen, *proof.types]


def creation_at_the_rp() -> list[str]:
    row = rendezvous_point_create(principal=ANN)
    from admin_rp.catalogue import EMPTY
    from tests.admin_rp.proving import CHECKED, events_after, followed, same

    cursor = f"{control.log_state(f'{row.id}.admin').epoch}:0"  # type: ignore[union-attr]
    told = events_after(f"{row.id}.admin", cursor)
    state = followed("rp", {"cursor": cursor, "state": dict(EMPTY["rp"])}, told)
    same("rp", state, rp_snapshot(row.id)["state"], {event["type"] for event in told})
    CHECKED.update(event["type"] for event in told)
    return [event["type"].removeprefix("io.herald.") for event in told]


def histories() -> list[str]:
    row = rendezvous_point_create(principal=ANN, history={"max_events": 5})
    publish(row.id, 9, bounds=row.bounds)
    with Proof(row.id) as proof:
        histories_trim(now=datetime.now(UTC) + timedelta(seconds=60))
    assert proof.told[f"{row.id}.admin"][0]["data"]["first"] == 5
    seen = proof.types
    epoch = control.log_state(row.id).epoch  # type: ignore[union-attr]
    with Proof(row.id) as proof:
        history_trim(reference=row.id, principal=ANN, before=f"{epoch}:7", reason="too much")
    assert proof.told[f"{row.id}.admin"][0]["data"]["by"] == "ann"
    saved = backup(row.id)
    publish(row.id, 2, bounds=row.bounds)
    seal_own(row.id)
    with Proof(row.id) as again:
        put_back(row.id, saved)
        assert heads_checked() == 1
    return [*seen, *proof.types, *again.types]


def subscriptions() -> list[str]:
    row = rendezvous_point_create(principal=ANN)
    with Proof(row.id) as proof:
        sub = subscription_create(reference=row.id, principal=ANN, lease_s=600)
        subscription_update(subscription_id=sub.id, principal=ANN, changes={"history": {"max_events": 3}})
        subscription_renew(subscription_id=sub.id, principal=ANN, lease_s=900)
        subscription_create(reference=row.id, principal=ANN, lease_s=5)
    seen = proof.types
    with Proof(row.id) as proof:
        subscription_delete(subscription_id=sub.id, principal=ANN)
        leases_reap(now=datetime.now(UTC) + timedelta(seconds=60))
    seen += proof.types
    with Proof() as proof:
        at_domain = subscription_create(reference=DOMAIN_ADMIN, principal=ROOT)
        subscription_delete(subscription_id=at_domain.id, principal=ROOT)
    return seen + proof.types


def replicas_at_the_home() -> list[str]:
    peer(OtherDomain())
    row = rendezvous_point_create(principal=ANN, policy=OPEN_TO_B, lease_s=3600)
    with Proof(row.id) as proof:
        replica_admit(join=join_of("b.test", row.id, lease_s=60, at_ms=now_ms()))
        replica_admit(join=join_of("b.test", row.id, lease_s=90, at_ms=now_ms() + 1))
    assert proof.types == ["replica.added", "replica.renewed"]
    with Proof(row.id) as ended:
        replica_admit(join=join_of("b.test", row.id, lease_s=0, at_ms=now_ms() + 2))
    replica_admit(join=join_of("b.test", row.id, lease_s=60, at_ms=now_ms() + 3))
    with Proof(row.id) as refused:
        rendezvous_point_update(reference=row.id, principal=ANN, changes={"policy": OPEN_TO_B[:1]})
    assert refused.types == ["rp.changed", "replica.removed"] or refused.types == ["replica.removed", "rp.changed"]
    return proof.types + ended.types


def replicas_elsewhere() -> list[str]:
    home = Home()
    peer(home)
    with Proof() as proof:
        make(home, admissions=[home.admission(), home.admission("c.test")])
    assert proof.types == ["rp.created", "replica.added"]
    with Proof(home.rp) as proof:
        taken = [home.admission(lasts_s=7200), home.admission("c.test", lasts_s=7200), home.admission("d.test")]
        assert statements_accept(home.rp, taken, carrier="a.test", domains=[]) == []
        gone = home.admission("d.test", publishes=False, issued_at_ms=now_ms() + 1)
        assert statements_accept(home.rp, [gone, home.descriptor(title="Rain")], carrier="a.test", domains=[]) == []
    assert {"lease.renewed", "replica.renewed", "replica.added", "replica.removed", "rp.changed"} <= set(proof.types)
    with Proof(home.rp) as proof:
        replica_leave(rp=home.rp, principal=ANN)
    return proof.types


def a_home_that_moves() -> list[str]:
    home, b = Home(), OtherDomain()
    peer(home)
    make(home, admissions=[home.admission(), home.admission("c.test")])
    document_accept(b.document(), fingerprint=b.fingerprint)
    payload = hand_over_of(home, b.name, b.fingerprint)
    with Proof(home.rp) as proof:
        moved = record_packed(completed(payload, home, b))
        assert statements_accept(home.rp, [], carrier="a.test", homes=moved) == []
    return proof.types


def peers() -> list[str]:
    b = OtherDomain()
    with Proof() as proof:
        hello_received(statement=b.document(), stance=Stance.PROPOSES, at_ms=now_ms())
        peer_approve(principal=ROOT, name="b.test", fingerprint=b.fingerprint)
        peer_change(principal=ROOT, name="b.test", gossip=False)
        b.add_key()
        peer_document_followed(b.document(), name="b.test")
        peer_suspend(principal=ROOT, name="b.test")
        peer_resume(principal=ROOT, name="b.test")
        peer_retry(principal=ROOT, name="b.test")
        peer_renew(principal=ROOT, name="b.test")
        hello_received(statement=b.document(), stance=Stance.LEAVES, at_ms=now_ms() + 1000)
    seen = proof.types
    c = OtherDomain("c.test")
    with Proof() as proof:
        peer_remove(principal=ROOT, name="b.test")
        peer_add(principal=ROOT, statement=c.document(), fingerprint=c.fingerprint)
    return seen + proof.types


def deliveries() -> list[str]:
    peer(OtherDomain())
    with Proof() as proof:
        backlog_noted(peer="b.test", backlog=7, oldest_at=None)
        delivery_failed(peer="b.test", failure=Failure.UNREACHABLE, detail="No answer.", jitter=0.5)
        assert deliveries_report() == 1
        assert deliveries_report() == 0, "told once"
    assert proof.types == ["peer.delivery"]
    with Proof() as proof:
        for _ in range(3):
            delivery_failed(peer="b.test", failure=Failure.REFUSED, detail="It does not know us.", jitter=0.5)
        deliveries_report()
    with Proof() as again:
        delivery_succeeded(peer="b.test")
        backlog_noted(peer="b.test", backlog=0, oldest_at=None)
        deliveries_report()
    assert proof.types == again.types == ["peer.delivery"], "one event, however often it changed"
    return proof.types


def trust() -> list[str]:
    with Proof() as proof:
        misbehaviour_note("forged", carrier="b.test", origin="c.test", rp="a" * 26, detail="A seal that nobody signed.")
        quarantine("c.test", "It told two stories.")
    with Proof() as lifted:
        quarantine_lift(principal=ROOT, origin="c.test")
    return proof.types + lifted.types


def acquaintances() -> list[str]:
    record = DirectoryRecord("https://d.test", "k" * 43)
    with Proof() as begun:
        assert acquaintance_begin(name="d.test", record=record, reason="Both take part in one rendezvous point.")
    with Proof() as ended:
        acquaintances_end(names=["d.test"], reason=AcquaintanceEnd.LINK)
    return begun.types + ended.types


def endpoints() -> list[str]:
    row = rendezvous_point_create(principal=ANN)
    stated = {"mode": "webhook", "url": "https://hooks.example.org/in"}
    with Proof(row.id) as proof:
        made = subscription_create(reference=row.id, principal=ANN, deliver=stated)
        active = EndpointStanding(EndpointState.ACTIVE, verified=True)
        standings_save([StandingFound(made.id, 1, active)])
        endpoint_pause(subscription_id=made.id, principal=ANN)
        endpoint_resume(subscription_id=made.id, principal=ANN)
    with Proof(row.id) as again:
        subscription_update(subscription_id=made.id, principal=ANN, changes={"deliver": {"mode": "pull"}})
        subscription_update(subscription_id=made.id, principal=ANN, changes={"deliver": stated})
    return [*proof.types, *again.types]


def intakes() -> list[str]:
    row = rendezvous_point_create(principal=ANN, name="a", lease_s=3600)
    with Proof(row.id) as proof:
        made, _ = intake_create(reference=row.id, principal=ANN, lease_s=60)
        intake_update(intake_id=made.id, principal=ANN, changes={"title": "builds"})
        intake_renew(intake_id=made.id, principal=ANN)
        intake_delete(intake_id=made.id, principal=ANN)
        intake_create(reference=row.id, principal=ANN, lease_s=1)
        leases_reap(now=datetime.now(UTC) + timedelta(seconds=1800))
    with Proof(row.id) as ended:
        last, _ = intake_create(reference=row.id, principal=ANN)
        rendezvous_point_delete(reference=row.id, principal=ANN)
    told = [one["data"] for one in ended.told[DOMAIN_ADMIN] if one["type"].endswith("intake.deleted")]
    assert [(one["intake"]["id"], one["reason"]) for one in told] == [(last.id, "rp-ended")]
    return proof.types


def replays() -> list[str]:
    home = Home()
    peer(home)
    make(home)
    links_offer()
    with Proof(home.rp) as proof:
        replay(principal=ROOT, name="a.test", reference=home.rp)
    return proof.types


def keys_and_credentials() -> list[str]:
    with Proof() as proof:
        made = key_rotate(principal=ROOT)
        key_retire(principal=ROOT, kid=made.kid, reason="lost")
        revoked = revocation_create(principal=ROOT, kind="subject", value="eve", reason="left us")
        revocation_lift(principal=ROOT, revocation_id=str(revoked.row.id))
    return proof.types


def overlay() -> list[str]:
    other = OtherDomain("b.test")
    with Proof() as proof:
        overlay_found(principal=ROOT)
        sponsorship_grant(newcomer=other.name, key=other.keys[0]["x"], fingerprint=other.fingerprint)
        with pytest.raises(Conflict):
            sponsorship_grant(newcomer="c.test", key=other.keys[0]["x"], fingerprint="f" * 43)
        happenings_store(
            [
                DirectoryChanged(admitted=("b.test",)),
                LinkMade("b.test", True, False, "chosen"),
                LinkMade("c.test", True, False, "rotated", "b.test"),
                LinkDropped("b.test", "rotated", "c.test"),
                LinkDropped("c.test", "silent"),
                EquivocationProved("c.test", "It signed two records."),
                SelfSuspected(3, 5),
                DomainSuspected("d.test", ("b.test", "c.test")),
                DomainSuspicionEnded("d.test", "rebutted"),
                OwnSuspicionRebutted(("b.test",)),
                AccusationsPaused(4, 10),
                AccusationsResumed(),
                RowsContradict("d.test", "zone-load", 1_800_000_000),
                ScoreEffect("b.test", "", "condemned", -9.5, "It forwards nothing.", 60.0),
                ScorePardoned("b.test", "", "condemned", -1.0),
                QueuesAreFull(3, 4),
                DirectoryChanged(expired=("c.test",)),
            ]
        )
        overlay_leave(principal=ROOT)
    return proof.types


def the_map() -> list[str]:
    top = Signer("founder.example", at=time.time())
    others = [Signer(f"d{number:03}.example", top, at=time.time(), number=number) for number in range(ROWS_MAX + 20)]
    with Proof() as proof:
        overlay_found(principal=ROOT)
        directory_store([one.record() for one in (top, *others)], now=datetime.now(UTC))
    assert [event["type"] for event in proof.told[OVERLAY_ADMIN]].count("io.herald.overlay.map.changed") == 3
    seen = proof.types
    with Proof() as proof:
        moved = others[0]
        directory_store([moved.record(int(time.time()) + 1, zone="eu-west")], [others[1].name], now=datetime.now(UTC))
        happenings_store(
            [
                LinkMade(moved.name, True, False, "chosen"),
                LinkMade(top.name, False, True, "anchor"),
                LinkDropped(top.name, "transport"),
                EquivocationProved(others[2].name, "It signed two records."),
            ]
        )
        assert overlay_sample() == 1
        links_end("stopped")
        overlay_leave(principal=ROOT)
    return [*seen, *proof.types]


SCENARIOS: list[Callable[[], list[str]]] = [
    rps,
    creation_at_the_rp,
    histories,
    subscriptions,
    replicas_at_the_home,
    replicas_elsewhere,
    a_home_that_moves,
    peers,
    deliveries,
    trust,
    acquaintances,
    endpoints,
    intakes,
    replays,
    keys_and_credentials,
    overlay,
    the_map,
]
EXPECTED: dict[str, set[str]] = {
    "rps": {
        "rp.created",
        "rp.changed",
        "rp.deleted",
        "lease.renewed",
        "lease.warned",
        "lease.expired",
        "rp.paused",
        "rp.resumed",
    },
    "creation_at_the_rp": {"rp.created", "lease.granted"},
    "histories": {"history.trimmed", "epoch.renewed"},
    "subscriptions": {
        "subscription.created",
        "subscription.changed",
        "subscription.deleted",
        "lease.granted",
        "lease.renewed",
        "lease.expired",
    },
    "replicas_at_the_home": {"replica.added", "replica.renewed", "replica.removed"},
    "a_home_that_moves": {"rp.moved"},
    "replicas_elsewhere": {"replica.removed", "rp.deleted"},
    "peers": {
        *(
            f"peer.{what}"
            for what in ("asked", "active", "changed", "rekeyed", "suspended", "retried", "proposed", "removed")
        ),
        "peer.declined",
        "lease.renewed",
    },
    "deliveries": {"peer.delivery"},
    "trust": {"misbehaviour.noted", "origin.quarantined", "origin.released"},
    "acquaintances": {"acquaintance.begun", "acquaintance.ended"},
    "endpoints": {"endpoint.changed", "subscription.created", "subscription.changed"},
    "intakes": {
        "intake.created",
        "intake.changed",
        "intake.deleted",
        "lease.granted",
        "lease.renewed",
        "lease.expired",
    },
    "replays": {"peer.replayed"},
    "overlay": {
        f"overlay.{what}"
        for what in (
            "joined",
            "left",
            "link.made",
            "link.dropped",
            "directory.changed",
            "sponsorship.granted",
            "sponsorship.refused",
            "equivocation",
            "self-suspected",
            "suspected",
            "suspicion.ended",
            "suspicion.rebutted",
            "accusations.paused",
            "accusations.resumed",
            "rows.contradict",
            "score.effect",
            "score.pardoned",
            "queues-full",
        )
    },
    "the_map": {"overlay.map.changed", "overlay.map.cleared", "overlay.sampled"},
    "keys_and_credentials": {"key.rotated", "key.retired", "revocation.made", "revocation.lifted"},
}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_the_state_before_and_the_events_are_the_state_after(scenario: Callable[[], list[str]]) -> None:
    assert set(scenario()) >= EXPECTED[scenario.__name__]


def test_every_type_is_proved() -> None:
    """By a scenario here, in test_sampling.py, or where the module that tells it is tested (BY_OTHERS)."""
    here = {kind for kinds in EXPECTED.values() for kind in kinds}
    missing = {kind.removeprefix("io.herald.") for kind in CATALOGUE} - here - SAMPLED - set(ELSEWHERE) - BY_OTHERS
    assert not missing


BY_OTHERS: set[str] = {
    "delivery.given-up",
    *(f"alarm.{what}" for what in ("raised", "changed", "acknowledged", "muted", "unmuted", "cleared")),
    "watch.changed",
    "routes.switched",
    *(f"placement.{what}" for what in ("decided", "changed", "bounded", "invitations.bounded", "invitation.answered")),
    *(f"report.run.{what}" for what in ("queued", "running", "done", "failed", "superseded")),
}


def test_a_snapshot_of_what_is_not_there_is_empty() -> None:
    state: dict[str, Any] = rp_snapshot("a" * 26)["state"]
    assert (state["rp"], state["subscriptions"], state["replicas"]) == (None, {}, {})
    assert Cursor.parse(rp_snapshot("a" * 26)["cursor"]).offset == 0
