"""The audit: an act and its entry stand or fall together, nobody changes an entry unseen, and reading misses none."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import jsonschema
import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import IntegrityError, InternalError, connection, connections, transaction
from django.utils import timezone
from django.utils.module_loading import import_string
from rest_framework.test import APIClient

from eventing.access.services.tokens import ensure_domain_key, token_create
from eventing.audit import services as audit
from eventing.audit.models import RETENTION_DAYS_MIN, AuditEntry
from eventing.audit.refusals import KINDS_MAX, KINDS_PER_WHO_MAX, WINDOW_S, Refusals
from eventing.audit.rules.chain import ChainKey
from eventing.audit.selectors import RUN, AuditFilter, audit_check, audit_page
from eventing.audit.services import REFUSED, AuditAct, audit_purge, audit_record, audit_record_all, chain_key
from eventing.core.errors import Conflict, Forbidden
from eventing.core.principals import Principal
from eventing.core.request_origin import Origin, current_origin
from eventing.rps.models import RendezvousPoint
from eventing.rps.services.rendezvous_points import (
    rendezvous_point_create,
    rendezvous_point_delete,
    rendezvous_point_renew,
    rendezvous_point_update,
)
from eventing.subscriptions.services.subscriptions import (
    subscription_create,
    subscription_delete,
    subscription_renew,
    subscription_update,
)
from portal.logs.log_lines import formatter
from portal.logs.request_log import RequestId

pytestmark = pytest.mark.usefixtures("stores")

MIGRATION = importlib.import_module("eventing.migrations.0004_audit")


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("id").values_list("action", flat=True))


def entries(action: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(action=action).order_by("id"))


def checked() -> list[str]:
    return audit_check(key=chain_key()).wrong


def raw(statement: str, *values: Any) -> None:
    """SQL as somebody with access to the database would write it."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)


@pytest.fixture
def triggers(stores: None) -> Iterator[None]:
    """The database as the migration leaves it; tests/conftest.py lets tests empty the table."""
    if connection.vendor == "postgresql":
        raw("ALTER TABLE eventing_auditentry ENABLE TRIGGER USER")
        yield
        raw("ALTER TABLE eventing_auditentry DISABLE TRIGGER USER")
    else:
        raw(MIGRATION.SQLITE[1])
        yield
        raw("DROP TRIGGER audit_entry_delete")


@pytest.fixture
def no_triggers(stores: None) -> Iterator[None]:
    """A database whose owner has switched off what protects the table: only the chain is left."""
    if connection.vendor == "postgresql":
        yield  # they are off already
    else:
        raw("DROP TRIGGER audit_entry_update")
        yield
        raw(MIGRATION.SQLITE[0])


# What is recorded


def test_every_administrative_act_has_its_entry(ann: Principal, new_rp: Callable[..., RendezvousPoint]) -> None:
    rp = new_rp(name="a").id
    rendezvous_point_update(reference=rp, principal=ann, changes={"title": "x", "policy": []})
    rendezvous_point_update(reference=rp, principal=ann, changes={"title": "x"})  # changes nothing, and is no act
    rendezvous_point_renew(reference=rp, principal=ann)
    mine = subscription_create(reference=rp, principal=ann).id
    subscription_update(subscription_id=mine, principal=ann, changes={"history": {"max_events": 1}})
    subscription_renew(subscription_id=mine, principal=ann)
    subscription_delete(subscription_id=mine, principal=ann)
    rendezvous_point_delete(reference=rp, principal=ann)
    ensure_domain_key()
    issued = token_create(subject="ben", operations=["publish"], principal=ann)
    assert actions() == [
        *("rp.create", "rp.update", "rp.renew"),
        *("subscription.create", "subscription.update", "subscription.renew", "subscription.delete"),
        *("rp.delete", "key.create", "token.create"),
    ]
    changed = entries("rp.update")[0]
    assert (changed.who, changed.issuer, changed.outcome) == ("ann", "localhost", "ok")
    assert (changed.on_kind, changed.on_id) == ("rp", rp)
    assert changed.details["changed"] == ["title", "policy"]
    assert changed.details["version"] == [1, 2]
    assert len(set(changed.details["policy"])) == 2
    signed = entries("token.create")[0]
    assert (signed.on_id, signed.details["subject"]) == (issued.id, "ben")
    stored = json.dumps([entry.content() for entry in AuditEntry.objects.all()])
    assert issued.token not in stored
    assert issued.token.rpartition(".")[2] not in stored
    assert checked() == []


