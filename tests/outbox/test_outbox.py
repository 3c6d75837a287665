"""A committed change is carried through to the data plane, once, whatever dies in between; a change undone never is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone
from jsonschema import validate
from redis.exceptions import RedisError

from admin_rp.catalogue import CATALOGUE
from eventing.core.ids import DOMAIN_ADMIN, admin_id
from eventing.core.principals import Principal
from eventing.log import control
from eventing.outbox import administrative_events
from eventing.outbox import services as outbox
from eventing.outbox.models import OutboxEntry
from eventing.outbox.services import GIVE_UP_AFTER_S, RELAY_AFTER_S, Outbox, change, outbox_relay
from eventing.rps.models import RendezvousPoint
from eventing.rps.services.rendezvous_points import (
    rendezvous_point_delete,
    rendezvous_point_renew,
    rendezvous_point_update,
)
from eventing.store.client import client as redis_client
from tests.planes import events_at, types_at

pytestmark = pytest.mark.usefixtures("stores")

NewRp = Callable[..., RendezvousPoint]


@pytest.fixture
def crash_after_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies right after each commit, before it carries anything out."""
    monkeypatch.setattr(transaction, "on_commit", lambda *_, **__: None)


def later() -> Any:
    return timezone.now() + timedelta(seconds=RELAY_AFTER_S + 1)


@pytest.mark.usefixtures("crash_after_commit")
def test_the_sweep_does_what_a_crash_left(new_rp: NewRp, ann: Principal) -> None:
    gone, kept = new_rp(), new_rp()
    rendezvous_point_delete(reference=gone.id, principal=ann)
    assert control.log_state(kept.id) is None
    count = OutboxEntry.objects.count()
    assert outbox_relay(now=later()) == count > 0
    assert control.log_state(kept.id) is not None
    assert control.log_state(gone.id) is None
    assert types_at(DOMAIN_ADMIN) == ["rp.created", "rp.created", "rp.deleted"]
    assert types_at(admin_id(gone.id)) == ["rp.created", "lease.granted", "rp.deleted"]
    assert not OutboxEntry.objects.exists()


@pytest.mark.usefixtures("crash_after_commit")
def test_carrying_out_twice_publishes_once(new_rp: NewRp) -> None:
    rp = new_rp()
    entries = list(OutboxEntry.objects.all())
    outbox_relay(now=later())
    OutboxEntry.objects.bulk_create(entries)  # the crash came after the effect, before the removal
    outbox_relay(now=later())
    assert types_at(admin_id(rp.id)) == ["rp.created", "lease.granted"]


@pytest.mark.usefixtures("crash_after_commit")
def test_the_sweep_leaves_young_entries_to_whoever_wrote_them(new_rp: NewRp) -> None:
    new_rp()
    assert outbox_relay() == 0
    assert OutboxEntry.objects.exists()


def test_a_changed_rp_is_sent_to_its_peers_whoever_changes_it_also_after_a_crash(
    new_rp: NewRp, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    rp, sent = new_rp(), list[str]()
    monkeypatch.setattr(outbox, "rp_changed", sent.append)
    rendezvous_point_renew(reference=rp.id, principal=ann)
    rendezvous_point_update(reference=rp.id, principal=ann, changes={"title": rp.title})
    assert sent == []
    rendezvous_point_update(reference=rp.id, principal=ann, changes={"title": "Another"})
    assert sent == [rp.id]
    with monkeypatch.context() as crash:
        crash.setattr(transaction, "on_commit", lambda *_, **__: None)
        rendezvous_point_update(reference=rp.id, principal=ann, changes={"title": "And another"})
    assert sent == [rp.id]
    outbox_relay(now=later())
    assert sent == [rp.id, rp.id]


def test_an_outage_after_the_commit_is_not_the_callers(
    new_rp: NewRp, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "log_state", lambda _: None)  # up when asked, away a moment later
    configure(redis_url="unix:///nowhere/redis.sock")
    rp = new_rp()
    assert RendezvousPoint.objects.filter(id=rp.id).exists()
    count = OutboxEntry.objects.count()
    with pytest.raises(RedisError):
        outbox_relay(now=later())
    assert OutboxEntry.objects.count() == count
    monkeypatch.undo()


def test_a_change_undone_leaves_no_effect() -> None:
    with transaction.atomic():
        with change(timezone.now()) as box:
            box.announce("a" * 26)
        assert OutboxEntry.objects.exists()
        transaction.set_rollback(True)
    assert not OutboxEntry.objects.exists()


@pytest.mark.usefixtures("crash_after_commit")
def test_an_entry_that_cannot_be_carried_out_holds_nothing_up(new_rp: NewRp) -> None:
    now = timezone.now()
    not_text = {**administrative_events.content("io.herald.x", "/s", {}, now), "source": "\udcff"}
    bad = (
        [{}] if connection.vendor == "postgresql" else [{}, not_text]
    )  # PostgreSQL takes no such text in the first place
    for content in bad:
        OutboxEntry.objects.create(kind="event", rp=DOMAIN_ADMIN, content=content, created_at=now - timedelta(hours=1))
    rp = new_rp()
    assert outbox_relay(now=later()) > 0
    assert types_at(admin_id(rp.id)) == ["rp.created", "lease.granted"]
    assert types_at(DOMAIN_ADMIN) == ["rp.created"]
    assert OutboxEntry.objects.count() == len(bad)
    outbox_relay(now=later() + timedelta(seconds=GIVE_UP_AFTER_S))
    assert not OutboxEntry.objects.exists()


def test_what_the_data_plane_refuses_is_tried_for_a_day_and_holds_nothing_up(new_rp: NewRp) -> None:
    rp = new_rp()
    client = redis_client()
    client.delete(f"herald:{{{admin_id(rp.id)}}}:meta")
    client.set(f"herald:{{{admin_id(rp.id)}}}:meta", "not a hash")  # every append is refused
    now = timezone.now()
    with transaction.atomic():
        box = Outbox(now)
        box.event(administrative_events.RP_CHANGED, rp.id, {"rp": {}, "changed": []})
        box.ensure(rp.id)
        box.save()
    assert [entry.kind for entry in OutboxEntry.objects.all()] == ["event"]
    assert outbox_relay(now=now + timedelta(seconds=60)) == 0
    assert OutboxEntry.objects.count() == 1
    outbox_relay(now=now + timedelta(seconds=GIVE_UP_AFTER_S + 1))
    assert not OutboxEntry.objects.exists()


def test_every_event_is_as_the_catalogue_says(new_rp: NewRp, ann: Principal) -> None:
    rp = new_rp(name="a", lease_s=60)
    rendezvous_point_delete(reference=rp.id, principal=ann)
    for event in events_at(admin_id(rp.id)):
        validate(event["data"], CATALOGUE[event["type"]].schema)
        assert event["datacontenttype"] == "application/json"
        assert event["time"].endswith("Z")


def test_admin_histories_have_the_admin_bounds(new_rp: NewRp) -> None:
    rp = new_rp()
    meta = redis_client().hmget(f"herald:{{{admin_id(rp.id)}}}:meta", "m", "b", "a")
    assert [int(value) for value in meta if value] == [2000, 1024 * 1024, 30 * 86_400_000]
