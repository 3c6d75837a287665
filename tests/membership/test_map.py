"""The map at `overlay.admin`: what is an event of it and what is none, samples, and who may read it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from admin_rp.snapshots import overlay_snapshot
from eventing.core.ids import DOMAIN_ADMIN, OVERLAY_ADMIN
from eventing.core.principals import Principal
from eventing.membership.services import samples
from eventing.membership.services.directory import directory_store
from eventing.membership.services.happenings import LinkMade, happenings_store
from eventing.membership.services.joining import overlay_found, overlay_leave
from eventing.membership.services.samples import INTERVAL_S_MAX, overlay_sample, percentile
from eventing.membership.shapes import (
    OverlayFigure,
    OverlayFigures,
    OverlayHealth,
    OverlayLoadFigures,
    OverlayPicture,
    OverlaySuspicion,
    SeenDomains,
)
from eventing.rps.services.histories import histories_trim, logs_sweep
from eventing.store.overlay_pictures import picture_store, seen_store
from eventing.store.overlay_samples import overlay_sample_store
from eventing.store.peer_state import request_noted, traffic_sent_count
from eventing.subscriptions.services.subscriptions import subscription_create, subscription_delete
from tests.membership.signers import Signer
from tests.peering.other_domain import OtherDomain
from tests.planes import events_at, types_at
from tests.replication.shared_rp import peer_made

pytestmark = pytest.mark.usefixtures("planes")
NOW = time.time()


def stored(*signers: Signer, left: tuple[str, ...] = (), **members: Any) -> None:
    directory_store([one.record(**members) for one in signers], left, now=datetime.now(UTC))


def told(kind: str = "map.changed") -> list[dict[str, Any]]:
    """Data of the events of a kind at `overlay.admin`."""
    return [event["data"] for event in events_at(OVERLAY_ADMIN) if event["type"] == f"io.herald.overlay.{kind}"]


def figure(value: int) -> OverlayFigure:
    return OverlayFigure(value=value, coverage=0.5, oldest_s=7, disputed=value == 13)


def figures(zone: str | None, known: int, sessions: int) -> OverlayFigures:
    load = dict.fromkeys(OverlayLoadFigures.__struct_fields__, figure(1))
    sums = OverlayLoadFigures(**{**load, "sessions": figure(sessions)})
    maxima = OverlayLoadFigures(**load)
    return OverlayFigures(zone=zone, known=known, live=known - 1, reporting=figure(known), sums=sums, maxima=maxima)


def shown(monkeypatch: pytest.MonkeyPatch, rtt_ms: dict[str, float]) -> None:
    """What a process of the overlay shows."""
    monkeypatch.setattr(samples, "overlay_running", lambda: True)
    health = OverlayHealth(state="well", wait_factor=1, observed=10, silent=0, accused_by=[])
    suspicion = OverlaySuspicion(domain="slow.example", since="2026-01-01T00:00:00.000000Z", accusers=["m.example"])
    zones = [figures("eu", 3, 13), figures("", 5, 4)]
    picture = OverlayPicture(
        at="2026-01-01T00:00:00.000000Z",
        whole=figures(None, 8, 17),
        zones=zones,
        suspected=[suspicion],
        health=health,
        scores=[],
        load=None,
    )
    picture_store(msgspec.msgpack.encode(picture), 60)
    seen_store(msgspec.msgpack.encode(SeenDomains({}, rtt_ms)), 60)


def test_a_domain_is_told_when_it_appears_changes_or_leaves_and_not_when_it_renews_its_record() -> None:
    one, two = Signer("one.example", at=NOW), Signer("two.example", at=NOW)
    stored(one, two)
    stored(one, two, version=int(NOW) + 5)
    assert [len(data["domains"]) for data in told()] == [2]
    stored(one, version=int(NOW) + 6, zone="eu-2")
    assert [row["zone"] for row in told()[1]["domains"]] == ["eu-2"]
    stored(left=("two.example", "unknown.example"))
    assert told()[2] == {"domains": [], "left": ["two.example"], "links": [], "ended": []}
    stored(left=("two.example",))
    assert len(told()) == 3
    assert set(overlay_snapshot()["state"]["domains"]) == {"one.example"}


def test_a_domain_of_which_only_the_key_is_remembered_is_not_on_the_map() -> None:
    directory_store([Signer("past.example", at=NOW).record()], now=datetime.now(UTC), held=False)
    assert told() == []
    assert overlay_snapshot()["state"]["domains"] == {}


def test_a_sample_has_links_zones_with_their_coverage_and_what_was_counted_since_the_last_one(
    root: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlay_found(principal=root)
    peer_made(OtherDomain("b.test"))
    happenings_store([LinkMade("b.test", True, False, "chosen"), LinkMade("c.test", False, False, "accepted")])
    shown(monkeypatch, {"b.test": 12.5, "elsewhere.test": 900.0})
    request_noted("b.test", {"events": 100, "copies": 5}, supplied=True)
    now = datetime.now(UTC)
    overlay_sample(now=now)
    request_noted("b.test", {"events": 40, "copies": 10}, supplied=True)
    traffic_sent_count("b.test", 3)
    peer_made(OtherDomain("late.test"))
    request_noted("late.test", {"events": 1_000}, supplied=True)
    overlay_sample(now=now + timedelta(seconds=60))
    first, second = told("sampled")
    assert (first["interval_s"], first["events"], first["copies"]) == (0, 0, 0)
    assert (second["interval_s"], second["events"], second["copies"], second["sent"]) == (60, 40, 10, 3)
    assert (second["chosen"], second["accepted"], second["rtt_p50_ms"]) == (1, 1, 12.5)
    assert second["links"] == [{"peer": "b.test", "rtt_ms": 12.5}, {"peer": "c.test", "rtt_ms": None}]
    assert (second["suspected"], second["suspected_count"], second["health"]) == (["slow.example"], 1, "well")
    assert [(one["zone"], one["known"], one["coverage"], one["disputed"]) for one in second["zones"]] == [
        ("", 5, 0.5, False),
        ("eu", 3, 0.5, True),
    ]
    assert overlay_snapshot()["state"]["figures"] == second


def test_a_sample_says_that_no_process_runs_and_after_a_pause_counts_nothing(
    root: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlay_found(principal=root)
    peer_made(OtherDomain("b.test"))
    shown(monkeypatch, {})
    now = datetime.now(UTC)
    overlay_sample(now=now)
    request_noted("b.test", {"events": 7}, supplied=True)
    monkeypatch.setattr(samples, "overlay_running", lambda: False)
    overlay_sample(now=now + timedelta(seconds=INTERVAL_S_MAX + 1))
    last = told("sampled")[-1]
    assert (last["running"], last["live"], last["health"], last["zones"]) == (False, None, None, [])
    assert (last["interval_s"], last["events"]) == (0, 0)


def test_a_sample_of_other_software_is_none(root: Principal) -> None:
    overlay_found(principal=root)
    overlay_sample_store(b'{"figures": {}}')
    assert overlay_snapshot()["state"]["figures"] is None
    assert overlay_sample() == 1


def test_who_takes_part_in_no_overlay_has_an_empty_map_and_no_samples(root: Principal) -> None:
    overlay_found(principal=root)
    assert overlay_sample() == 1
    overlay_leave(principal=root)
    assert overlay_sample() == 0
    assert overlay_snapshot()["state"] == {"domains": {}, "links": {}, "figures": None}


@pytest.mark.parametrize(
    ("values", "share", "wanted"),
    [([], 0.5, None), ([3.0], 0.9, 3.0), ([1.0, 2.0, 3.0], 0.5, 2.0), ([1.0, 2.0, 3.0, 4.0], 0.9, 4.0)],
)
def test_percentiles_are_values_that_were_measured(values: list[float], share: float, wanted: float | None) -> None:
    assert percentile(values, share) == wanted


def test_the_map_is_read_by_overseers_only(client_of: Callable[..., Any]) -> None:
    assert client_of("ann").get("/api/v1/overlay/snapshot").status_code == 403
    answer = client_of("root", admin=True).get("/api/v1/overlay/snapshot")
    assert answer.status_code == 200
    assert set(answer.json()) == {"cursor", "state"}
    assert client_of("root", admin=True).get(f"/api/v1/rps/{OVERLAY_ADMIN}").status_code == 200
    assert client_of("ann").get(f"/api/v1/rps/{OVERLAY_ADMIN}").status_code == 403
    assert client_of("root", admin=True).get(f"/api/v1/rps/{OVERLAY_ADMIN}/snapshot").status_code == 404


def test_a_durable_subscription_of_the_map_is_told_at_the_domain_and_survives_sweeps(root: Principal) -> None:
    stored(Signer("one.example", at=NOW))
    row = subscription_create(reference=OVERLAY_ADMIN, principal=root, lease_s=60)
    histories_trim()
    assert logs_sweep() == 0
    subscription_delete(subscription_id=row.id, principal=root)
    assert types_at(OVERLAY_ADMIN) == ["overlay.map.changed"]
    assert {"subscription.created", "subscription.deleted"} <= set(types_at(DOMAIN_ADMIN))