def test_an_act_that_fails_leaves_no_entry_and_an_entry_that_fails_no_act(
    ann: Principal, new_rp: Callable[..., RendezvousPoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    new_rp(name="a")
    with pytest.raises(Conflict):
        new_rp(name="a")
    assert actions() == ["rp.create"]

    def away(*_: Any) -> None:
        raise InternalError("the audit cannot be written")

    monkeypatch.setattr(AuditEntry.objects, "bulk_create", away)
    for act in (
        lambda: rendezvous_point_create(principal=ann, name="b"),
        lambda: rendezvous_point_delete(reference="a", principal=ann),
        lambda: token_create(subject="ben", principal=ann),
    ):
        with pytest.raises(InternalError):
            act()
    assert list(RendezvousPoint.objects.values_list("name", flat=True)) == ["/localhost/a/"]


def test_an_entry_says_where_it_came_from(ann: Principal) -> None:
    token = current_origin.set(Origin("192.0.2.7", "req-1", "api"))
    try:
        audit_record(action="x.y", principal=ann)
        audit_record(action="login.failed", outcome=REFUSED, error=Forbidden("No."))
    finally:
        current_origin.reset(token)
    audit_record(action="x.y")
    by_ann, by_stranger, by_command = AuditEntry.objects.order_by("id")
    assert (by_ann.who, by_ann.address, by_ann.request_id, by_ann.via) == ("ann", "192.0.2.7", "req-1", "api")
    assert (by_stranger.who, by_stranger.problem, by_stranger.reason) == ("192.0.2.7", "forbidden", "No.")
    assert by_command.who.startswith("command:")
    assert by_command.via == "command"


def test_what_strangers_write_is_bounded_and_kept_only_as_text(ann: Principal) -> None:
    nasty = "\0\ud800" + "x" * 5000
    entry = audit_record(
        action="login.failed", who=nasty, on=("user", nasty), reason=nasty, details={"name": "a\0\ud800b"}
    )
    big = audit_record(action="x.y", principal=ann, details={"name": "x" * 5000})
    entry.refresh_from_db()
    assert (entry.who[:2], len(entry.who), len(entry.on_id), len(entry.reason)) == ("?x", 512, 255, 255)
    assert entry.details == {"name": "a?b"}
    assert list(big.details) == ["note"]
    assert checked() == []


def test_details_are_sealed_as_the_database_gives_them_back(ann: Principal) -> None:
    audit_record(
        action="x.y",
        principal=ann,
        details={"f": 1.50, "e": 1e300, "n": None, "t": True, "i": 2**70, "l": (1, {"é": "ü"})},
    )
    assert checked() == []


def test_log_lines_carry_the_id_of_the_request_they_are_about() -> None:
    written = StringIO()
    handler = logging.StreamHandler(written)
    handler.addFilter(RequestId())
    handler.setFormatter(import_string(formatter("text"))())
    logged: dict[str, Any] = settings.LOGGING
    assert logged["formatters"]["line"] == {"()": formatter(settings.HERALD.log_format)}
    assert logged["handlers"]["stderr"]["filters"] == ["request"]
    record = logging.LogRecord("x", logging.INFO, "x", 1, "told", None, None)
    token = current_origin.set(Origin("192.0.2.7", "req-1", "api"))
    handler.handle(record)
    current_origin.reset(token)
    handler.handle(record)
    within, outside = written.getvalue().splitlines()
    assert within.endswith(" x [req-1]: told")
    assert outside.endswith(" x: told")


# Append-only


def test_the_model_neither_updates_nor_deletes(ann: Principal) -> None:
    entry = audit_record(action="x.y", principal=ann)
    kept = AuditEntry.objects.get()
    for change in (
        kept.save,
        kept.delete,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.update(who="eve"),
    ):
        with pytest.raises(TypeError):
            change()
    assert AuditEntry.objects.get().content() == entry.content()


@pytest.mark.usefixtures("triggers")
def test_sql_by_hand_is_refused_by_the_database(ann: Principal) -> None:
    now = timezone.now()
    audit_record(action="x.old", principal=ann, now=now - timedelta(days=1000))
    audit_record(action="x.y", principal=ann)
    for statement in (
        "UPDATE eventing_auditentry SET who = 'eve'",
        "DELETE FROM eventing_auditentry",
        "DELETE FROM eventing_auditentry WHERE id = 1",  # old enough, but no purge says that it goes
    ):
        with pytest.raises((IntegrityError, InternalError)):
            raw(statement)
    if connection.vendor == "postgresql":
        with pytest.raises((IntegrityError, InternalError)):
            raw("TRUNCATE eventing_auditentry")
    assert actions() == ["x.old", "x.y"]


@pytest.mark.usefixtures("triggers")
def test_a_forged_purge_entry_cannot_reach_young_entries(ann: Principal) -> None:
    young = timezone.now() - timedelta(days=RETENTION_DAYS_MIN - 1)
    audit_record(action="x.y", principal=ann, now=young)
    audit_record_all([AuditAct("audit.purge", purged_through=1)])
    with pytest.raises((IntegrityError, InternalError)):
        raw("DELETE FROM eventing_auditentry WHERE id = 1")


@pytest.mark.usefixtures("triggers")
def test_the_retention_removes_whole_days_and_says_so(ann: Principal, configure: Callable[..., None]) -> None:
    configure(audit_days=40)
    now = datetime.now(UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for days in (45, 44, 41, 40, 39, 0):
        audit_record(action=f"x.{days}", principal=ann, now=today - timedelta(days=days))
    assert audit_purge(now=now) == 3
    assert actions() == ["x.40", "x.39", "x.0", "audit.purge"]
    purge = entries("audit.purge")[0]
    assert (purge.who, purge.details["first"], purge.details["through"]) == ("domain", 1, 3)
    assert checked() == []
    assert audit_purge(now=now) == 0
    assert actions()[-1] == "audit.purge"
    assert audit_purge(now=now + timedelta(days=1)) == 1
    assert audit_record(action="x.next", principal=ann).id == 9, "ids go on"
    assert checked() == []


def test_a_purge_removes_no_more_than_its_bound_at_once(ann: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "PURGE_BATCH", 4)
    old = timezone.now() - timedelta(days=1000)
    audit_record_all([AuditAct("x.y", principal=ann, at=old)] * 10)
    assert [audit_purge(), audit_purge(), audit_purge(), audit_purge()] == [4, 4, 2, 0]
    assert actions() == ["audit.purge"] * 3
    assert checked() == []


# The chain


@pytest.mark.usefixtures("no_triggers")
@pytest.mark.parametrize(
    ("tampering", "told"),
    [
        ("UPDATE eventing_auditentry SET who = 'eve' WHERE id = 3", "Entry 3 was changed"),
        ("UPDATE eventing_auditentry SET recorded_at = '2020-01-01' WHERE id = 3", "Entry 3 was changed"),
        ("UPDATE eventing_auditentry SET details = '{}' WHERE id = 3", "Entry 3 was changed"),
        ("UPDATE eventing_auditentry SET count = 9 WHERE id = 3", "Entry 3 was changed"),
        ("DELETE FROM eventing_auditentry WHERE id = 3", "Entries 3 to 3 are missing"),
        ("DELETE FROM eventing_auditentry WHERE id < 3", "Entries before 3 are missing"),
        ("UPDATE eventing_auditentry SET seal = 'x' WHERE id = 3", "Entry 4 does not follow entry 3"),
    ],
)
def test_tampering_by_the_databases_owner_is_found(ann: Principal, tampering: str, told: str) -> None:
    audit_record_all([AuditAct("x.y", principal=ann, details={"n": n}) for n in range(5)])
    assert checked() == []
    raw(tampering)
    assert any(sentence.startswith(told) for sentence in checked())
    with pytest.raises(CommandError):
        call_command("audit_check", stdout=StringIO())


@pytest.mark.usefixtures("no_triggers")
def test_a_chain_written_anew_without_the_key_is_found(ann: Principal) -> None:
    """Plain hashes could be computed anew over the whole table; these cannot."""
    audit_record_all([AuditAct("x.y", principal=ann)] * 3)
    forger, seal = ChainKey("not the secret key"), ""
    for entry in AuditEntry.objects.order_by("id"):
        entry.who, entry.previous = "eve", seal
        seal = chain_key().id + "." + forger.seal(seal, entry.content()).partition(".")[2]
        raw(
            "UPDATE eventing_auditentry SET who = 'eve', previous = %s, seal = %s WHERE id = %s",
            *(entry.previous, seal, entry.id),
        )
    assert len(checked()) == 3


@pytest.mark.usefixtures("no_triggers")
def test_a_cut_off_end_is_found_by_who_kept_a_head(ann: Principal) -> None:
    audit_record_all([AuditAct("x.y", principal=ann)] * 3)
    told = StringIO()
    call_command("audit_check", stdout=told)
    head = told.getvalue().strip().rpartition("Head: ")[2]
    audit_record(action="x.z", principal=ann)
    assert audit_check(key=chain_key(), head=head).wrong == []
    raw("DELETE FROM eventing_auditentry WHERE id >= 3")
    assert checked() == [], "the chain alone cannot know"
    audit_record(action="x.other", principal=ann)
    assert "cut off" in audit_check(key=chain_key(), head=head).wrong[0]
    assert "ID:SEAL" in audit_check(key=chain_key(), head="nonsense").wrong[0]


def test_a_changed_secret_key_is_not_taken_for_forgery(ann: Principal, settings: Any) -> None:
    audit_record(action="x.y", principal=ann)
    settings.SECRET_KEY = "another-secret-key-of-more-than-32-characters"
    audit_record(action="x.z", principal=ann)
    found = audit_check(key=chain_key())
    assert (found.entries, found.other_keys, found.wrong) == (2, 1, [])


def test_many_writers_at_once_keep_one_chain(ann: Principal) -> None:
    threads, each, failures = 6, 8, []

    def write(number: int) -> None:
        try:
            for turn in range(each):
                if turn % 4 == 3:
                    try:
                        with transaction.atomic():
                            audit_record(action="x.undone", principal=ann)
                            raise Conflict("undone")
                    except Conflict:
                        continue
                audit_record(action=f"x.{number}", principal=ann)
        except Exception as error:  # noqa: BLE001 - shown by the test
            failures.append(error)
        finally:
            connection.close()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(threads)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert failures == []
    assert AuditEntry.objects.count() == threads * each * 3 // 4
    assert checked() == []


# Refusals


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def gathered(clock: Clock) -> Refusals:
    """Refusals that somebody flushes, as in a gateway."""
    made = Refusals(clock)
    made.flushed = True
    return made


def test_equal_refusals_of_a_minute_are_two_entries(gathered: Refusals, clock: Clock, ben: Principal) -> None:
    for _ in range(1000):
        gathered.note(action="publish", error=Forbidden("No."), principal=ben, on=("rp", "a"))
    assert gathered.flush() == 1, "the first is told at once, with those that came with it"
    for _ in range(500):
        gathered.note(action="publish", error=Forbidden("No."), principal=ben, on=("rp", "a"))
    assert gathered.flush() == 0
    clock.now += WINDOW_S
    assert gathered.flush() == 1
    assert [entry.count for entry in entries("publish")] == [1000, 500]
    assert not gathered.busy
    assert gathered.flush() == 0


def test_a_flood_of_kinds_is_counted_and_never_lost(gathered: Refusals, clock: Clock) -> None:
    sent = 0
    for stranger in range(KINDS_MAX):
        for _ in range(3):
            origin = Origin(f"198.51.100.{stranger}", "", "api")
            gathered.note(action="history", error=Forbidden("No."), on=("rp", f"{sent}"), origin=origin)
            sent += 1
    assert gathered.flush() == KINDS_MAX + 1
    assert sum(AuditEntry.objects.values_list("count", flat=True)) == sent
    assert len(entries("refusals.overflow")) == 1
    clock.now += WINDOW_S
    gathered.flush()
    assert not gathered.busy


def test_one_stranger_who_asks_for_everything_fills_nothing(gathered: Refusals) -> None:
    for number in range(10_000):
        origin = Origin("198.51.100.1", f"r{number}", "api")
        gathered.note(action="history", error=Forbidden(f"No {number}."), on=("rp", f"{number}"), origin=origin)
    assert gathered.flush() == KINDS_PER_WHO_MAX + 1
    many = AuditEntry.objects.get(on_id="*")
    assert many.count == 10_000 - KINDS_PER_WHO_MAX


def test_refusals_survive_a_database_that_is_away(
    gathered: Refusals, ben: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise InternalError("away")

    gathered.note(action="publish", error=Forbidden("No."), principal=ben)
    with monkeypatch.context() as broken:
        broken.setattr(AuditEntry.objects, "bulk_create", away)
        assert gathered.flush() == 0
    gathered.note(action="publish", error=Forbidden("No."), principal=ben)
    assert gathered.flush() == 1
    assert entries("publish")[0].count == 2


# REST


def test_refusals_of_the_rest_interface_are_recorded(
    api: APIClient, client_of: Callable[..., APIClient], new_rp: Callable[..., RendezvousPoint]
) -> None:
    rp = new_rp(policy=[]).id
    eve = client_of("eve")
    assert eve.delete(f"/api/v1/rps/{rp}").status_code == 403
    assert eve.get(f"/api/v1/rps/{rp}").status_code == 403
    assert eve.post("/api/v1/tokens", {"subject": "x"}, format="json").status_code == 403
    assert eve.get("/api/v1/audit").status_code == 403
    assert APIClient().get("/api/v1/rps").status_code == 401
    assert APIClient().post("/api/v1/rps", HTTP_AUTHORIZATION="Bearer garbage").status_code == 401
    refused = AuditEntry.objects.filter(outcome="refused").order_by("id")
    assert [(entry.action, entry.problem) for entry in refused] == [
        ("rp.delete", "forbidden"),
        ("rp.describe", "forbidden"),
        ("token.create", "forbidden"),
        ("audit.list", "forbidden"),
        ("rp.list", "unauthenticated"),
        ("rp.create", "unauthenticated"),
    ]
    assert [entry.who for entry in refused][:4] == ["eve"] * 4
    assert (refused[0].on_kind, refused[0].on_id) == ("rp", rp)
    assert refused[0].token_id
    assert all(entry.reason for entry in refused)
    assert "garbage" not in json.dumps([entry.content() for entry in refused])


def test_mistakes_are_no_refusals(api: APIClient) -> None:
    assert api.post("/api/v1/rps", {"nonsense": 1}, format="json").status_code == 400
    assert api.get("/api/v1/rps/nowhere").status_code == 404
    assert api.patch("/api/v1/rps").status_code == 405
    assert AuditEntry.objects.exclude(outcome="ok").count() == 0


def test_an_act_that_fails_here_is_recorded_as_failed(api: APIClient, configure: Callable[..., None]) -> None:
    configure(redis_url="unix:///nowhere/redis.sock")
    assert api.post("/api/v1/rps").status_code == 503
    failed = AuditEntry.objects.get(outcome="failed")
    assert (failed.action, failed.who, failed.problem) == ("rp.create", "ann", "unavailable")


def test_a_refusal_by_quota_is_recorded(api: APIClient, configure: Callable[..., None]) -> None:
    configure(rps_max=1)
    assert api.post("/api/v1/rps").status_code == 201
    assert api.post("/api/v1/rps").status_code == 409
    assert [(entry.action, entry.problem) for entry in AuditEntry.objects.filter(outcome="refused")] == [
        ("rp.create", "quota-exceeded")
    ]


@pytest.fixture
def admin(client_of: Callable[..., APIClient]) -> APIClient:
    return client_of("root", admin=True)


def test_pages_go_either_way_and_miss_nothing(admin: APIClient, ann: Principal) -> None:
    audit_record_all([AuditAct("x.y", principal=ann) for _ in range(7)])
    for order, ids in (("newest", [7, 6, 5, 4, 3, 2, 1]), ("oldest", [1, 2, 3, 4, 5, 6, 7])):
        seen, cursor = [], None
        while True:
            query: dict[str, Any] = {
                "order": order,
                "limit": 3,
                "action": "x.*",
                **({"cursor": cursor} if cursor else {}),
            }
            page = admin.get("/api/v1/audit", query).json()
            seen += [entry["id"] for entry in page["items"] if entry["action"] == "x.y"]
            cursor = page["next"]
            if cursor is None:
                break
        first = min(seen) - 1
        assert [number - first for number in seen] == ids


def test_filters(admin: APIClient, ann: Principal, ben: Principal) -> None:
    old, new = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    audit_record(action="rp.create", principal=ann, on=("rp", "one"), now=old)
    audit_record(action="rp.delete", principal=ben, on=("rp", "one"), now=new)
    audit_record(action="rpx.y", principal=ben, outcome=REFUSED, on=("x", "two"), now=new)

    def found(**query: Any) -> list[str]:
        answer = admin.get("/api/v1/audit", {"order": "oldest", "until": "2026-03-01T00:00:00Z", **query})
        assert answer.status_code == 200, answer.content
        return [entry["action"] for entry in answer.json()["items"]]

    assert found() == ["rp.create", "rp.delete", "rpx.y"]
    assert found(action="rp.*") == ["rp.create", "rp.delete"]
    assert found(action="rp.delete") == ["rp.delete"]
    assert found(who="ann") == ["rp.create"]
    assert found(outcome="refused") == ["rpx.y"]
    assert found(on="one") == ["rp.create", "rp.delete"]
    assert found(since="2026-01-15T00:00:00Z") == ["rp.delete", "rpx.y"]
    assert found(since="2026-02-01T01:00:00+01:00") == ["rp.delete", "rpx.y"]
    assert found(until="2026-02-01T00:00:00Z") == ["rp.create"]
    assert found(after="1" if AuditEntry.objects.get(action="rp.create").id == 1 else "2")[-1] == "rpx.y"


@pytest.mark.parametrize(
    "query",
    [
        {"since": "yesterday"},
        {"since": "2026-01-01"},
        {"since": "2026-01-01T00:00:00"},
        {"until": "2026-13-01T00:00:00Z"},
        {"since": "0001-01-01T00:00:00+23:00"},
        {"until": "9999-12-31T23:59:59-23:00"},
        {"outcome": "maybe"},
        {"order": "random"},
        {"after": "-1"},
        {"after": "9" * 19},
        {"who": "x" * 513},
        {"who": "a\0b"},
        {"cursor": "nonsense"},
        {"limit": "0"},
    ],
)
def test_filters_that_mean_nothing_are_refused_with_a_sentence(admin: APIClient, query: dict[str, str]) -> None:
    answer = admin.get("/api/v1/audit", query)
    assert answer.status_code == 400
    assert answer.json()["detail"].endswith(".")
    if "order" not in query and "cursor" not in query and "limit" not in query:
        assert admin.get("/api/v1/audit/export", query).status_code == 400


def test_entries_are_of_the_described_form(admin: APIClient, api: APIClient) -> None:
    api.post("/api/v1/rps")
    api.get("/api/v1/audit")
    described = APIClient().get("/api/v1/schema").json()
    schema = {"$ref": "#/components/schemas/AuditEntryPage", "components": described["components"]}
    page = admin.get("/api/v1/audit").json()
    jsonschema.Draft202012Validator(schema).validate(page)
    assert {entry["outcome"] for entry in page["items"]} == {"ok", "refused"}


def test_narrowed_administrators_do_not_read_it(client_of: Callable[..., APIClient]) -> None:
    narrowed = client_of("root", admin=True, operations=["administer"])
    for path in ("/api/v1/audit", "/api/v1/audit/export"):
        assert narrowed.get(path).status_code == 403


def exported(client: APIClient, **query: Any) -> list[dict[str, Any]]:
    answer = client.get("/api/v1/audit/export", query)
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"] == "application/x-ndjson"

    async def whole() -> bytes:
        content: Any = answer
        parts = [part async for part in content.streaming_content]
        await sync_to_async(connections.close_all)()  # of the thread that read them
        return b"".join(parts)

    return [json.loads(line) for line in asyncio.run(whole()).splitlines()]


def test_the_export_holds_all_entries_in_order_and_is_itself_recorded(admin: APIClient, ann: Principal) -> None:
    audit_record_all([AuditAct(f"x.{number}", principal=ann) for number in range(2 * RUN + 1)])
    lines = exported(admin, action="x.*")
    assert [line["action"] for line in lines] == [f"x.{number}" for number in range(2 * RUN + 1)]
    assert actions()[-1] == "audit.export"
    everything = exported(admin)
    assert [line["id"] for line in everything] == list(range(1, len(everything) + 1))
    page = audit_page(wanted=AuditFilter(), limit=1)
    assert page.items[0].id == len(everything) + 1, "what came after it began is not in it"
